from __future__ import annotations

import csv
import math
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F

pytest.importorskip("tests.training.requirements")
from liere.evaluation import evaluate as evaluate_module
from liere.evaluation.evaluate import evaluate
from liere.evaluation.intervals import accuracy_interval, mean_interval
from liere.evaluation.predictions import Predictions
from liere.runs.model import load_model
from liere.runs.run import open_run
from liere.training.fit import train
from liere.training.stop_requests import StoppedError, StopRequest
from tests.training.tiny import make_run, quiet

pytestmark = quiet


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("evaluate") / "run")
    train(run, say=print)
    assert run.final_weights.read_bytes() != run.best_weights.read_bytes()
    return run


@pytest.fixture
def run(finished):
    """The finished run, without evaluations."""
    finished.evaluation_file.unlink(missing_ok=True)
    for file in finished.folder.glob("predictions/*"):
        file.unlink()
    return finished


@torch.no_grad()
def plain_predictions(run, size: int, examples: int, weights: str = "final") -> Predictions:
    """Classify one example at a time."""
    model = load_model(run.config, run.folder / f"{weights}.safetensors")
    assert not model.training
    data = run.config.data.load("test", size=size)
    found = Predictions([], [], [], [])
    for index in range(examples):
        images, labels = data.batch([index])
        logits = model((images.float() / 255 - 0.9) / 0.3)
        found.ids.append(index)
        found.labels.append(int(labels))
        found.predictions.append(int(logits.argmax()))
        found.losses.append(float(F.cross_entropy(logits, labels)))
    return found


@pytest.mark.parametrize("weights", ["final", "best"])
def test_predictions_are_those_of_a_plain_loop(run, weights):
    lines: list[str] = []
    records = evaluate(run, [36, 60], examples=23, batch_size=10, best=weights == "best", say=lines.append)
    assert [record["size"] for record in records] == [36, 60]
    assert [line.partition(",")[0][:13] for line in lines] == ["run: 36 px: a", "run: 60 px: a"]
    for record in records:
        expected = plain_predictions(run, record["size"], 23, weights)
        found = Predictions.read(run.folder / record["predictions"])
        assert found.ids == list(range(23))
        assert found.labels == expected.labels
        assert found.predictions == expected.predictions
        assert found.losses == pytest.approx(expected.losses, rel=1e-4)
        assert (record["examples"], record["weights"]) == (23, weights)
        assert record["accuracy"] == accuracy_interval(expected.correct).as_dict()
        assert record["loss"]["value"] == pytest.approx(mean_interval(expected.losses).value, rel=1e-4)
    assert run.evaluations() == records


def test_batches_do_not_matter(run):
    files = []
    for batch_size in (1, 7, 100):
        evaluate(run, [36], examples=15, batch_size=batch_size, say=print)
        files.append(Predictions.read(run.folder / "predictions" / "final-test-36.csv"))
    for other in files[1:]:
        assert other.predictions == files[0].predictions
        assert other.losses == pytest.approx(files[0].losses, rel=1e-4)


def test_sizes_are_added_and_replaced(run):
    evaluate(run, [48], examples=5, say=print)
    evaluate(run, [36], examples=6, say=print)
    assert [(record["size"], record["examples"]) for record in run.evaluations()] == [(36, 6), (48, 5)]
    evaluate(run, [48], examples=7, say=print)
    assert [(record["size"], record["examples"]) for record in run.evaluations()] == [(36, 6), (48, 7)]
    with (run.folder / "predictions" / "final-test-48.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 7


def test_an_unfinished_run_is_refused(tmp_path):
    run = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match="is not finished: run liere train --resume"):
        evaluate(run, [36], say=print)


def test_a_size_that_does_not_fit_is_reported_before_anything_is_predicted(run):
    with pytest.raises(ValueError, match="multiple of 12 px"):
        evaluate(run, [36, 100], examples=5, say=print)
    assert run.evaluations() == []


def test_damaged_records_are_reported_before_anything_is_predicted(run):
    evaluate(run, [36], examples=4, say=print)
    kept = {path: path.read_bytes() for path in (run.folder / "predictions").iterdir()}
    run.evaluation_file.write_text("[{")
    with pytest.raises(ValueError, match=r"evaluation\.json is damaged .*: delete it and evaluate again"):
        evaluate(run, [36], examples=2, say=print)
    assert {path: path.read_bytes() for path in (run.folder / "predictions").iterdir()} == kept


