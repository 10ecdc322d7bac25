"""Only folders of failed starts are removed, never anything that was saved."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.runs.failed_starts import remove_failed_start
from liere.runs.records import COLUMNS
from liere.runs.run import open_run
from tests.training.tiny import make_run, quiet

pytestmark = quiet


@pytest.fixture
def run(tmp_path):
    """Return a run that has just been created, with what training writes before its first step."""
    run = make_run(tmp_path / "run")
    run.metrics.write_text(",".join(COLUMNS) + "\n")
    (run.folder / "tensorboard").mkdir()
    (run.folder / "tensorboard" / "events").touch()
    return run


def test_a_folder_without_anything_saved_is_removed(run, tmp_path):
    assert run.is_new
    remove_failed_start(run)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kept", ["result.json", "evaluation.json", "final.safetensors", "best.safetensors", "checkpoints/new-last.ckpt"]
)
def test_what_was_saved_is_kept(run, kept):
    (run.folder / kept).touch()
    remove_failed_start(run)
    assert (run.folder / kept).exists()
    assert run.metrics.exists()


def test_a_run_with_an_entry_in_its_log_is_kept(run):
    with run.metrics.open("a") as log:
        log.write("2,16,0.5" + "," * (len(COLUMNS) - 3) + "\n")
    assert any(run.metric_rows())
    remove_failed_start(run)
    assert run.metrics.exists()


def test_a_run_of_an_earlier_command_is_kept(run):
    for other in (open_run(run.folder), make_run(run.folder)):
        remove_failed_start(other)
        assert (run.folder / "config.yaml").exists()


def test_a_run_that_another_process_trains_is_kept(run):
    with run.lock():
        remove_failed_start(run)
        assert (run.folder / "config.yaml").exists()
