"""Rows with and without pandas."""

from __future__ import annotations

import sys

import pytest

from liere.evaluation.data_frames import as_frame

ROWS = [{"size": 36, "mean": 0.5}, {"size": 48, "mean": None}]


def test_without_pandas_rows_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert as_frame(ROWS) is ROWS
    with pytest.raises(ImportError):
        as_frame(ROWS, pandas=True)


def test_with_pandas_rows_are_a_frame_unless_they_are_asked_for():
    pandas = pytest.importorskip("pandas")
    assert as_frame(ROWS, pandas=False) is ROWS
    for frame in (as_frame(ROWS), as_frame(ROWS, pandas=True)):
        assert isinstance(frame, pandas.DataFrame)
        assert frame["size"].tolist() == [36, 48]
