"""Whether a planned run is trained and tested."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("tests.training.requirements")
from liere.runs.run import create_run
from tests.comparison.plans import plan


def test_a_run_is_done_once_it_is_finished_and_evaluated_as_asked(tmp_path):
    (planned,) = plan(tmp_path, examples=20).runs
    assert not planned.is_done()
    run = create_run(planned.folder, planned.config)
    result = {"step": 4, "examples": 32, "seconds": 1.0, "parameters": 9, "encoding_parameters": 0, "best": None}
    result |= {"fingerprint": "", "date": "", "machine": {}, "versions": {}}
    run.result_file.write_text(json.dumps(result))
    assert not planned.is_done()
    record = {"size": 36, "examples": 20, "weights": "final", "accuracy": {"value": 0.5}, "predictions": "p.csv"}
    for records, done in [
        ([record], True),
        ([record | {"examples": 19}], False),
        ([record | {"weights": "best"}], False),
        ([record | {"size": 48}], False),
        ([record, record | {"size": 48}], True),
    ]:
        run.evaluation_file.write_text(json.dumps(records))
        assert planned.is_done() == done
    (all_examples,) = plan(tmp_path).runs
    assert not all_examples.is_done()
    run.evaluation_file.write_text(json.dumps([record | {"asked": None}]))
    assert all_examples.is_done()


def test_runs_of_another_recipe_are_left_alone(tmp_path):
    (run,) = plan(tmp_path).runs
    create_run(run.folder, run.config)
    assert [again.folder for again in plan(tmp_path).runs] == [run.folder]
    assert plan(tmp_path, overrides={"hardware.threads": "7"}).runs[0].folder == run.folder
    with pytest.raises(ValueError, match="none-seed0 contains a run of a different recipe: choose another --out"):
        plan(tmp_path, overrides={"model.dim": "32"})


def test_a_log_that_cannot_be_written_is_told(tmp_path):
    (run,) = plan(tmp_path).runs
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(run.folder.with_name(f"{run.folder.name}.log"))  # nobody reads it: opening it would wait for ever
    with pytest.raises(ValueError, match=r"none-seed0\.log is a named pipe, not a regular file: replace it"):
        plan(tmp_path)


def test_what_is_in_the_way_of_a_run_is_told(tmp_path):
    (run,) = plan(tmp_path).runs
    run.folder.mkdir(parents=True)
    plan(tmp_path)  # an empty folder is replaced
    (run.folder / "notes.txt").write_text("")
    message = r"none-seed0 is in the way of a run, but contains no run itself: delete or move it"
    with pytest.raises(ValueError, match=message):
        plan(tmp_path)
    (run.folder / "notes.txt").unlink()
    run.folder.rmdir()
    run.folder.write_text("")
    with pytest.raises(ValueError, match=message):
        plan(tmp_path)
