from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from safetensors.torch import load_file

from liere.runs.checkpoints import load_checkpoint
from liere.runs.model import build_model, load_model
from liere.runs.run import open_run
from liere.training import fit, stop_requests
from liere.training.classifier import Classifier
from liere.training.fit import train
from liere.training.optimizer import learning_rate_factor
from liere.training.progress import Progress
from liere.training.saving import Saver
from liere.training.stop_requests import StoppedError, StopRequest, stop_on_signals
from liere.training.training_log import Journal
from tests.training.tiny import CONFIG, STEPS, differences, make_run, quiet, resume, stop_after, write_config

pytestmark = quiet
LONG = "examples: 400_000, batch_size: 8, accumulate: 4"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("runs") / "uninterrupted")
    train(run, say=lambda line: pytest.fail(f"said {line!r}"))
    return run


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


def fail_at(monkeypatch, method: str, call: int) -> None:
    """Make a method of the classifier fail at this call, like a killed program."""
    original, calls = getattr(Classifier, method), []

    def failing(self, *arguments):
        calls.append(None)
        if len(calls) == call:
            raise ZeroDivisionError
        return original(self, *arguments)

    monkeypatch.setattr(Classifier, method, failing)


class TestStoppedAndResumed:
    @pytest.mark.parametrize("steps", [1, 5])
    def test_a_run_that_was_stopped_ends_the_same(self, uninterrupted, run, steps):
        stop_after(run, steps)
        checkpoint = load_checkpoint(run.checkpoints / "last.ckpt", run.config.fingerprint)
        assert checkpoint.step == steps
        lines: list[str] = []
        result = resume(run, say=lines.append)
        assert result["seconds"] > checkpoint.seconds > 0
        assert differences(uninterrupted, run) == []
        assert lines == [f"run: resuming after step {steps} of {STEPS}"]

    def test_a_run_that_was_stopped_again_and_again_ends_the_same(self, uninterrupted, run):
        for stops in range(1, 5):  # after steps 2, 4, 6 and 8, with and without a validation
            stop_after(run, 2)
            assert load_checkpoint(run.checkpoints / "last.ckpt").step == 2 * stops
        resume(run)
        assert differences(uninterrupted, run) == []

    def test_a_request_to_stop_after_the_last_step_is_no_stop(self, uninterrupted, run):
        result = train(run, say=print, request=StopRequest(further_steps=STEPS))
        assert result == run.result()
        assert differences(uninterrupted, run) == []

    def test_loader_workers_and_threads_do_not_matter(self, uninterrupted, run):
        stop_after(run, 3)
        train(open_run(run.folder, {"hardware.workers": "2"}), say=print)
        assert differences(uninterrupted, run) == []


