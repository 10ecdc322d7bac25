from __future__ import annotations

import json
import os
import tracemalloc

import pytest

pytest.importorskip("tests.training.requirements")

import numpy as np

from liere.evaluation.predictions import Predictions, read_predictions
from liere.files.reading import DamagedError, warn_once
from liere.runs import records
from liere.runs.records import COLUMNS, is_log, read_curve, read_evaluations, read_metrics, read_result
from liere.runs.run import open_run
from liere.training.fit import train
from tests.training.tiny import make_run, quiet

RESULT = {
    "step": 9,
    "examples": 72,
    "seconds": 1.5,
    "parameters": 1_000,
    "encoding_parameters": 0,
    "best": {"step": 9, "accuracy": 0.5, "loss": 1.0},
    "fingerprint": "0123",
    "date": "2026-01-01",
    "machine": {"cpu": "one", "cores": 2, "threads": 1, "memory_gb": 23.5},
    "versions": {"torch": "2", "timm": None},
}
EVALUATION = {
    "size": 36,
    "examples": 10,
    "asked": None,
    "weights": "final",
    "accuracy": {"value": 0.5, "low": 0.4, "high": 0.6},
    "loss": {"value": 1.0},
    "predictions": "predictions/test.csv",
}
STRANGE = ([], {}, None, "word", True, -1, 10**300, float("nan"), float("inf"), [[]], {"a": 1})
HEADER = ",".join(COLUMNS)


def write(path, content) -> None:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


class TestResult:
    def test_a_whole_one_is_returned_as_it_is(self, tmp_path):
        for change in ({}, {"best": None}, {"more": [1]}, {"best": RESULT["best"] | {"loss": float("inf")}}):
            write(tmp_path / "result.json", RESULT | change)
            assert read_result(tmp_path / "result.json") == RESULT | change

    @pytest.mark.parametrize("field", RESULT)
    def test_a_field_that_is_missing_is_named(self, tmp_path, field):
        write(tmp_path / "result.json", {name: value for name, value in RESULT.items() if name != field})
        with pytest.raises(DamagedError, match=rf"result\.json is damaged \(it has no {field}\)$"):
            read_result(tmp_path / "result.json")

    @pytest.mark.parametrize("field", ["step", "examples", "seconds", "parameters", "encoding_parameters"])
    @pytest.mark.parametrize("value", STRANGE)
    def test_a_number_that_is_something_else_is_named(self, tmp_path, field, value):
        write(tmp_path / "result.json", RESULT | {field: value})
        with pytest.raises(DamagedError, match=rf"result\.json is damaged \({field} must be ") as raised:
            read_result(tmp_path / "result.json")
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize(
        "change",
        [
            {"best": []},
            {"best": {"accuracy": 0.5}},
            {"best": {"step": 1, "accuracy": 2, "loss": 1.0}},
            {"fingerprint": 7},
            {"date": None},
            {"machine": None},
            {"machine": {"threads": "many"}},
            {"machine": {"cpu": {"deep": 1}}},
            {"versions": ["torch"]},
            {"versions": {"torch": 2}},
        ],
    )
    def test_other_fields_that_are_something_else_are_reported(self, tmp_path, change):
        write(tmp_path / "result.json", RESULT | change)
        with pytest.raises(DamagedError, match=r"result\.json is damaged \("):
            read_result(tmp_path / "result.json")

    @pytest.mark.parametrize("content", [b"", b"{", b"[" * 99_999, b"\xff\xfe{\x00}\x00", b"null", b"[]", b"7", b"{}"])
    def test_a_damaged_one_does_not_count_as_finished(self, tmp_path, content):
        run = make_run(tmp_path / "run")
        write(run.result_file, RESULT)
        assert run.is_finished
        write(run.result_file, content)
        assert not run.is_finished
        with pytest.raises(ValueError, match=r"result\.json is damaged \(.*\): restore it with liere train --resume "):
            run.result()

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        run = make_run(tmp_path / "run")
        for file in (run.result_file, run.evaluation_file, run.metrics):
            os.mkfifo(file)
        assert not run.is_finished
        assert run.curve() == []
        with pytest.raises(ValueError, match=r"result\.json is a named pipe"):
            run.result()
        with pytest.raises(ValueError, match=r"evaluation\.json is a named pipe"):
            run.evaluations()

    def test_a_link_to_itself_is_reported(self, tmp_path):
        run = make_run(tmp_path / "run")
        for file in (run.result_file, run.evaluation_file, run.metrics):
            file.symlink_to(file.name)
        assert not run.is_finished
        assert "leads to itself" in run.damage()
        assert run.curve() == []
        with pytest.raises(ValueError, match=r"evaluation\.json is a link that leads to itself"):
            run.evaluations()

    def test_weights_that_are_gone_are_reported_if_they_can_be_restored(self, tmp_path):
        run = make_run(tmp_path / "run")
        write(run.result_file, RESULT)
        assert run.is_finished  # archived without its weights
        (run.checkpoints / "last.ckpt").touch()
        assert not run.is_finished
        assert run.damage() == f"{run.final_weights} is missing"


