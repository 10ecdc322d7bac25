"""Exported runs have the same predictions, and nothing is written outside the folder."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")

from liere.evaluation.predictions import read_predictions
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.export import export_run
from liere.reproduce.reproduction import prepare
from liere.runs.archive import unpacked
from liere.runs.conditions import Condition
from liere.runs.run import open_run
from tests.reproduce.fakes import finish, predictions


def test_exported_predictions_are_the_same(tmp_path):
    (one, *_) = prepare(CATALOGUE["main"], "small", {}, places=[tmp_path / "runs"], only=["CIFAR-10"]).wanted
    run = finish(one.planned, one.planned.folder, {Condition(32): predictions(0.5)})
    file = export_run(run, tmp_path / "kept")
    assert file == tmp_path / "kept" / f"{run.folder.name}.tar.xz"
    kept = open_run(unpacked(tmp_path / "kept" / run.folder.name))
    assert one.planned.is_done(kept.folder)
    assert kept.config == run.config
    assert kept.result() == run.result()
    assert list(kept.metric_rows()) == list(run.metric_rows())
    (record,) = kept.evaluations("final")
    assert read_predictions(kept, record) == read_predictions(run, run.evaluations("final")[0])
    first = file.read_bytes()
    assert export_run(run, tmp_path / "kept").read_bytes() == first
    assert export_run(kept, tmp_path / "again").read_bytes() == first


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
        file = export_run(run, tmp_path / "kept" / "runs")
        assert {path for path in tmp_path.rglob("*") if path.is_file()} - before == {file}
        (record,) = open_run(unpacked(tmp_path / "kept" / "runs" / run.folder.name)).evaluations()
        assert record["predictions"] == "predictions/final-test-32.csv"

    def test_two_files_of_one_name_are_not_exported_as_one(self, tmp_path, run):
        (record,) = run.evaluations()
        other = record | {"size": 48, "predictions": "predictions/more/final-test-32.csv"}
        (run.folder / "predictions" / "more").mkdir()
        (run.folder / other["predictions"]).write_text("other")
        run.evaluation_file.write_text(json.dumps([record, other]))
        with pytest.raises(
            ValueError, match=r"refers to two different files named final-test-32\.csv: evaluate the run again"
        ):
            export_run(run, tmp_path / "kept")

    def test_a_device_is_not_copied_without_end(self, tmp_path, run):
        run.metrics.unlink()
        run.metrics.symlink_to("/dev/zero")
        with pytest.raises(ValueError, match=r"metrics\.csv is a device, not a regular file"):
            export_run(run, tmp_path / "kept")
