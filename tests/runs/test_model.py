from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.data.facts import DataFacts
from liere.runs import model
from liere.runs.config_file import parse_config
from liere.runs.model import build_model, load_model
from liere.runs.run_weights import save_weights

SMALL = {"encoding": "liere8", "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
FACTS = DataFacts(("a", "b"), 3, (36, 36), (0.5,) * 3, (0.5,) * 3)


def config(**fields):
    return parse_config({"model": SMALL | fields})


@pytest.mark.parametrize(
    ("fields", "parameters"),
    [({"dim": 10**6, "depth": 10**4}, 4 * 10**16), ({"mlp_dim": 10**6, "depth": 10**4}, 32 * 10**10)],
)
def test_a_model_larger_than_the_memory_is_refused_before_it_is_created(fields, parameters):
    with pytest.raises(ValueError, match=r"the model has at least [\d,]+ parameters, which need .* GB") as raised:
        build_model(config(**fields), FACTS)
    assert int(str(raised.value).split()[5].replace(",", "")) >= parameters


def test_a_model_larger_than_its_weights_is_refused_before_it_is_created(tmp_path, monkeypatch):
    file = tmp_path / "final.safetensors"
    save_weights(build_model(config(), FACTS).state_dict(), file, FACTS)
    assert load_model(config(), file).num_classes == 2
    monkeypatch.setattr(model, "build_model", lambda *_: pytest.fail("it was created"))
    for large in (config(dim=1024), config(depth=10_000), config(mlp_dim=10**5)):
        with pytest.raises(
            ValueError, match=r"final.safetensors has [\d,]+ bytes on disk, but the configuration describes"
        ):
            load_model(large, file)
    many = DataFacts(tuple(map(str, range(10**5))), 3, (36, 36), (0.5,) * 3, (0.5,) * 3)
    with pytest.raises(ValueError, match="describes a model with at least"):
        load_model(config(), file, many)
