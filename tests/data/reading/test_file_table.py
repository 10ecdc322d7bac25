from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import torch

pytest.importorskip("numpy")
from liere.data.reading.file_table import FileTable

FILES = [("cat/1.png", 0), ("dog/ä ö.png", 1), ("dog/2.png", 1), ("eel/3.png", 2)]


def paths(table):
    return [table[place] for place in range(len(table))]


@pytest.fixture
def table(tmp_path):
    return FileTable(tmp_path, FILES)


def test_paths_and_labels_are_those_given(table, tmp_path):
    assert paths(table) == [tmp_path / name for name, _ in FILES]
    assert table.labels.tolist() == [0, 1, 1, 2]


def test_some_are_chosen_in_any_order_and_once_more(table, tmp_path):
    part = table.select(torch.tensor([3, 1, 2])).select(torch.tensor([2, 1]))
    assert paths(part) == [tmp_path / "dog/2.png", tmp_path / "dog/ä ö.png"]
    assert part.labels.tolist() == [1, 1]
    assert len(table) == 4


def test_names_that_are_no_text_are_kept():
    name = os.fsdecode(b"cat/\xff\xfe.png")
    assert os.fsencode(FileTable(Path("x"), [(name, 0)])[0]) == b"x/cat/\xff\xfe.png"


def test_another_process_gets_the_same(table):
    assert paths(pickle.loads(pickle.dumps(table))) == paths(table)


def test_a_place_too_many_is_an_error(table):
    with pytest.raises(IndexError):
        table[4]
    assert paths(FileTable(Path("x"), [])) == []
