"""Training and testing one run from Python."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("tests.training.requirements")

from liere import toolkit
from liere.cli import main
from liere.encodings import registry
from liere.runs.run import Run
from tests.toolkit.shifted import SHORT, Shifted
from tests.training.tiny import quiet

pytestmark = quiet


def test_the_same_call_resumes_a_run_and_does_not_repeat_it(recipe, tmp_path, capsys):
    run = toolkit.train(recipe, out="run", overrides=SHORT, steps=1)
    assert not run.is_finished
    assert "stopped as requested; resume with" in capsys.readouterr().out
    run = toolkit.train(recipe, out="run", overrides=SHORT)
    assert run.is_finished
    assert "resuming after step 1" in capsys.readouterr().err
    before = run.result_file.stat().st_mtime_ns
    assert toolkit.train(recipe, out="run", overrides=SHORT).result_file.stat().st_mtime_ns == before
    assert toolkit.resume("run").is_finished
    with pytest.raises(ValueError, match="--out run contains a run of a different recipe: choose another folder"):
        toolkit.train(recipe, out="run", overrides=SHORT | {"training.seed": 7})
    with pytest.raises(ValueError, match="--out run already exists: resume it with liere train --resume run"):
        toolkit.train(recipe, out="run", overrides=SHORT, resume=False)


def test_more_examples_train_a_run_longer(recipe, capsys):
    assert toolkit.train(recipe, out="run", overrides=SHORT).is_finished
    more = {"training.examples": 2 * SHORT["training.examples"]}
    run = toolkit.train(recipe, out="run", overrides=SHORT | more)
    assert run.result()["examples"] == more["training.examples"]
    assert "run: training longer; the results so far are kept in run/shorter/" in capsys.readouterr().err
    with pytest.raises(ValueError, match="--out run contains a run of a different recipe"):
        toolkit.train(recipe, out="run", overrides=SHORT)


def test_it_writes_what_the_command_writes(recipe, tmp_path):
    fields = [part for name, value in SHORT.items() for part in (f"--{name}", str(value))]
    assert main(["train", "--config", "tiny.yaml", "--out", "command", "--model.encoding", "none", *fields]) == 0
    toolkit.train("tiny.yaml", encoding="none", out="python", overrides=SHORT)
    names = [
        {path.relative_to(tmp_path / place) for path in (tmp_path / place).rglob("*") if "tensorb" not in str(path)}
        for place in ("command", "python")
    ]
    assert names[0] == names[1]
    for name in ("config.yaml", "final.safetensors"):
        assert (tmp_path / "command" / name).read_bytes() == (tmp_path / "python" / name).read_bytes()


def test_a_dry_run_makes_nothing(recipe, tmp_path, capsys):
    toolkit.train(recipe, dry=True)
    assert "parameters" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


def test_a_class_of_a_function_can_be_trained_and_is_missed_later(recipe, monkeypatch):
    class Local(Shifted):
        pass

    run = toolkit.train(recipe, encoding=Local, out="run", overrides=SHORT)
    assert run.config.model.encoding.endswith("<locals>.Local")
    assert run.result()["encoding_parameters"] == 1
    monkeypatch.setattr(registry, "_BY_PATH", {})  # as in another process
    with pytest.raises(ValueError, match=r"define or import Local here and call liere.register_encoding\(Local\)"):
        toolkit.evaluate("run")


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"encoding": "lieer8"}, ValueError, "unknown encoding 'lieer8': did you mean 'liere8'?"),
        ({"encoding": torch.nn.Linear}, TypeError, "is not a position encoding: derive it from"),
        ({"encoding": "nowhere:Mine"}, ValueError, "there is no module 'nowhere'"),
        ({"overrides": {"model.dimm": 3}}, ValueError, "unknown field model.dimm: did you mean 'dim'?"),
        ({"overrides": {"model.dim": [1]}}, ValueError, "model.dim must be"),
        ({"overrides": {"model.dim": object()}}, TypeError, "model.dim must be a YAML value, got object"),
        ({"overrides": 3}, TypeError, "overrides must be a dict of fields such as {'training.seed': 1}, got 3"),
        (
            {"overrides": {1: 2}},
            TypeError,
            "overrides must be a dict of fields such as {'training.seed': 1}, got {1: 2",
        ),
        ({"recipe": 3}, TypeError, "recipe must be a YAML file or a dict, got int"),
        ({"recipe": "none.yaml"}, FileNotFoundError, "there is no configuration file none.yaml"),
    ],
)
def test_errors_are_exceptions_of_one_line(recipe, tmp_path, arguments, error, message):
    with pytest.raises(error) as raised:
        toolkit.train(arguments.pop("recipe", recipe), out="run", **arguments)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"run": 3}, "run must be a path, got 3"),
        ({"examples": 0}, "examples must be at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size must be an int, got 1.5"),
        ({"devices": 0}, "devices must be at least 1, got 0"),
        ({"accelerator": "tpu"}, "unknown accelerator 'tpu': choose from auto, cpu, gpu"),
        ({"sizes": [0]}, "size must be at least 1, got 0"),
        ({"policies": 3}, "policies must be a list, got 3: write [3]"),
        ({"policies": [3]}, "policy must be text, got 3"),
        ({"shuffle": "patch"}, "unknown shuffle 'patch': did you mean 'patches'?"),
        ({"placements": [[]]}, "placement must be text, got []"),
    ],
)
def test_an_evaluation_names_the_argument_that_is_wrong(recipe, monkeypatch, arguments, message):
    monkeypatch.setattr(Run, "result", lambda run: {})  # as if it was finished
    toolkit.train(recipe, out="run", overrides=SHORT, steps=1)
    with pytest.raises((TypeError, ValueError)) as raised:
        toolkit.evaluate(**{"run": "run"} | arguments)
    assert message in str(raised.value)