def test_weights_that_are_not_finite_are_named_and_change_nothing(run, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(run.folder, tmp_path / "copy")
    copy = open_run(tmp_path / "copy")
    before = {path: path.read_bytes() for path in (copy.folder / "predictions").glob("*")}
    save_file({name: weight * math.nan for name, weight in load_file(copy.final_weights).items()}, copy.final_weights)
    with pytest.raises(ValueError, match=r"final\.safetensors gives losses that are not finite, so it is damaged or"):
        evaluate(copy, [36], examples=5, say=print)
    assert {path: path.read_bytes() for path in (copy.folder / "predictions").glob("*")} == before


def test_weights_of_another_model_are_named(run, tmp_path):
    other = open_run(run.folder).config.model_copy(update={"model": run.config.model.model_copy(update={"dim": 32})})
    with pytest.raises(ValueError, match=r"final\.safetensors does not fit the configuration") as raised:
        load_model(other, run.final_weights)
    assert "\n" not in str(raised.value)
    (tmp_path / "w.safetensors").write_bytes(run.final_weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"w\.safetensors"):
        load_model(run.config, tmp_path / "w.safetensors")


@pytest.mark.slow
def test_two_processes_write_the_same(run):
    command = [sys.executable, "-m", "liere.cli", "eval", str(run.folder), "--examples", "45", "--batch-size", "10"]
    outputs = []
    for devices in ("1", "2"):
        done = subprocess.run(
            [*command, "--sizes", "36", "48", "--devices", devices, "--accelerator", "cpu"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("px: accuracy") == 2
        files = [run.folder / "predictions" / f"final-test-{size}.csv" for size in (36, 48)]
        outputs.append(([file.read_bytes() for file in files], run.evaluations()))
    (files, records), (files_of_two, records_of_two) = outputs
    assert files_of_two == files
    for one, two in zip(records, records_of_two, strict=True):
        # On some processors, a product of matrices depends on where in memory they are, in the last bit.
        loss, loss_of_two = one.pop("loss"), two.pop("loss")
        assert loss_of_two.pop("method") == loss.pop("method")
        assert loss_of_two == pytest.approx(loss, rel=1e-7)
    assert records_of_two == records


def test_ctrl_c_is_an_interrupt_and_sizes_before_are_kept(run, monkeypatch):
    handler = signal.getsignal(signal.SIGINT)
    evaluate(run, [36], examples=4, say=print)
    monkeypatch.setattr(
        evaluate_module._Predictor, "predict_step", lambda *arguments: os.kill(os.getpid(), signal.SIGINT)
    )
    with pytest.raises(KeyboardInterrupt):
        evaluate(run, [48], examples=4, say=print)
    assert signal.getsignal(signal.SIGINT) is handler
    assert [record["size"] for record in run.evaluations()] == [36]


def test_nobody_else_changes_the_record_between_reading_and_writing_it(run, monkeypatch):
    merge, locked = evaluate_module.merge_evaluations, []

    def check(*arguments):
        with pytest.raises(ValueError, match="in use by another process"), run.lock():
            pass
        locked.append(True)

    def write(self, path):
        check()
        original(self, path)

    original = Predictions.write
    monkeypatch.setattr(Predictions, "write", write)  # otherwise file and record could come from different processes
    monkeypatch.setattr(evaluate_module, "merge_evaluations", lambda *arguments: check() or merge(*arguments))
    left = run.folder / ".evaluation.json.1.tmp"
    left.touch()  # left by a killed process
    evaluate(run, [36], examples=5, say=print)
    assert locked == [True, True]
    assert not left.exists()
    with run.lock():
        pass


@pytest.mark.parametrize("is_finished", [False, True])
def test_predictions_of_a_run_that_is_trained_longer_meanwhile_are_not_those_of_its_new_weights(
    run, tmp_path, monkeypatch, is_finished
):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    predict = evaluate_module._predict

    def train_longer_and_predict(*arguments):
        request = None if is_finished else StopRequest(further_steps=1)
        with nullcontext() if is_finished else pytest.raises(StoppedError):
            train(open_run(folder, {"training.examples": "112"}), say=print, request=request)
        predict(*arguments)

    monkeypatch.setattr(evaluate_module, "_predict", train_longer_and_predict)
    with pytest.raises(ValueError, match=r"was trained longer while it was being evaluated.*evaluate again"):
        evaluate(open_run(folder), [36], examples=4, say=print)
    assert not (folder / "evaluation.json").exists()
    assert not (folder / "predictions").exists()


@pytest.mark.parametrize(
    "place", ["../elsewhere.csv", "/dev/zero", "config.yaml", "predictions", "predictions/../x.csv", None]
)
def test_predictions_outside_of_the_run_are_not_read(run, place):
    with pytest.raises(ValueError, match=r"refers to .*, which is not a predictions file of the run: .*evaluate again"):
        run.predictions_file({"predictions": place})


def test_a_link_out_of_the_run_is_not_followed(run, tmp_path):
    (tmp_path / "other.csv").write_text("id,label,prediction,loss\n")
    (run.folder / "predictions").mkdir(exist_ok=True)
    (run.folder / "predictions" / "link.csv").symlink_to(tmp_path / "other.csv")
    with pytest.raises(ValueError, match="not a predictions file of the run"):
        run.predictions_file({"predictions": "predictions/link.csv"})
