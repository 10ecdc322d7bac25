from __future__ import annotations

import shutil

import pytest

pytest.importorskip("tests.training.requirements")
from tests.data.file_archives import WNIDS, picture
from tests.data.imagenet_files import load_imagenet
from tests.data.sections import open_data


def test_other_files_are_ignored(imagenet_copy):
    folder = imagenet_copy / "train" / WNIDS[1]
    for name in ("._n01443537_0.JPEG", "Thumbs.db", "notes.txt", "archive.jpg.zip"):
        (folder / name).write_bytes(b"?")
    (imagenet_copy / "train" / ".ipynb_checkpoints").mkdir()
    (imagenet_copy / "train" / "README.txt").write_text("?")
    (folder / "more").mkdir()
    picture(1, 0, (20, 20)).save(folder / "more" / "one.PNG")
    data = load_imagenet(imagenet_copy)
    assert data.facts.classes == WNIDS
    assert len(data) == 16
    assert str(data.files[5]).endswith("n01443537/more/one.PNG")


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("asked", ["train", "val", "test"])
def test_a_missing_class_folder_is_named(imagenet_copy, split, asked):
    shutil.copytree(imagenet_copy / "val", imagenet_copy / "test")
    shutil.rmtree(imagenet_copy / split / WNIDS[1])
    with pytest.raises(ValueError, match=f"{split} has no class folder {WNIDS[1]}"):
        load_imagenet(imagenet_copy, asked)
    with pytest.raises(ValueError, match=WNIDS[1]):
        _ = open_data("imagenet", root=str(imagenet_copy)).facts


@pytest.mark.parametrize("split", ["train", "val"])
def test_an_empty_class_folder_is_named(imagenet_copy, split):
    for file in (imagenet_copy / split / WNIDS[2]).glob("*.JPEG"):
        file.unlink()
    with pytest.raises(ValueError, match=rf"no file with the suffix .jpg.* in .*{split}.{WNIDS[2]}"):
        load_imagenet(imagenet_copy, "train")


def test_folders_that_are_not_there(imagenet_copy):
    with pytest.raises(FileNotFoundError, match=r"there is no folder nowhere.train .*--data.root"):
        load_imagenet("nowhere")
    shutil.rmtree(imagenet_copy / "val")
    with pytest.raises(FileNotFoundError, match=r"neither .*val nor .*test: .*--data.holdout"):
        load_imagenet(imagenet_copy, "val")
    assert len(load_imagenet(imagenet_copy, "val", holdout=0.2)) == 3
    assert len(load_imagenet(imagenet_copy, "train")) == 15
    with pytest.raises(FileNotFoundError, match=r"neither .*val nor .*test"):
        load_imagenet(imagenet_copy, "test", holdout=0.2)
    (imagenet_copy / "val").mkdir()
    (imagenet_copy / "val" / "ILSVRC2012_val_00000001.JPEG").write_bytes(b"?")
    with pytest.raises(ValueError, match=r"val has no class folders: sort"):
        load_imagenet(imagenet_copy, "train")


def test_splits_stand_in_for_each_other(imagenet_copy):
    def folder(split, **fields):
        return load_imagenet(imagenet_copy, split, **fields).files[0].relative_to(imagenet_copy).parts[0]

    assert [folder(split) for split in ("train", "val", "test")] == ["train", "val", "val"]
    shutil.copytree(imagenet_copy / "val", imagenet_copy / "test")
    assert [folder(split) for split in ("train", "val", "test")] == ["train", "val", "test"]
    assert [folder(split, holdout=0.2) for split in ("train", "val", "test")] == ["train", "train", "test"]
    shutil.rmtree(imagenet_copy / "val")
    assert [folder(split) for split in ("train", "val", "test")] == ["train", "test", "test"]