class TestCrashed:
    @pytest.mark.parametrize(
        ("method", "call", "saved"),
        [
            ("training_step", 14, 6),  # in the second part of step 7
            ("training_step", 6, None),  # in step 3, after a log entry that is dropped
            ("validation_step", 2, 3),  # in the first validation, after a log entry of the same step
            ("validation_step", 8, 8),  # in the last validation; each has three batches
        ],
    )
    def test_a_run_that_crashed_goes_on_from_its_checkpoint(self, uninterrupted, run, monkeypatch, method, call, saved):
        with monkeypatch.context() as patch:
            fail_at(patch, method, call)
            with pytest.raises(ZeroDivisionError):
                train(run, say=print)
        lines: list[str] = []
        resume(run, say=lines.append)
        assert lines == ([] if saved is None else [f"run: resuming after step {saved} of {STEPS}"])
        assert differences(uninterrupted, run) == []

    @pytest.mark.parametrize("is_in_place", [True, False])
    def test_a_run_that_crashed_before_its_result_was_written_takes_no_step(
        self, uninterrupted, tmp_path, monkeypatch, is_in_place
    ):
        run = open_run(shutil.copytree(uninterrupted.folder, tmp_path / "copy"))
        run.result_file.unlink()
        run.final_weights.unlink()
        if not is_in_place:  # killed while the last checkpoint was renamed
            (run.checkpoints / "last.ckpt").rename(run.checkpoints / "new-last.ckpt")
        monkeypatch.setattr(Classifier, "training_step", lambda *_: pytest.fail("trained"))
        resume(run)
        assert differences(uninterrupted, run) == []
        assert {path.name for path in run.checkpoints.iterdir()} == {"last.ckpt", "previous.ckpt"}

    def test_a_checkpoint_of_before_grids_were_saved_is_resumed(self, uninterrupted, run):
        stop_after(run, 5)
        for path in run.checkpoints.iterdir():
            content = torch.load(path, weights_only=True)
            del content["state_dict"]["_extra_state"]
            torch.save(content, path)
        lines: list[str] = []
        resume(run, say=lines.append)
        assert lines == [f"run: resuming after step 5 of {STEPS}"]
        assert differences(uninterrupted, run) == []

    def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_used(self, uninterrupted, run):
        stop_after(run, 7)
        last = run.checkpoints / "last.ckpt"
        last.write_bytes(last.read_bytes()[:-1000])
        lines: list[str] = []
        resume(run, say=lines.append)
        assert lines[0].startswith(f"warning: {last} is truncated or not a checkpoint")
        assert lines[1:] == [f"run: resuming after step 6 of {STEPS}"]
        assert differences(uninterrupted, run) == []

    def test_a_run_without_a_whole_checkpoint_begins_again(self, uninterrupted, run):
        stop_after(run, 1)
        stop_after(run, 1)
        for name in ("last.ckpt", "previous.ckpt"):
            (run.checkpoints / name).write_text("nothing")
        lines: list[str] = []
        resume(run, say=lines.append)
        assert [line.split(":")[0] for line in lines] == ["warning", "warning", "run"]
        assert lines[2] == "run: no valid checkpoint is left, starting from the beginning"
        assert differences(uninterrupted, run) == []

    def test_a_line_of_the_log_that_was_cut_off_is_written_again(self, uninterrupted, run, monkeypatch):
        with monkeypatch.context() as patch:
            fail_at(patch, "validation_step", 1)
            with pytest.raises(ZeroDivisionError):
                train(run, say=print)
        assert run.metrics.read_text().splitlines()[-1].startswith("4,32,")
        run.metrics.write_text(run.metrics.read_text()[:-9])
        assert [row["step"] for row in run.metric_rows()] == ["2"]
        resume(run)
        assert differences(uninterrupted, run) == []

    def test_a_full_disk_is_named_and_what_was_saved_is_kept(self, uninterrupted, run, monkeypatch):
        stop_after(run, 5)
        before = {path.name: path.read_bytes() for path in run.checkpoints.iterdir()}

        def full(descriptor):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match=r"No space left on device.*free some space"):
                resume(run)
        assert {path.name: path.read_bytes() for path in run.checkpoints.iterdir()} == before
        resume(run)
        assert differences(uninterrupted, run) == []

    def test_a_checkpoint_that_is_a_folder_is_not_in_the_way(self, uninterrupted, run):
        stop_after(run, 7)
        (run.checkpoints / "last.ckpt").unlink()
        (run.checkpoints / "last.ckpt").mkdir()
        lines: list[str] = []
        resume(run, say=lines.append)
        assert lines[1] == f"run: resuming after step 6 of {STEPS}"
        assert differences(uninterrupted, run) == []
        assert (run.checkpoints / "refused-last.ckpt").is_dir()

    def test_a_run_without_a_folder_for_checkpoints_begins_again(self, uninterrupted, run):
        stop_after(run, 1)
        shutil.rmtree(run.checkpoints)
        resume(run)
        assert differences(uninterrupted, run) == []

    def test_a_full_disk_is_reported_once_when_tensorboard_finds_it(self, run, monkeypatch, capfd):
        events, opened = "tensorboard.compat.tensorflow_stub.io.gfile.LocalFileSystem._write", []

        def full(*arguments):
            opened.append(None)
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(events, full)
        with pytest.raises(OSError, match=r"No space left on device"):
            train(run, say=print)
        assert opened
        assert "Traceback" not in capfd.readouterr().err


