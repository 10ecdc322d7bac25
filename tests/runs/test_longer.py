from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from liere.evaluation.evaluate import evaluate
from liere.runs import longer
from liere.runs.checkpoints import load_checkpoint
from liere.runs.longer import is_longer, make_longer
from liere.runs.run import FACTS, open_run
from liere.runs.stored_data import read_stored_data
from liere.training.fit import train
from liere.training.optimizer import _FusedAdamW
from liere.training.stop_requests import StoppedError, StopRequest
from tests.training.tiny import STEPS, make_run, quiet

pytestmark = quiet
LONGER = {"training.examples": "112"}  # 14 steps instead of 9


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("runs") / "run")
    train(run, say=print)
    evaluate(run, [36], examples=4, say=print)
    return run


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished.folder, tmp_path / "run")


def contents(folder):
    """Return the names of the files of a run, without those that only say who worked on it."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".lock"))


def test_a_finished_run_goes_on_to_more_examples(finished, folder, capsys):
    assert main(["train", "--resume", str(folder), "--training.examples", "112"]) == 0
    run = open_run(folder)
    assert run.config.training.examples == 112
    assert (run.result()["step"], run.result()["examples"]) == (14, 112)
    assert run.result()["fingerprint"] == run.config.fingerprint != finished.config.fingerprint
    assert load_checkpoint(run.checkpoints / "last.ckpt", run.config.fingerprint).step == 14
    steps = [int(row["step"]) for row in run.metric_rows()]
    assert steps == sorted(steps)
    assert steps[-1] == 14
    assert f"run: resuming after step {STEPS} of 14" in capsys.readouterr().err


def test_what_the_shorter_run_gave_is_kept_apart(finished, folder):
    train(open_run(folder, LONGER), say=print)
    run, kept = open_run(folder), open_run(folder / "shorter" / "72-examples")
    assert run.evaluations() == []
    assert not (folder / "predictions").exists()
    assert kept.config == finished.config
    assert kept.result() == finished.result()
    assert kept.evaluations() == finished.evaluations()
    for name in ("final.safetensors", "best.safetensors", "predictions/final-test-36.csv"):
        assert (kept.folder / name).read_bytes() == (finished.folder / name).read_bytes()
    assert run.final_weights.read_bytes() != finished.final_weights.read_bytes()
    assert evaluate(kept, [48], examples=4, say=print)[0]["size"] == 48


def test_the_same_number_changes_nothing_and_fewer_are_refused(folder, capsys):
    assert not is_longer(open_run(folder, {"training.examples": "72"}))
    assert main(["train", "--resume", str(folder), "--training.examples", "72"]) == 0
    assert not (folder / "shorter").exists()
    assert main(["train", "--resume", str(folder), "--training.examples", "64"]) == 2
    assert "is less than the 72" in capsys.readouterr().err


def test_a_run_that_is_not_finished_has_nothing_to_keep_apart(tmp_path, capsys):
    run = make_run(tmp_path / "run")
    with pytest.raises(StoppedError):
        train(run, say=print, request=StopRequest(further_steps=2))
    assert main(["train", "--resume", str(run.folder), "--training.examples", "112"]) == 0
    assert not (run.folder / "shorter").exists()
    assert open_run(run.folder).result()["examples"] == 112
    assert "run: training longer\n" in capsys.readouterr().err


def test_the_shorter_run_finds_data_that_move_with_it(folder, tmp_path):
    stored = read_stored_data(folder / FACTS)
    replace(stored, root=str(tmp_path / "gone"), root_from_run="../photos").write(folder / FACTS)
    kept = make_longer(open_run(folder, LONGER))
    assert read_stored_data(kept / FACTS).places(kept) == [tmp_path / "gone", tmp_path / "photos"]


def test_other_fields_are_refused(folder, capsys):
    assert main(["train", "--resume", str(folder), "--training.seed", "5"]) == 2
    assert "--training.seed cannot change when a run is resumed" in capsys.readouterr().err


def test_without_checkpoints_there_is_a_clear_error_and_nothing_is_lost(folder):
    shutil.rmtree(folder / "checkpoints")
    before = contents(folder)
    with pytest.raises(
        ValueError, match=r"cannot be trained longer: it has no complete checkpoint .*training\.start_from"
    ):
        train(open_run(folder, LONGER), say=print)
    assert contents(folder) == before
    assert open_run(folder).is_finished


@pytest.mark.parametrize("name", ["shorter", "shorter/72-examples"])
def test_nothing_is_written_through_a_link(folder, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=rf"{name} is a link, but a run may only write to its own folder: delete it"):
        make_longer(open_run(folder, LONGER))
    assert not list((tmp_path / "elsewhere").iterdir())
    assert open_run(folder).is_finished


def test_what_is_kept_is_copied_only_from_and_to_files(folder, tmp_path):
    kept = folder / "shorter" / "72-examples"
    kept.mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    (kept / "metrics.csv").symlink_to(tmp_path / "mine")
    (folder / "best.safetensors").unlink()
    (folder / "best.safetensors").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"best\.safetensors is a device, not a regular file"):
        make_longer(open_run(folder, LONGER))
    assert (tmp_path / "mine").read_text() == "mine"
    assert (kept / "metrics.csv").read_bytes() == (folder / "metrics.csv").read_bytes()


@pytest.mark.parametrize("step", ["save_checkpoint", "write_atomically"])
def test_killed_on_the_way_it_can_be_made_longer_again(folder, monkeypatch, step):
    def fail(*arguments):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(longer, step, fail)
        with pytest.raises(ZeroDivisionError):
            make_longer(open_run(folder, LONGER))
    assert open_run(folder).config.training.examples == 72
    assert not open_run(folder).is_finished  # although its last step was saved
    result = train(open_run(folder, LONGER), say=print)
    assert result["step"] == 14
    assert open_run(folder / "shorter" / "72-examples").result()["step"] == STEPS


def test_a_run_that_reached_its_target_is_not_for_want_of_examples(tmp_path):
    run = make_run(tmp_path / "early", training__stop_at_accuracy=0.01)
    train(run, say=print)
    with pytest.raises(ValueError, match=r"reached training\.stop_at_accuracy 0\.01"):
        train(open_run(run.folder, LONGER), say=print)
    assert open_run(run.folder).is_finished


def test_the_optimizer_goes_on_with_its_averages(finished, folder, monkeypatch):
    seen = {}
    original = _FusedAdamW.step  # torch may have replaced that of AdamW in it

    def step(self, *arguments, **options):
        seen.setdefault("averages", [state["exp_avg"].clone() for state in self.state.values()])
        return original(self, *arguments, **options)

    monkeypatch.setattr(_FusedAdamW, "step", step)
    train(open_run(folder, LONGER), say=print)
    saved = load_checkpoint(finished.checkpoints / "last.ckpt").optimizer["state"]
    assert all(torch.equal(one, state["exp_avg"]) for one, state in zip(seen["averages"], saved.values(), strict=True))


def test_evaluations_that_a_killed_attempt_has_set_aside_are_kept(finished, folder, monkeypatch):
    def fail(*arguments):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(longer, "save_checkpoint", fail)
        with pytest.raises(ZeroDivisionError):
            make_longer(open_run(folder, LONGER))
    train(open_run(folder), say=print)  # restores the shorter run
    evaluate(open_run(folder), [48], examples=4, say=print)
    kept = open_run(make_longer(open_run(folder, LONGER)))
    assert [record["size"] for record in kept.evaluations()] == [36, 48]
    assert all(kept.predictions_file(record).exists() for record in kept.evaluations())
    assert not (folder / "predictions").exists()
    assert open_run(folder).evaluations() == []


def test_damaged_evaluations_do_not_replace_those_that_were_set_aside(finished, folder, monkeypatch):
    set_aside = folder / "shorter" / "72-examples" / "evaluation.json"
    set_aside.parent.mkdir(parents=True)
    whole = (folder / "evaluation.json").read_bytes()
    set_aside.write_bytes(whole)
    (folder / "evaluation.json").write_text("[{")
    make_longer(open_run(folder, LONGER))
    assert set_aside.read_bytes() == whole
    assert set_aside.with_name("damaged-evaluation.json").read_text() == "[{"
    assert not (folder / "evaluation.json").exists()
