"""Training with random positions: when they are drawn, and that a resumed run draws the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("tests.training.requirements")
import yaml

from liere import vit
from liere.cli import main
from liere.runs.checkpoints import load_checkpoint
from liere.runs.run import Run, open_run
from liere.training.classifier import Classifier
from liere.training.fit import train
from tests.training.tiny import CONFIG, STEPS, differences, make_run, quiet, resume, stop_after, write_config

pytestmark = quiet
AMOUNTS = {"position_shift": 1.75, "position_stretch": 1.2, "position_zoom": 1.3, "position_noise": 0.3}
PARTS = 2  # per step, as in `CONFIG`


def make_placed_run(folder: Path, **fields: Any) -> Run:
    return make_run(folder, **{f"model__{name}": value for name, value in AMOUNTS.items()}, **fields)


def remember_draws(patch: pytest.MonkeyPatch) -> list[Tensor]:
    """Return a list that receives the positions of every forward pass in training."""
    found: list[Tensor] = []
    augment = vit.augment_positions

    def remember(*arguments, **options):
        found.append(augment(*arguments, **options))
        return found[-1]

    patch.setattr(vit, "augment_positions", remember)
    return found


@pytest.fixture
def drawn(monkeypatch):
    return remember_draws(monkeypatch)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A finished run, and the positions it drew."""
    run = make_placed_run(tmp_path_factory.mktemp("runs") / "uninterrupted")
    with pytest.MonkeyPatch.context() as patch:
        found = remember_draws(patch)
        train(run, say=print)
    return run, found


class TestDraws:
    def test_every_part_of_every_step_has_its_own_and_validation_has_none(self, uninterrupted):
        _, found = uninterrupted
        assert len(found) == STEPS * PARTS
        assert len({tuple(positions.flatten().tolist()) for positions in found}) == STEPS * PARTS

    def test_they_depend_on_the_seed_of_the_run_alone(self, uninterrupted, tmp_path, drawn):
        torch.manual_seed(1234)
        stop_after(make_placed_run(tmp_path / "same"), 2)
        _, expected = uninterrupted
        assert all(torch.equal(*pair) for pair in zip(drawn, expected[: 2 * PARTS], strict=True))
        del drawn[:]
        stop_after(make_placed_run(tmp_path / "other", training__seed=7), 2)
        assert not any(torch.equal(*pair) for pair in zip(drawn, expected[: 2 * PARTS], strict=True))

    def test_processes_have_their_own(self, tmp_path, drawn, monkeypatch):
        for rank in (0, 1):
            with monkeypatch.context() as patch:
                patch.setattr(Classifier, "global_rank", rank)
                stop_after(make_placed_run(tmp_path / str(rank)), 1)
        assert len({tuple(positions.flatten().tolist()) for positions in drawn}) == 2 * PARTS

    def test_they_matter(self, tmp_path):
        states = []
        for name, make in (("plain", make_run), ("placed", make_placed_run)):
            run = make(tmp_path / name)
            stop_after(run, 1)
            states.append(load_checkpoint(run.checkpoints / "last.ckpt", run.config.fingerprint).state_dict)
        assert not torch.equal(*(state["encoding.generators"] for state in states))


class TestResumed:
    @pytest.mark.parametrize("steps", [1, 5])
    def test_a_run_that_was_stopped_draws_and_ends_the_same(self, uninterrupted, tmp_path, drawn, steps):
        run = make_placed_run(tmp_path / "run")
        stop_after(run, steps)
        resume(run)
        expected, draws = uninterrupted
        assert all(torch.equal(*pair) for pair in zip(drawn, draws, strict=True))
        assert differences(expected, run) == []

    def test_a_run_that_crashed_between_parts_draws_and_ends_the_same(
        self, uninterrupted, tmp_path, drawn, monkeypatch
    ):
        run = make_placed_run(tmp_path / "run")
        original, calls = Classifier.training_step, []

        def failing(self, *arguments):
            calls.append(None)
            if len(calls) == 14:  # the second part of step 7
                raise ZeroDivisionError
            return original(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(Classifier, "training_step", failing)
            with pytest.raises(ZeroDivisionError):
                train(run, say=print)
        assert load_checkpoint(run.checkpoints / "last.ckpt").step == 6
        resume(run)
        expected, draws = uninterrupted
        again = draws[:13] + draws[12:]  # the first part of step 7 is repeated
        assert all(torch.equal(*pair) for pair in zip(drawn, again, strict=True))
        assert differences(expected, run) == []

    def test_with_another_place_of_cls_other_scores_and_muon(self, tmp_path):
        options = {"model__cls_position": "unseen", "model__attention_scale": "log", "training__examples": 16}
        options |= {"optimizer__name": "muon", "optimizer__muon_for_qkv": False}
        whole, stopped = (make_placed_run(tmp_path / name, **options) for name in ("whole", "stopped"))
        train(whole, say=print)
        stop_after(stopped, 1)
        resume(stopped)
        assert differences(whole, stopped) == []


@pytest.mark.parametrize("option", [*AMOUNTS, "cls_position"])
def test_an_encoding_without_coordinates_is_refused_in_a_line_before_there_is_a_run(tmp_path, capsys, option):
    value = str(AMOUNTS.get(option, "center"))
    words = ["--model.encoding", "absolute", f"--model.{option}", value]
    assert main(["train", "--config", str(write_config(tmp_path)), "--out", str(tmp_path / "run"), *words]) == 2
    error = capsys.readouterr().err
    assert f"{option}=" in error
    assert value in error
    assert "use an encoding with coordinates" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


# Lightning starts this script again for each process.
SCRIPT = """
import json, os, sys
from liere import vit
augment = vit.augment_positions
def remember(*arguments, **options):
    found = augment(*arguments, **options)
    with open(os.environ["DRAWS"], "a") as file:
        file.write(json.dumps([os.environ.get("LOCAL_RANK", "0"), found.tolist()]) + chr(10))
    return found
vit.augment_positions = remember
from liere.cli import main
sys.exit(main())
"""


@pytest.mark.slow
def test_two_processes_draw_their_own_and_go_on_the_same(tmp_path, monkeypatch):
    content = yaml.safe_load(CONFIG)
    content["model"] |= AMOUNTS
    content["optimizer"] |= {"name": "muon"}
    content["hardware"] |= {"devices": 2}
    config = write_config(tmp_path, yaml.safe_dump(content))
    (tmp_path / "script.py").write_text(SCRIPT)

    def draws(name: str, *words: str | Path) -> dict[str, list[Any]]:
        monkeypatch.setenv("DRAWS", str(tmp_path / f"{name}.jsonl"))
        command = [sys.executable, str(tmp_path / "script.py"), "train", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        found: dict[str, list[Any]] = {"0": [], "1": []}
        for line in (tmp_path / f"{name}.jsonl").read_text().splitlines():
            rank, positions = json.loads(line)
            found[rank].append(positions)
        return found

    whole = draws("whole", "--config", config, "--out", tmp_path / "whole")
    assert [len(found) for found in whole.values()] == [STEPS * PARTS] * 2
    assert len({str(positions) for found in whole.values() for positions in found}) == 2 * STEPS * PARTS
    first = draws("first", "--config", config, "--out", tmp_path / "run", "--steps", "4")
    rest = draws("rest", "--resume", tmp_path / "run")
    assert {rank: first[rank] + rest[rank] for rank in whole} == whole
    assert differences(open_run(tmp_path / "whole"), open_run(tmp_path / "run")) == []