class TestSignals:
    @pytest.mark.parametrize("part", [1, 2])
    def test_the_first_sigterm_saves_and_stops(self, uninterrupted, run, monkeypatch, part):
        original, calls = Classifier.training_step, []

        def training_step(self, *arguments):
            calls.append(None)
            if len(calls) == 8 + part:  # in step 5
                os.kill(os.getpid(), signal.SIGTERM)
            return original(self, *arguments)

        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        with monkeypatch.context() as patch:
            patch.setattr(Classifier, "training_step", training_step)
            request = StopRequest()
            with pytest.raises(StoppedError, match="by SIGTERM"):
                train(run, say=print, request=request)
        assert request.signal == signal.SIGTERM
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
        assert load_checkpoint(run.checkpoints / "last.ckpt").step == 5
        resume(run)
        assert differences(uninterrupted, run) == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    @pytest.mark.parametrize("moment", [(fit, "load_newest"), (Journal, "setup"), (Progress, "on_train_start")])
    def test_a_signal_before_the_first_step_saves_what_there_is(self, uninterrupted, run, monkeypatch, moment, number):
        place, name = moment
        original = getattr(place, name)

        def interrupted(*arguments, **options):
            os.kill(os.getpid(), number)
            return original(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(place, name, interrupted)
            with pytest.raises(StoppedError, match=f"by {signal.Signals(number).name}"):
                train(run, say=print)
        saved = [path.name for path in run.checkpoints.iterdir()]
        assert saved == (["last.ckpt"] if place is Progress else [])  # after the first step, which had already started
        resume(run)
        assert differences(uninterrupted, run) == []

    def test_the_signal_of_any_process_is_the_reason_of_all(self, run):
        journal = Journal(run, None, 0, time.monotonic)
        saver, asked = Saver(run, journal, None, StopRequest(), time.monotonic), []

        def reduce(found, reduce_op):
            asked.append((found.tolist(), reduce_op))
            return torch.maximum(found, torch.tensor([1, signal.SIGTERM]))  # from another process

        strategy = SimpleNamespace(root_device="cpu", reduce=reduce)
        trainer = SimpleNamespace(world_size=2, global_step=5, strategy=strategy)
        assert saver._reason(trainer) is None  # when no log entry is due
        trainer.global_step = 4
        assert saver._reason(trainer) == "by SIGTERM"
        assert saver.request.signal == signal.SIGTERM
        assert asked == [([0, 0], "max")]

    def test_lightning_leaves_signals_alone(self, run, monkeypatch):
        seen = []
        monkeypatch.setattr(Classifier, "on_train_start", lambda self: seen.append(signal.getsignal(signal.SIGTERM)))
        stop_after(run, 1)
        assert [handler.__module__ for handler in seen] == ["liere.training.stop_requests"]

    @pytest.fixture
    def handle_sigint(self):
        before = signal.getsignal(signal.SIGINT)
        yield lambda handler: signal.signal(signal.SIGINT, handler)
        signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_that_is_sent_twice_at_once_is_one_request(self, number):
        before, request = signal.getsignal(number), StopRequest()
        with stop_on_signals(request):
            for _ in range(3):  # as by `timeout`, or by a shell and its terminal
                os.kill(os.getpid(), number)
            assert request.signal == number
        assert signal.getsignal(number) is before

    def test_a_third_signal_does_what_it_always_does(self, handle_sigint, monkeypatch, capfd):
        monkeypatch.setattr(stop_requests, "REPEAT", 0.01)
        handle_sigint(signal.default_int_handler)
        request = StopRequest()
        with stop_on_signals(request):
            for _ in range(2):  # the second may have come at once, and only be handled late
                os.kill(os.getpid(), signal.SIGINT)
                assert request.signal == signal.SIGINT
                time.sleep(0.02)
            assert capfd.readouterr().err == "liere: saving after this step; another SIGINT exits without saving\n"
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)

    def test_a_signal_that_was_ignored_is_ignored(self, handle_sigint):
        handle_sigint(signal.SIG_IGN)
        request = StopRequest()
        with stop_on_signals(request):
            os.kill(os.getpid(), signal.SIGINT)
        assert request.signal is None

    def test_reasons_to_stop(self):
        assert StopRequest().reason(10**9) is None
        assert StopRequest(further_steps=3).reason(2) is None
        assert StopRequest(further_steps=3).reason(3) == "as requested"
        assert StopRequest(signal=signal.SIGINT).reason(0) == "by SIGINT"
        parent, alive = multiprocessing.Pipe(duplex=False)
        assert StopRequest(parent=parent).reason(0) is None
        alive.close()
        assert StopRequest(parent=parent).reason(0) == "because its parent is gone"


