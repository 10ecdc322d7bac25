"""Runs that are kept with the project: the same predictions, and nothing written outside of the folder."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")

from liere.evaluation.predictions import Predictions
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.export import export_run
from liere.reproduce.reproduction import prepare
from liere.runs.conditions import Condition
from liere.runs.run import open_run
from tests.reproduce.fakes import finish, predictions


def test_exported_predictions_are_the_same(tmp_path):
    (one, *_) = prepare(CATALOGUE["main"], "small", {}, places=[tmp_path / "runs"], only=["CIFAR-10"]).wanted
    run = finish(one.planned, one.planned.folder, {Condition(32): predictions(0.5)})
    export_run(run, tmp_path / "kept")
    kept = open_run(tmp_path / "kept")
    (record,) = kept.evaluations("final")
    assert record["predictions"].endswith(".csv.gz")
    assert Predictions.read(kept.folder / record["predictions"]) == Predictions.read(
        run.folder / run.evaluations()[0]["predictions"]
    )
    first = (kept.folder / record["predictions"]).read_bytes()
    export_run(run, tmp_path / "kept")
    assert (kept.folder / record["predictions"]).read_bytes() == first


class TestHostileRuns:
    @pytest.fixture
    def run(self, tmp_path):
        (one, *_) = prepare(CATALOGUE["main"], "small", {}, places=[tmp_path / "runs"], only=["CIFAR-10"]).wanted
        return finish(one.planned, tmp_path / "made" / "run", {Condition(32): predictions(0.5)})

    @pytest.mark.parametrize("way", ["{}/predictions", "predictions/../../../made/run/predictions"])
    def test_predictions_are_exported_to_the_folder_and_nowhere_else(self, tmp_path, run, way):
        (record,) = run.evaluations()
        place = f"{way.format(run.folder)}/final-test-32.csv"
        run.evaluation_file.write_text(json.dumps([record | {"predictions": place}]))
        (tmp_path / "kept" / "made" / "run" / "predictions").mkdir(parents=True)
        before = {path for path in tmp_path.rglob("*") if path.is_file()}
        export_run(run, tmp_path / "kept" / "runs" / "new")
        written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
        assert all(path.is_relative_to(tmp_path / "kept" / "runs" / "new") for path in written)
        (record,) = open_run(tmp_path / "kept" / "runs" / "new").evaluations()
        assert record["predictions"] == "predictions/final-test-32.csv.gz"

    def test_a_device_is_not_copied_without_end(self, tmp_path, run):
        run.metrics.unlink()
        run.metrics.symlink_to("/dev/zero")
        with pytest.raises(ValueError, match=r"metrics\.csv is a device, not a regular file"):
            export_run(run, tmp_path / "kept")
