"""`liere bench training`: the parts of a run, and the bare loop that it is compared with."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("tests.training.requirements")
import torch

from liere.bench import training
from liere.bench.race import Race
from liere.bench.record import Settings
from liere.bench.training_parts import PARTS, WORK, RunParts
from liere.files.weights import load_weights
from liere.runs.model import build_model
from liere.runs.run import create_run
from liere.training.fit import train
from liere.training.optimizer import make_optimizer
from tests.training.tiny import quiet

pytestmark = [quiet, pytest.mark.usefixtures("hasty")]
TINY = training.QUICK | {"model.dim": "16", "model.depth": "2", "model.mlp_dim": "16", "hardware.threads": "1"}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(training, "QUICK", TINY)


class TestRunParts:
    def parts(self, *actions: str) -> dict[str, float]:
        """Return the parts of a run with these actions, `-` for the end of the last one; each takes a second."""
        now = iter(range(100))
        found, nested = RunParts(lambda: float(next(now))), []
        for action in actions:
            if action == "-":
                found.stop(nested.pop())
            else:
                nested.append(action)
                found.start(action)
        assert not nested
        return {part: seconds for part, seconds in found.finish().items() if seconds}

    def test_each_second_belongs_to_the_innermost_action_with_a_part(self):
        assert self.parts(
            *("[LightningModule]C.setup", "-", "run_training_epoch"),
            *("[_TrainingEpochLoop].train_dataloader_next", "-"),
            *("run_training_batch", "[Strategy]S.optimizer_step", "[Strategy]S.training_step", "[X]X.inner", "-", "-"),
            *("[Strategy]S.backward", "-", "-", "-"),
            *("[Callback]Journal.on_train_batch_end", "-", "[Callback]Saver.on_train_batch_end", "-", "-"),
        ) == {
            "start and end": 3,  # before, in and after the first hook
            "loader": 1,
            "forward": 3,
            "backward": 1,
            "optimizer step": 3,
            "logging": 1,
            "checkpoints": 1,
            "loop": 8,  # also after the epoch
        }

    def test_what_callbacks_do_once_is_part_of_the_start_and_end(self):
        assert self.parts("[Callback]Journal.on_train_start", "-", "[Callback]Saver.teardown", "-") == {
            "start and end": 5
        }

    def test_validation_is_what_happens_between_its_hooks(self):
        assert self.parts(
            "run_training_epoch",
            *("[LightningModule]C.on_validation_model_zero_grad", "-"),
            *("[_EvaluationLoop].val_next", "-", "[Strategy]S.validation_step", "-"),
            *("[Callback]Saver.on_validation_end", "-"),
            *("[LightningModule]C.on_validation_model_train", "-"),
            "-",
        ) == {"start and end": 1, "loop": 3, "validation": 8, "checkpoints": 1}


def test_the_parts_of_a_run_make_up_its_time(tiny, tmp_path):
    config = training._config(training.ENCODINGS["liere"] | TINY)
    parts = RunParts()
    started = parts.last
    train(create_run(tmp_path / "run", config), say=print, progress=False, profiler=parts)
    found = parts.finish()
    assert list(found) == list(PARTS)
    assert all(seconds > 0 for seconds in found.values())
    assert sum(found.values()) == pytest.approx(parts.last - started)
    assert not parts.nested


@pytest.mark.parametrize("encoding", training.ENCODINGS)
def test_a_bare_loop_learns_what_liere_train_learns(tmp_path, encoding, monkeypatch):
    """The weights agree to rounding, so both do the same work."""
    fields = TINY | {"training.examples": "32", "optimizer.warmup_steps": "0"}
    config = training._config(training.ENCODINGS[encoding] | fields)
    run = create_run(tmp_path / "run", config)
    train(run, say=print)
    built = []
    monkeypatch.setattr(training, "build_model", lambda config: built.append(build_model(config)) or built[0])

    def scheduled(model, config):
        """Return the optimizer with the learning rates of `liere train`."""
        optimizer = make_optimizer(model, config.optimizer)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / config.training.steps))
        )
        optimizer.register_step_post_hook(lambda *_: schedule.step())
        return optimizer

    loop = training._bare_loop(config, scheduled)
    learned = load_weights(run.final_weights)
    for _ in range(2):  # each turn starts from the beginning
        loop()
        for name, parameter in built[0].named_parameters():
            torch.testing.assert_close(parameter.detach(), learned[name], rtol=1e-4, atol=1e-5)


def test_every_loop_is_timed_for_every_encoding(tiny):
    answer = training.measure(Settings(quick=True, rounds=2))
    assert [row["encoding"] for row in answer.rows] == ["absolute", "liere"]
    for row in answer.rows:
        assert list(row["loops"]) == ["bare loop", "liere train", "bare loop, AdamW", "bare loop, fused AdamW"]
        assert row["loops"]["bare loop"]["ratio"]["median"] == 1
        assert list(row["shares"]) == list(PARTS)
        assert sum(share["median"] for share in row["shares"].values()) == pytest.approx(1, abs=0.05)
        assert 0 < row["not_the_model"]["median"] < 1
        assert row["examples"] == 32
    assert "torch.compile is left out of a quick run." in answer.notes


def test_shares_are_those_of_a_run_of_the_whole_length():
    config = training._config(training.ENCODINGS["absolute"])  # nine turns
    found = dict.fromkeys(PARTS, 0.0) | {"forward": 2.0, "loader": 1.0, "start and end": 9.0, "validation": 3.0}
    result = Race(training.BARE, {training.BARE: [2.0], training.TRAIN: [15.0], training.LIMIT: [0.5]})
    row = training._row("absolute", config, result, [found], operations=10**9)
    total = 9 * (2 + 1 + 3) + 9
    assert row["shares"]["forward"]["median"] == pytest.approx(18 / total)
    assert row["shares"]["start and end"]["median"] == pytest.approx(9 / total)
    assert row["not_the_model"]["median"] == pytest.approx(1 - 18 / (18 + 9 + 9))
    assert row["examples"] == 50 * 64
    trained = row["loops"][training.TRAIN]  # 3 seconds: without start and validation
    assert trained["ratio"]["median"] == pytest.approx(1.5)
    assert trained["examples_per_second"]["median"] == pytest.approx(3200 / 3)
    speed = row["operations_per_example"] * 3200 / 3
    assert trained["share_of_limit"]["median"] == pytest.approx(speed / 2e9)
    assert set(WORK) < set(PARTS)


def test_compile_is_left_out_where_it_fails():
    def fail() -> None:
        raise RuntimeError("no compiler")

    assert training._why_not(fail) == "torch.compile is left out, because it fails here: RuntimeError."
    assert training._why_not(lambda: None) == ""
