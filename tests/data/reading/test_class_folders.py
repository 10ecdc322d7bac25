from __future__ import annotations

import pytest

pytest.importorskip("numpy")
from liere.data.reading.class_folders import find_classes, list_split
from tests.deep_folders import deep_folder


@pytest.fixture
def deep(tmp_path):
    """A folder with a file, nested too deeply for recursive functions."""
    (tmp_path / "train" / "cat").mkdir(parents=True)
    with deep_folder(tmp_path / "train" / "cat") as folder:
        (folder / "1.png").touch()
        yield folder


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


def fill(root, **files):
    for name, count in files.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            (root / name / f"{number}.png").touch()


def names(files):
    return [files[place].relative_to(files.folder).as_posix() for place in range(len(files))]


class TestWithoutSplits:
    classes = ("cats", "dogs")

    def split(self, root, split, seed=0):
        return list_split(root, split, self.classes, (".png",), seed=seed)

    def test_files_are_divided_class_by_class(self, tmp_path):
        fill(tmp_path, cats=20, dogs=10)
        assert find_classes(tmp_path, (".png",), may_lack_splits=True) == self.classes
        parts = {split: self.split(tmp_path, split) for split in ("train", "val", "test")}
        assert {split: len(part) for split, part in parts.items()} == {"train": 24, "val": 3, "test": 3}
        assert parts["test"].labels.tolist() == [0, 0, 1]
        everything = [name for part in parts.values() for name in names(part)]
        assert len(set(everything)) == 30
        assert all(
            name.split("/")[0] == self.classes[label]
            for part in parts.values()
            for name, label in zip(names(part), part.labels.tolist(), strict=True)
        )

    def test_the_seed_and_the_names_decide(self, tmp_path):
        fill(tmp_path / "one", cats=20, dogs=10)
        fill(tmp_path / "copy", dogs=10, cats=20)
        test = names(self.split(tmp_path / "one", "test"))
        assert test == names(self.split(tmp_path / "copy", "test"))
        assert test != names(self.split(tmp_path / "one", "test", seed=1))

    def test_it_is_reported_once(self, tmp_path, capsys):
        fill(tmp_path, cats=20, dogs=10)
        for split in ("train", "val", "test"):
            self.split(tmp_path, split, seed=3)
        (line,) = capsys.readouterr().err.splitlines()
        assert "has no folder 'train'" in line
        assert "data.seed 3" in line
        assert "24 for training, 3 for validation and 3 for testing" in line

    def test_two_files_of_a_class_are_enough(self, tmp_path):
        fill(tmp_path, cats=2, dogs=2)
        assert [len(self.split(tmp_path, split)) for split in ("train", "val", "test")] == [2, 2, 2]
        assert names(self.split(tmp_path, "val")) == names(self.split(tmp_path, "test"))

    def test_a_single_file_per_class_is_too_few(self, tmp_path):
        fill(tmp_path, cats=1, dogs=1)
        with pytest.raises(ValueError, match="no class with two or more files"):
            self.split(tmp_path, "train")

    def test_well_known_data_sets_need_their_splits(self, tmp_path):
        fill(tmp_path, cats=3, dogs=3)
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*train"):
            find_classes(tmp_path, (".png",))

    def test_a_test_folder_without_a_training_folder_is_no_class(self, tmp_path):
        fill(tmp_path / "test", cats=3, dogs=3)
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*train"):
            find_classes(tmp_path, (".png",), may_lack_splits=True)

    def test_a_folder_of_data_sets_is_reported(self, tmp_path):
        fill(tmp_path / "one" / "train", cats=3)
        fill(tmp_path / "two" / "train", cats=3)
        with pytest.raises(ValueError, match="one has a folder 'train', so it is a data set, not a class"):
            find_classes(tmp_path, (".png",), may_lack_splits=True)

    def test_an_empty_class_is_reported(self, tmp_path):
        fill(tmp_path, cats=3, dogs=0)
        with pytest.raises(ValueError, match=r"no file with the suffix \.png in .*dogs: add some, or remove the f"):
            find_classes(tmp_path, (".png",), may_lack_splits=True)
