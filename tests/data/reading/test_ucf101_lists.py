from __future__ import annotations

import shutil

import pytest

pytest.importorskip("tests.training.requirements")
from liere.data.reading.ucf101_lists import list_videos, read_classes
from tests.data.file_archives import ACTIONS, write_ucf101


@pytest.fixture
def root(tmp_path):
    """Lists, and empty files as videos."""
    return write_ucf101(tmp_path / "ucf101", frames=0)


def names(files):
    return [files[index].name for index in range(len(files))]


def edit(file, old, new):
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new, 1))


@pytest.mark.parametrize("fold", [1, 2, 3])
def test_a_list_has_its_videos_with_labels_from_0(root, fold):
    assert read_classes(root) == ACTIONS
    groups = [group for group in (1, 2, 3, 4) if group != fold]
    train, test = (list_videos(root, split, fold) for split in ("train", "test"))
    assert names(train) == [f"v_{name}_g{group:02}_c01.avi" for name in ACTIONS for group in groups]
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert names(test) == [f"v_{name}_g{fold:02}_c01.avi" for name in ACTIONS]
    assert test.labels.tolist() == [0, 1, 2]


def test_lists_saved_on_windows_are_read(root):
    expected = names(list_videos(root, "train"))
    for file in (root / "ucfTrainTestlist").iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert names(list_videos(root, "train")) == expected


def test_folders_of_classes_may_be_in_the_root(root):
    expected = names(list_videos(root, "train"))
    for folder in (root / "UCF-101").iterdir():
        folder.rename(root / folder.name)
    (root / "UCF-101").rmdir()
    data = list_videos(root, "train")
    assert names(data) == expected
    assert data[0].parent == root / "ApplyEyeMakeup"


@pytest.mark.parametrize("list_name", ["classInd.txt", "trainlist02.txt", "testlist02.txt"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_missing_list_is_named(root, list_name, split):
    (root / "ucfTrainTestlist" / list_name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"ucfTrainTestlist.{list_name} is missing: .*--data.root") as raised:
        list_videos(root, split, fold=2)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("split", ["train", "test"])
def test_missing_videos_are_counted_before_anything_is_trained(root, split):
    shutil.rmtree(root / "UCF-101" / "Archery")
    (root / "UCF-101" / "ApplyLipstick" / "v_ApplyLipstick_g03_c01.avi").unlink()
    with pytest.raises(FileNotFoundError) as raised:
        list_videos(root, split)
    first = root / "UCF-101" / "ApplyLipstick" / "v_ApplyLipstick_g03_c01.avi"
    assert "4 of the 9 videos of" in str(raised.value)
    assert f"trainlist01.txt are missing, the first one is {first}" in str(raised.value)
    shutil.rmtree(root / "UCF-101")
    with pytest.raises(FileNotFoundError, match="9 of the 9 videos of"):
        list_videos(root, split)


def test_a_missing_test_video_is_reported_before_training(root):
    (root / "UCF-101" / "Archery" / "v_Archery_g01_c01.avi").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of the 3 videos of .*testlist01.txt are missing"):
        list_videos(root, "train")


def test_damaged_lists(root):
    lists = root / "ucfTrainTestlist"
    edit(lists / "trainlist01.txt", b"g02_c01.avi 1", b"g02_c01.avi 2")
    with pytest.raises(ValueError, match=r"trainlist01.txt, line 1, has the class 2, but classInd.txt has 1 for"):
        list_videos(root, "train")
    edit(lists / "trainlist02.txt", b"Archery/", b"Arch/")
    with pytest.raises(ValueError, match=r"trainlist02.txt, line 7, has a class that is not in classInd.txt"):
        list_videos(root, "train", fold=2)
    (lists / "testlist03.txt").write_bytes(b"\r\n")
    with pytest.raises(ValueError, match=r"testlist03.txt is empty"):
        list_videos(root, "train", fold=3)
    edit(lists / "classInd.txt", b"3 Archery", b"5 Archery")
    with pytest.raises(ValueError, match=r"classInd.txt must number the classes from 1 to 3"):
        list_videos(root, "train")
    edit(lists / "classInd.txt", b"5 Archery", b"Archery")
    with pytest.raises(ValueError, match=r"classInd.txt, line 3, must be a number and a class, got 'Archery'"):
        list_videos(root, "train")
    for name in (b"..", b".", b"ApplyEyeMakeup"):  # would list other folders, or one class twice
        (lists / "classInd.txt").write_bytes(b"1 ApplyEyeMakeup\n2 " + name)
        with pytest.raises(ValueError, match=r"classInd.txt, line 2, has the repeated or invalid class '"):
            list_videos(root, "train")
    (lists / "classInd.txt").write_bytes(b"1 " + b"long " * 10_000)
    with pytest.raises(ValueError, match=r"classInd.txt, line 1, must be a number and a class") as raised:
        list_videos(root, "train")
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", ["trainlist01.txt", "testlist01.txt"])
def test_a_video_that_is_listed_twice_is_named(root, name):
    repeated = "Archery/v_Archery_g02_c01.avi"  # for training
    with (root / "ucfTrainTestlist" / name).open("a") as file:
        file.write(f"{repeated}\n")
    for split in ("train", "test"):
        with pytest.raises(ValueError, match=f"lists '{repeated}' 2 times in trainlist01.txt and testlist01.txt"):
            list_videos(root, split)
    assert list_videos(root, "train", 2)