def test_a_lock_that_leads_to_another_file_is_refused(tmp_path):
    run = make_run(tmp_path / "run")
    (tmp_path / "mine").write_text("mine")
    (run.folder / ".lock").symlink_to(tmp_path / "mine")
    with (
        pytest.raises(ValueError, match=r"\.lock is a link, but a run may only write to its own folder: delete"),
        run.lock(),
    ):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["checkpoints", "predictions", "tensorboard"])
def test_folders_of_a_run_that_lead_out_of_it_are_refused(tmp_path, name):
    run = make_run(tmp_path / "run")
    (tmp_path / "mine").mkdir()
    if (run.folder / name).exists():
        (run.folder / name).rmdir()
    (run.folder / name).symlink_to(tmp_path / "mine")
    with pytest.raises(ValueError, match=rf"{name} is a link, but a run may only write to its own folder: delete it"):
        train(run, say=print)
    assert list((tmp_path / "mine").iterdir()) == []


@quiet
def test_a_run_with_a_damaged_result_and_a_damaged_log_is_finished_again(tmp_path, capsys):
    run = make_run(tmp_path / "run", training__validation_examples=4, training__examples=16)
    result, lines = train(run, say=print), []
    run.result_file.write_text("{")
    assert train(open_run(run.folder), say=lines.append)["best"] == result["best"]
    assert [line for line in lines if "result.json is damaged" in line and "does not count as finished" in line]
    assert open_run(run.folder).is_finished
    weights = run.final_weights.read_bytes()
    run.final_weights.unlink()
    assert not run.is_finished
    train(open_run(run.folder), say=print)
    assert run.final_weights.read_bytes() == weights
    run.result_file.unlink()
    (run.checkpoints / "last.ckpt").unlink()
    (run.checkpoints / "previous.ckpt").unlink(missing_ok=True)
    run.metrics.write_bytes(b"\x00\xff\n" * 3)
    assert train(open_run(run.folder), say=print)["best"] == result["best"]
    assert run.metrics.read_text().startswith(HEADER)
    assert (run.folder / "refused-metrics.csv").read_bytes() == b"\x00\xff\n" * 3