class TestEnds:
    def test_a_finished_run_is_left_as_it_is(self, uninterrupted, monkeypatch):
        before = {
            path: path.stat().st_mtime_ns
            for path in uninterrupted.folder.rglob("*")
            if not path.name.startswith(".lock")
        }
        monkeypatch.setattr(Classifier, "training_step", lambda *_: pytest.fail("trained"))
        assert resume(uninterrupted) == uninterrupted.result()
        after = {
            path: path.stat().st_mtime_ns
            for path in uninterrupted.folder.rglob("*")
            if not path.name.startswith(".lock")
        }
        assert after == before

    def test_a_run_holds_what_its_description_says(self, uninterrupted):
        names = {path.name for path in uninterrupted.folder.iterdir() if not path.name.startswith(".lock")}
        files = {"config.yaml", "facts.json", "metrics.csv", "result.json", "final.safetensors", "best.safetensors"}
        assert names == files | {"checkpoints", "tensorboard"}
        assert {path.name for path in uninterrupted.checkpoints.iterdir()} == {"last.ckpt", "previous.ckpt"}
        result = uninterrupted.result()
        assert (result["step"], result["examples"]) == (STEPS, 72)
        assert result["fingerprint"] == uninterrupted.config.fingerprint

    def test_a_second_trainer_is_refused_while_the_first_is_at_it(self, run):
        with run.lock(), pytest.raises(ValueError, match=r"is in use by another process: wait for it"):
            resume(run)
        assert list(run.checkpoints.iterdir()) == []
        stop_after(run, 1)  # the lock was released with the first

    def test_training_stops_early_once_it_is_good_enough(self, tmp_path, monkeypatch):
        run = make_run(tmp_path / "early", training__stop_at_accuracy=0.01)
        result = train(run, say=print)
        assert result["step"] == 4  # at the first validation
        assert result["examples"] == 32
        assert run.final_weights.read_bytes() == run.best_weights.read_bytes()
        weights = run.final_weights.read_bytes()
        run.result_file.unlink()
        run.final_weights.unlink()
        monkeypatch.setattr(Classifier, "training_step", lambda *_: pytest.fail("trained"))
        assert resume(run)["step"] == 4
        assert run.final_weights.read_bytes() == weights

    def test_best_weights_are_those_of_the_best_validation(self, uninterrupted):
        best = max(uninterrupted.curve(), key=lambda point: (point["accuracy"], -point["loss"]))
        assert uninterrupted.result()["best"] == {
            "step": best["examples"] // 8,
            "accuracy": best["accuracy"],
            "loss": best["loss"],
        }
        checks = {"best": best, "final": uninterrupted.curve()[-1]}
        images, labels = uninterrupted.config.data.load("val", length=10).batch(range(10))
        for name, expected in checks.items():
            model = load_model(uninterrupted.config, uninterrupted.folder / f"{name}.safetensors")
            with torch.no_grad():
                logits = model((images.float() / 255 - 0.9) / 0.3)
            loss = torch.nn.functional.cross_entropy(logits, labels)
            assert (logits.argmax(1) == labels).float().mean().item() == pytest.approx(expected["accuracy"])
            assert loss.item() == pytest.approx(expected["loss"], rel=1e-4)


class TestLog:
    def test_lines_are_after_every_second_step_and_every_validation(self, uninterrupted):
        rows = list(uninterrupted.metric_rows())
        assert [(int(row["step"]), bool(row["train_loss"]), bool(row["val_loss"])) for row in rows] == [
            (2, True, False),
            (4, True, False),
            (4, False, True),
            (6, True, False),
            (8, True, False),
            (8, False, True),
            (9, False, True),
        ]
        assert all(int(row["examples"]) == 8 * int(row["step"]) for row in rows)

    def test_the_learning_rate_of_a_line_is_that_of_its_step(self, uninterrupted):
        rates = {
            int(row["step"]): float(row["learning_rate"]) for row in uninterrupted.metric_rows() if row["train_loss"]
        }
        expected = {
            step: 2e-3 * learning_rate_factor(step - 1, total_steps=STEPS, warmup_steps=3) for step in (2, 4, 6, 8)
        }
        assert rates == pytest.approx(expected)


