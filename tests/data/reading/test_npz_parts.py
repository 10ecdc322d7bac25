from __future__ import annotations

import os

import pytest
import torch

pytest.importorskip("numpy")
import numpy as np

from liere.data.reading.npz_arrays import read_npz
from tests.data.npz_files import PLAIN, noise, save, three_splits


class TestForms:
    def test_a_file_with_splits(self, tmp_path):
        arrays = three_splits((4, 5, 3))
        data = read_npz(save(tmp_path / "med.npz", **arrays))
        for split in ("train", "val", "test"):
            images, labels = data.splits[split]
            assert np.array_equal(images.numpy(), arrays[f"{split}_images"].transpose(0, 3, 1, 2))
            assert labels.tolist() == arrays[f"{split}_labels"][:, 0].tolist()
        assert (data.facts.classes, data.facts.channels, data.facts.image_size) == (("0", "1"), 3, (4, 5))

    def test_a_folder_is_the_same_as_a_file_with_splits(self, tmp_path):
        arrays = three_splits()
        for split in ("train", "val", "test"):
            save(
                tmp_path / "folder" / f"{split}.npz", images=arrays[f"{split}_images"], labels=arrays[f"{split}_labels"]
            )
        one, other = read_npz(save(tmp_path / "file.npz", **arrays)), read_npz(tmp_path / "folder")
        assert one.facts == other.facts
        for split in one.splits:
            assert all(torch.equal(*pair) for pair in zip(one.splits[split], other.splits[split], strict=True))

    def test_other_arrays_in_a_file_do_not_matter(self, tmp_path):
        others = {"ages": np.arange(3), "notes": np.array({"an": "object"}, dtype=object)}
        assert read_npz(save(tmp_path / "file.npz", **three_splits(), **others)).facts.channels == 1

    def test_names_may_be_in_one_file_of_a_folder_and_must_agree(self, tmp_path):
        names = np.array(["x", "y"])
        save(tmp_path / "d" / "train.npz", images=noise(4, 4, 4), labels=np.array([0, 1, 1, 0]), classes=names)
        save(tmp_path / "d" / "test.npz", images=noise(2, 4, 4), labels=np.array([0, 1]))
        assert read_npz(tmp_path / "d").facts.classes == ("x", "y")
        save(tmp_path / "d" / "test.npz", images=noise(2, 4, 4), labels=np.array([0, 1]), classes=names[::-1])
        with pytest.raises(ValueError, match=r"test\.npz has different 'classes'"):
            read_npz(tmp_path / "d")


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"images": 0, "lables": 0}, r"has no 'labels': rename 'lables'"),
            ({"images": 0, "y": 0}, r"has no 'labels': add it to 'images', 'y'"),
            ({"imagse": 0, "labels": 0}, "'imagse', 'labels': it must contain 'images' .*; rename 'imagse'"),
            ({"x": 0, "y": 0}, "contains 'x', 'y': it must contain 'images'"),
            ({}, "contains nothing: it must contain 'images'"),
            ({"images": 0, "volumes": 0, "labels": 0}, "contains 'images', 'volumes': keep only one of them"),
            ({"images": 0, "train_images": 0, "labels": 0}, "contains 'images', 'train_images': keep only one"),
            ({"train_images": 0, "train_labels": 0}, "has no 'test_images'"),
            ({"train_images": 0, "train_labels": 0, "test_image": 0}, "has no 'test_images': rename 'test_image'"),
            ({"train_images": 0, "train_labels": 0, "test_images": 0}, "has no 'test_labels'"),
            ({"train_images": 0, "valid_images": 0}, "an unknown split 'valid': rename it to 'val'"),
        ],
    )
    def test_names_that_are_missing_are_reported_with_the_nearest(self, tmp_path, arrays, message):
        content = {key: PLAIN["labels" if key.endswith(("labels", "y")) else "images"] for key in arrays}
        with pytest.raises(ValueError, match=message):
            read_npz(save(tmp_path / "file.npz", **content))

    def test_lengths_that_differ_are_reported(self, tmp_path):
        with pytest.raises(ValueError, match="has 30 images but 29 labels: both must have the same length"):
            read_npz(save(tmp_path / "file.npz", images=PLAIN["images"], labels=PLAIN["labels"][1:]))
        with pytest.raises(ValueError, match="has 30 images but 3 groups"):
            read_npz(save(tmp_path / "file.npz", **PLAIN, groups=np.arange(3)))

    def test_an_empty_split_is_reported(self, tmp_path):
        arrays = three_splits()
        arrays["val_images"], arrays["val_labels"] = arrays["val_images"][:0], arrays["val_labels"][:0]
        with pytest.raises(ValueError, match="val_images is empty"):
            read_npz(save(tmp_path / "file.npz", **arrays))
        with pytest.raises(ValueError, match="images is empty"):
            read_npz(save(tmp_path / "file.npz", images=noise(0, 4, 4), labels=np.arange(0)))

    def test_what_is_missing_is_reported(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no data at --data\.root .*none: set it to a \.npz file"):
            read_npz(tmp_path / "none")
        save(tmp_path / "mine.npz", **PLAIN)
        with pytest.raises(FileNotFoundError, match=r"no data at .*: did you mean .*mine\.npz\?"):
            read_npz(tmp_path / "mine")
        with pytest.raises(FileNotFoundError, match=r"train\.npz is missing"):
            read_npz(tmp_path)
        save(tmp_path / "train.npz", **PLAIN)
        with pytest.raises(FileNotFoundError, match=r"test\.npz is missing"):
            read_npz(tmp_path)

    def test_files_of_a_folder_that_do_not_fit_are_reported(self, tmp_path):
        save(tmp_path / "train.npz", **PLAIN)
        save(tmp_path / "test.npz", volumes=noise(2, 4, 4, 4), labels=np.arange(2))
        with pytest.raises(ValueError, match=r"test\.npz contains volumes, but .*train\.npz contains images"):
            read_npz(tmp_path)
        save(tmp_path / "test.npz", image=noise(2, 4, 4), labels=np.arange(2))
        with pytest.raises(ValueError, match=r"test\.npz has no 'images': rename 'image'"):
            read_npz(tmp_path)
        save(tmp_path / "validation.npz", **PLAIN)
        with pytest.raises(ValueError, match="has an unknown split 'validation': rename it to 'val'"):
            read_npz(tmp_path)

    @pytest.mark.parametrize("name", ["file.npz", "folder/train.npz"])
    def test_a_pipe_is_named_and_not_waited_for(self, tmp_path, name):
        (tmp_path / "folder").mkdir()
        save(tmp_path / "folder" / "test.npz", **PLAIN)
        os.mkfifo(tmp_path / name)
        with pytest.raises(ValueError, match=r"\.npz is a named pipe, not a regular file"):
            read_npz(tmp_path / name.partition("/")[0])
