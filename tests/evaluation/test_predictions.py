from __future__ import annotations

import gzip
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy")
from liere.evaluation import predictions
from liere.evaluation.predictions import Predictions

FEW = Predictions([0, 1, 2], [3, 0, 1], [3, 1, 1], [0.125, 2.5, 1e-7])


def test_a_file_has_a_line_for_each_example(tmp_path):
    file = tmp_path / "new" / "test-108.csv"
    FEW.write(file)
    assert file.read_text() == "id,label,prediction,loss\n0,3,3,0.125\n1,0,1,2.5\n2,1,1,1e-07\n"
    assert list(file.parent.iterdir()) == [file]


@given(rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1e6)), max_size=20))
def test_what_is_written_is_read(tmp_path_factory, rows):
    file = tmp_path_factory.getbasetemp() / "predictions.csv"
    labels, predictions, losses = ([row[place] for row in rows] for place in range(3))
    Predictions(list(range(len(rows))), labels, predictions, losses).write(file)
    found = Predictions.read(file)
    assert (found.ids, found.labels, found.predictions) == (list(range(len(rows))), labels, predictions)
    assert found.losses == pytest.approx(losses, rel=1e-5)


def test_answers_are_right_or_wrong():
    assert FEW.correct.tolist() == [1.0, 0.0, 1.0]
    assert FEW.correct.dtype == float


@pytest.mark.parametrize(
    "ids",
    [
        [0, 0, 1],  # repeated
        [0, 2, 1],  # not in order
    ],
)
def test_every_example_is_there_once(ids):
    with pytest.raises(ValueError, match=f"one record per example, .* but 3 ids do not: {len(set(ids))} of them"):
        Predictions(ids, [0] * 3, [0] * 3, [0.0] * 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "something else\n",
        "id,label,prediction\n0,1,1\n",
        "id,label,prediction,loss\n0,1,1,low\n",
        "id,label,prediction,loss\n0,1,1,0.5\n0,1,1,0.5\n",
        "id,label,prediction,loss\n0,1,1,0.5\n1,1",
        "id,label,prediction,loss\n0,1,1,0.5,7\n",
        "id,label,prediction,loss\n0,1,\x00,0.5\n",
        "id,label,prediction,loss\n0,1,\u00e9,0.5\n",
        "id,label,prediction,loss\n0,1,1,nan\n",
        "id,label,prediction,loss\n0,1,1,-inf\n",
        "id,label,prediction,loss\n0,1,1,1e400\n",
        "id,label,prediction,loss\n-1,1,1,0.5\n",
        "id,label,prediction,loss\n0,-1,1,0.5\n",
        f"id,label,prediction,loss\n0,{10**100},1,0.5\n",
        f"id,label,prediction,loss\n0,{'9' * 5000},1,0.5\n",
        f"id,label,prediction,loss\n0,{'x' * 200_000},1,0.5\n",
    ],
)
def test_another_file_is_named(tmp_path, text):
    file = tmp_path / "p.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"p\.csv does not contain predictions .*: evaluate again"):
        Predictions.read(file)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError):
        Predictions.read(tmp_path / "none.csv")


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(bytes(99), mtime=0)[:10] + b"\xff" * 20, gzip.compress(b"x", mtime=0)[:-9]]
)
def test_a_damaged_gzip_is_named(tmp_path, content):
    (tmp_path / "p.csv.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"p\.csv\.gz is damaged .*: evaluate again"):
        Predictions.read(tmp_path / "p.csv.gz")


def test_what_expands_without_bounds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "ALLOWANCE", 10_000)
    rows = "".join(f"{number},1,1,0.5\n" for number in range(5_000))
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(b"id,label,prediction,loss\n" + rows.encode()))
    assert len(Predictions.read(tmp_path / "p.csv.gz").ids) == 5_000  # its size justifies this many
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(ValueError, match=r"p\.csv\.gz expands to more than [\d,]+ bytes"):
        Predictions.read(tmp_path / "p.csv.gz")


def test_no_file_is_read_that_is_much_larger_than_real_ones(tmp_path, monkeypatch):
    with (tmp_path / "p.csv").open("wb") as file:
        file.truncate(2**40)  # sparse: takes no disk space
    with pytest.raises(ValueError, match=r"p\.csv has 1,099,511,627,776 bytes, but at most 50,000,000 are read"):
        Predictions.read(tmp_path / "p.csv")
    monkeypatch.setattr(predictions, "MOST_BYTES", 10_000)
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(os.urandom(20_000)))
    with pytest.raises(ValueError, match=r"p\.csv\.gz has 20,\d{3} bytes, but at most 10,000 are read"):
        Predictions.read(tmp_path / "p.csv.gz")
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(bytes(20_000)))
    with pytest.raises(ValueError, match=r"p\.csv\.gz expands to more than 10,000 bytes"):
        Predictions.read(tmp_path / "p.csv.gz")


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="is a named pipe"):
        Predictions.read(tmp_path / name)
