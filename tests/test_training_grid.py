"""State dicts include the training grid, to which positions are relative."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch

from tests.models import small_model

KEY = "_extra_state"


def test_the_state_dict_has_the_grid_beside_the_parameters():
    model = small_model()
    state = model.state_dict()
    assert state[KEY].tolist() == [4, 4]
    assert set(state) - {KEY} == {name for name, _ in model.named_parameters()}


def test_weights_of_another_grid_are_loaded_with_one_warning():
    small, large = small_model(), small_model(seed=1, image_size=32)
    with pytest.warns(
        UserWarning, match=r"grid of \(4, 4\) tokens, .* \(8, 8\).* create it with image_size=\(16, 16\)"
    ) as told:
        large.load_state_dict(small.state_dict())
    assert len(told) == 1
    assert all(torch.equal(a, b) for a, b in zip(small.parameters(), large.parameters(), strict=True))
    assert large.state_dict()[KEY].tolist() == [8, 8]


def test_what_the_warning_advises_gives_the_logits_of_training():
    x = torch.randn(1, 3, 32, 32)
    trained, same = small_model(), small_model(seed=1)
    same.load_state_dict(trained.state_dict())
    assert torch.equal(same(x), trained(x))


@pytest.mark.parametrize(
    ("encoding", "options", "warns"),
    [
        ("liere8", {}, True),
        ("sincos", {"position_policy": "rescale"}, True),
        ("liere8", {"position_policy": "reference"}, True),
        ("liere8", {"position_policy": "rescale"}, False),
        ("liere8", {"position_policy": "rescale", "attention_scale": "log"}, True),
        ("none", {}, False),
    ],
)
def test_there_is_a_warning_only_where_the_grid_matters(encoding, options, warns):
    x = torch.randn(1, 3, 32, 32)
    small, large = (small_model(encoding, image_size=size, **options) for size in (16, 32))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        large.load_state_dict(small.state_dict())
    assert bool(told) == warns
    assert torch.allclose(small(x), large(x), atol=1e-6) == (not warns)


def test_weights_without_a_grid_are_loaded_strictly():
    model = small_model()
    old = {name: value for name, value in model.state_dict().items() if name != KEY}
    assert small_model(seed=1).load_state_dict(old) == ([], [])
    nested = torch.nn.ModuleDict({"inner": small_model(seed=1)})
    assert nested.load_state_dict({f"inner.{name}": value for name, value in old.items()}) == ([], [])
    del old["norm.weight"]
    with pytest.raises(RuntimeError, match=r'Missing key.*"norm\.weight"\.'):
        small_model(seed=1).load_state_dict(old)


@pytest.mark.parametrize(
    "state",
    [
        torch.ones(1000),
        torch.tensor([4.0, float("nan")]),
        torch.ones(2, device="meta"),
        torch.ones(2) * 3j,
        [4, 5],
        None,
    ],
)
def test_what_is_no_grid_is_ignored(state):
    model = small_model()
    model.load_state_dict({**model.state_dict(), KEY: state})  # a warning would fail the test
    assert model.state_dict()[KEY].tolist() == [4, 4]


def test_the_grid_survives_files_copies_and_wrappers(tmp_path):
    model = small_model()
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    states = [
        torch.load(buffer, weights_only=True),
        copy.deepcopy(model).state_dict(),
        pickle.loads(pickle.dumps(model)).state_dict(),
        torch.compile(model, backend="eager")._orig_mod.state_dict(),
    ]
    for state in states:
        assert state[KEY].tolist() == [4, 4]
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(model.state_dict(), tmp_path / "w.safetensors")
    with pytest.warns(UserWarning, match="grid of"):
        small_model(image_size=32).load_state_dict(safetensors.load_file(tmp_path / "w.safetensors"))


def test_models_without_data_can_be_described_and_loaded():
    with torch.device("meta"):
        model = small_model()
    state = model.state_dict()
    assert state[KEY].device.type == "cpu"
    real = small_model().state_dict()
    model.load_state_dict(real, assign=True)
    assert torch.equal(model.norm.weight, real["norm.weight"])


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.complex64, torch.bool])
def test_a_grid_of_a_type_that_no_grid_has_is_ignored(dtype):
    model = small_model()
    model.load_state_dict(model.state_dict() | {KEY: torch.tensor([8, 8]).to(dtype)})