class TestEvaluations:
    def test_whole_ones_are_returned_as_they_are(self, tmp_path):
        records = [EVALUATION, EVALUATION | {"weights": "best"}, EVALUATION | {"policy": "rescale", "more": 1}]
        write(tmp_path / "evaluation.json", records)
        assert read_evaluations(tmp_path / "evaluation.json") == records

    @pytest.mark.parametrize("field", ["size", "examples", "skipped", "weights", "accuracy", "predictions"])
    @pytest.mark.parametrize("value", STRANGE)
    def test_a_field_that_is_something_else_is_reported(self, tmp_path, field, value):
        if field == "predictions" and value == "word":
            return
        run = make_run(tmp_path / "run")
        write(run.evaluation_file, [EVALUATION | {field: value}])
        with pytest.raises(ValueError, match=r"evaluation\.json is damaged \(.*\): delete it and evaluate again$"):
            run.evaluations()

    @pytest.mark.parametrize(
        "content",
        [
            {},
            None,
            "text",
            [None],
            [[]],
            [EVALUATION, EVALUATION],
            [EVALUATION | {"policy": "other"}],
            [EVALUATION | {"policy": None}],
            [EVALUATION | {"placement": "nowhere"}],
            [EVALUATION | {"accuracy": {"value": "high"}}],
            [EVALUATION | {"accuracy": {}}],
            *(
                [{name: value for name, value in EVALUATION.items() if name != lacking}]
                for lacking in ("size", "weights")
            ),
        ],
    )
    def test_anything_else_is_reported(self, tmp_path, content):
        write(tmp_path / "evaluation.json", content)
        with pytest.raises(DamagedError, match=r"evaluation\.json is damaged \(") as raised:
            read_evaluations(tmp_path / "evaluation.json")
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize("name", ["a\0b", "a" * 5_000, "\ud800", "../x", ""])
    def test_a_name_that_no_file_of_predictions_can_have_is_reported(self, tmp_path, name):
        run = make_run(tmp_path / "run")
        with pytest.raises(
            ValueError, match=r"evaluation\.json refers to '.*', which is not a predictions file of the run: delete"
        ) as raised:
            run.predictions_file({"predictions": f"predictions/{name}" if name else name})
        assert len(str(raised.value)) < 1_000

    def test_errors_without_number_are_not_collected(self, tmp_path):
        write(tmp_path / "evaluation.json", b"[" + b"{}," * 1_000_000 + b"{}]")  # took gigabytes without the limit
        with pytest.raises(DamagedError, match=r"damaged \(it has 1,000,001 records, more than 10,000\)"):
            read_evaluations(tmp_path / "evaluation.json")
        write(tmp_path / "result.json", RESULT | {"machine": {str(number): [] for number in range(20_000)}})
        with pytest.raises(DamagedError, match=r"result\.json has [\d,]+ bytes, but at most 100,000 are read"):
            read_result(tmp_path / "result.json")

    def test_predictions_must_be_as_many_as_the_record_says(self, tmp_path):
        run = make_run(tmp_path / "run")
        Predictions([0, 1], [0, 1], [0, 1], [0.5, 0.5]).write(run.folder / EVALUATION["predictions"])
        assert len(read_predictions(run, EVALUATION | {"examples": 2}).ids) == 2
        with pytest.raises(
            ValueError, match=r"test\.csv has 2 predictions, but .*evaluation\.json says 10: evaluate again"
        ):
            read_predictions(run, EVALUATION)