class TestTraining:
    def test_every_parameter_is_trained_and_generators_of_every_layer_are(self, uninterrupted):
        before = build_model(uninterrupted.config).state_dict()
        after = load_file(uninterrupted.final_weights)
        assert after.keys() == before.keys()
        unchanged = [name for name, tensor in before.items() if torch.equal(tensor, after[name])]
        assert unchanged == ["_extra_state"]  # the training grid
        generators = after["encoding.generators"] - before["encoding.generators"]
        assert len(generators) == 2
        assert bool((generators.flatten(1).abs().amax(1) > 0).all())
        # Adam's steps are at most about the learning rate, which is at most 1e-3 here.
        assert generators.abs().max() < STEPS * 1.1e-3

    def test_training_is_what_a_plain_loop_does(self, tmp_path):
        fields = {"dropout": 0.0, "attn_dropout": 0.0, "drop_path": 0.0}
        run = make_run(
            tmp_path / "run",
            **{f"model__{name}": value for name, value in fields.items()},
            optimizer__eps=1e-3,  # so that steps follow gradients, not their rounding errors
            training__examples=40,
        )
        train(run, say=print)
        model = build_model(run.config)
        decay = {name for name, p in model.named_parameters() if name.endswith("weight") and p.ndim == 2}
        rates = {name: 1e-3 if name == "encoding.generators" else 2e-3 for name, _ in model.named_parameters()}
        optimizer = torch.optim.AdamW(
            [
                {"params": [p], "lr": rates[name], "weight_decay": 0.01 if name in decay else 0.0, "rate": rates[name]}
                for name, p in model.named_parameters()
            ],
            eps=1e-3,
        )
        data = run.config.data.load("train")
        seen: list[int] = []
        from liere.data.batches import ExampleOrder

        order = ExampleOrder(50, seed=1)
        for step in range(5):
            examples = order[range(8 * step, 8 * step + 8)]
            seen += examples
            images, labels = data.batch(examples)
            loss = torch.nn.functional.cross_entropy(model((images.float() / 255 - 0.9) / 0.3), labels)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * [1 / 4, 2 / 4, 3 / 4, 1, 0.5][step]
            optimizer.step()
        assert len(set(seen)) == 40
        final = load_file(run.final_weights)
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(final[name], parameter.detach(), atol=1e-5, rtol=1e-4)

    def test_half_precision_trains_weights_in_full_precision(self, tmp_path, monkeypatch):
        run = make_run(tmp_path / "half", hardware__precision="bf16-mixed", training__examples=24)
        original, dtypes = Classifier.training_step, set()

        def training_step(self, *arguments):
            dtypes.add(self.model.head(torch.zeros(1, 16)).dtype)
            return original(self, *arguments)

        monkeypatch.setattr(Classifier, "training_step", training_step)
        stop_after(run, 1)
        resume(run)
        assert dtypes == {torch.bfloat16}
        after, before = load_file(run.final_weights), build_model(run.config).state_dict()
        del after["_extra_state"]  # the training grid
        assert {tensor.dtype for tensor in after.values()} == {torch.float32}
        assert all(
            bool(tensor.isfinite().all()) and not torch.equal(tensor, before[name]) for name, tensor in after.items()
        )

    def test_seeds_are_other_weights(self, uninterrupted, tmp_path):
        run = make_run(tmp_path / "other", training__seed=2, training__examples=8)
        assert any(
            not torch.equal(one, other)
            for one, other in zip(
                build_model(run.config).state_dict().values(),
                build_model(uninterrupted.config).state_dict().values(),
                strict=True,
            )
        )

    def test_making_a_model_leaves_the_global_generator_alone(self, uninterrupted):
        before = torch.get_rng_state()
        build_model(uninterrupted.config)
        assert torch.equal(torch.get_rng_state(), before)


def liere(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "liere.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_signal_to_the_whole_group_saves_with_any_number_of_workers(tmp_path, number, workers):
    config = write_config(tmp_path, CONFIG.replace("examples: 72, batch_size: 8, accumulate: 2", LONG))
    words = ["train", "--config", config, "--out", tmp_path / "run", "--hardware.workers", str(workers)]
    command = [sys.executable, "-c", "import sys; from liere.cli import main; sys.exit(main())", *map(str, words)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    metrics, deadline = tmp_path / "run" / "metrics.csv", time.monotonic() + 120
    while time.monotonic() < deadline and not (metrics.exists() and metrics.read_text().count("\n") > 1):
        time.sleep(0.1)
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + number, output
    assert "resume with: liere train --resume" in output
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt").step > 0


@pytest.mark.slow
def test_two_processes_train_stop_and_go_on_together(tmp_path):
    config, run = write_config(tmp_path), tmp_path / "run"
    hardware = ["--hardware.devices", "2", "--hardware.accelerator", "cpu"]
    stopped = liere("train", "--config", config, "--out", run, "--steps", "4", *hardware)
    assert stopped.returncode == 0, stopped.stderr
    assert "resume with: liere train --resume" in stopped.stdout
    assert load_checkpoint(run / "checkpoints" / "last.ckpt").step == 4
    assert not (run / "result.json").exists()
    finished = liere("train", "--resume", run)
    assert finished.returncode == 0, finished.stderr
    whole = liere("train", "--config", config, "--out", tmp_path / "whole", *hardware)
    assert whole.returncode == 0, whole.stderr
    assert whole.stdout.count("finished after 72 examples") == 1
    assert differences(open_run(run), open_run(tmp_path / "whole")) == []
    rows = list(open_run(run).metric_rows())
    assert [int(row["step"]) for row in rows] == [2, 4, 4, 6, 8, 8, 9]
