from __future__ import annotations

import os

import pytest

from liere.data.reading.class_folders import find_classes, list_split


@pytest.fixture
def deep(tmp_path):
    """A folder with a file, nested so deep that `shutil.rmtree` cannot remove it."""
    folder = tmp_path / "train" / "cat"
    folder.mkdir(parents=True)
    folders = [folder := folder / "d" for _ in range(1_100)]
    for folder in folders:
        os.mkdir(folder)
    (folder / "1.png").touch()
    yield folder
    (folder / "1.png").unlink()
    for folder in reversed(folders):
        os.rmdir(folder)


def test_folders_may_be_nested_deeper_than_python_can_call(tmp_path, deep):
    (tmp_path / "train" / "dog").mkdir()
    (tmp_path / "train" / "dog" / "0.png").touch()
    classes = find_classes(tmp_path, (".png",))
    assert classes == ("cat", "dog")
    files = list_split(tmp_path, "train", classes, (".png",))
    assert [files[0], files[1]] == [deep / "1.png", tmp_path / "train" / "dog" / "0.png"]


def test_hidden_files_and_links_to_folders_are_left_out(tmp_path):
    (tmp_path / "train" / "cat" / "more").mkdir(parents=True)
    for name in ("1.png", ".2.png", "more/3.PNG", "4.txt"):
        (tmp_path / "train" / "cat" / name).touch()
    (tmp_path / "train" / "cat" / "round").symlink_to(tmp_path / "train" / "cat")
    files = list_split(tmp_path, "train", ("cat",), (".png",))
    assert [files[place].name for place in range(len(files))] == ["1.png", "3.PNG"]