class TestMetrics:
    ROW = "10,80,1.5,0.001,2.3,,"
    VALIDATION = "20,160,3.0,,,1.5,0.25"

    @pytest.fixture(autouse=True)
    def forget(self):
        """Reset the record of printed warnings, so that each test sees its own."""
        warn_once.cache_clear()

    def read(self, tmp_path, content: str | bytes):
        file = tmp_path / "metrics.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [",".join(row.values()) for row in read_metrics(file)]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_whole_lines_are_read_and_one_that_is_being_written_is_left_out(self, tmp_path, capsys, end):
        text = end.join([HEADER, self.ROW, self.VALIDATION, "30,2"])
        assert self.read(tmp_path, text) == [self.ROW, self.VALIDATION]
        assert list(read_metrics(tmp_path / "missing.csv")) == []
        assert is_log(tmp_path / "missing.csv")
        assert self.read(tmp_path, "") == self.read(tmp_path, HEADER) == self.read(tmp_path, HEADER + "\n") == []
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize(
        "line",
        [
            b"\x00\x00\x00",
            b"\xff\xfe,1,2,3,4,5,6",
            b"1,2,3",
            b"10,80,1.5,0.001,2.3,,,",
            b"ten,80,1.5,0.001,2.3,,",
            b"-5,80,1.5,0.001,2.3,,",
            b"1.5,80,1.5,0.001,2.3,,",
            b"nan,80,1.5,0.001,2.3,,",
            b"9" * 5_000 + b",80,1.5,0.001,2.3,,",
            b",80,1.5,0.001,2.3,,",
            b"10,80,nan,0.001,2.3,,",
            b"10,80,,0.001,2.3,,",
            b"10,80,1.5,,,0.5,nan",
            b"10,80,1.5,,,0.5,7",
            b"10,80,1.5,,,,0.5",
            b"10,80,1.5,,,low,0.5",
            b'10,80,1.5,"',
        ],
    )
    def test_a_damaged_line_is_skipped_with_one_warning(self, tmp_path, capsys, line):
        content = "\n".join([HEADER, self.ROW, "LINE", self.VALIDATION, ""]).encode().replace(b"LINE", line)
        for _ in range(2):
            assert self.read(tmp_path, content) == [self.ROW, self.VALIDATION]
        assert capsys.readouterr().err == f"liere: warning: {tmp_path}/metrics.csv, line 3, is damaged: skipped\n"

    @pytest.mark.parametrize("header", [b"step,loss", b"\x00", HEADER.encode("utf-16"), b"", b"{}"])
    def test_another_header_is_reported_once_and_there_are_no_lines(self, tmp_path, capsys, header):
        for _ in range(2):
            assert self.read(tmp_path, header + b"\n1,2\n") == []
            assert not is_log(tmp_path / "metrics.csv")
        error = capsys.readouterr().err
        assert error.count("metrics.csv does not start with step,examples") == error.count("\n") == 1

    def test_a_log_much_larger_than_real_ones_is_not_read(self, tmp_path, capsys):
        with (tmp_path / "metrics.csv").open("wb") as file:
            file.truncate(2**40)  # sparse: takes no disk space
        assert list(read_metrics(tmp_path / "metrics.csv")) == []
        error = capsys.readouterr().err
        assert "metrics.csv has 1,099,511,627,776 bytes, but at most 40,000,000 are read" in error
        assert error.count("\n") == 1

    def test_a_log_of_far_more_lines_than_real_ones_is_not_read(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(records, "METRICS_LINES", 3)
        assert self.read(tmp_path, "\n".join([HEADER, self.ROW, self.ROW, ""])) == [self.ROW] * 2
        assert self.read(tmp_path, "\n".join([HEADER, self.ROW, self.ROW, self.ROW, ""])) == []
        error = capsys.readouterr().err
        assert "metrics.csv has 4 lines, but at most 3 are read; it is not used" in error
        assert error.count("\n") == 1

    def test_lines_are_not_kept_in_memory(self, tmp_path):
        file = tmp_path / "metrics.csv"
        file.write_text(f"{HEADER}\n" + "1,1,1,,,1,1\n" * 2_000)
        tracemalloc.start()
        try:
            lines = read_metrics(file)
            next(lines)
            tracemalloc.reset_peak()  # leaves out the buffer of the file, which is as large as the largest one
            assert sum(1 for _ in lines) == 1_999
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10 * file.stat().st_size

    @pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 21, 35, 101])
    def test_a_curve_of_very_many_validations_is_thinned_with_a_warning(self, tmp_path, capsys, monkeypatch, count):
        monkeypatch.setattr(records, "MOST_POINTS", 10)
        file = tmp_path / "metrics.csv"
        rows = [
            f"{step},{8 * step},1.5,0.001,2.3,,\n{step},{8 * step},1.5,,,0.75,0.5\n" for step in range(1, count + 1)
        ]
        file.write_text(f"{HEADER}\n" + "".join(rows))
        found = read_curve(file)
        examples = [point["examples"] // 8 for point in found]
        assert len(found) <= 10
        assert examples[-1:] == [count][: len(examples)]
        assert len(set(np.diff(examples))) <= 1
        assert all(
            point == {"examples": 8 * step, "accuracy": 0.5, "loss": 0.75}
            for point, step in zip(found, examples, strict=True)
        )
        error = capsys.readouterr().err
        assert error.count(f"metrics.csv has {count} validations, more than 10: one in") == (count > 10)
        assert count > 10 or examples == list(range(1, count + 1))
