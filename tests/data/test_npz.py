from __future__ import annotations

import pytest
import torch

pytest.importorskip("tests.training.requirements")
import numpy as np

from liere.data.reading import npz_parts
from liere.data.reading.npz_arrays import read_npz
from liere.runs.config_file import parse_config
from tests.data.npz_files import members, noise, save, three_splits
from tests.data.sections import open_data


def config(root, **fields):
    return parse_config({"data": {"name": "npz", "root": str(root), **fields}}).data


class TestSplits:
    def test_without_a_validation_split_tests_take_its_place(self, tmp_path):
        arrays = {key: value for key, value in three_splits().items() if not key.startswith("val")}
        data = config(save(tmp_path / "file.npz", **arrays))
        assert torch.equal(data.load("val").images, data.load("test").images)
        assert [len(config(tmp_path / "file.npz", holdout=0.4).load(split)) for split in ("train", "val")] == [4, 2]

    def test_held_out_examples_take_the_place_of_a_validation_split(self, tmp_path):
        file = save(tmp_path / "file.npz", **three_splits())
        assert len(config(file).load("val")) == 4
        held = config(file, holdout=0.4)
        both = torch.cat([held.load("train").images, held.load("val").images])
        assert {image.numpy().tobytes() for image in both} == members(read_npz(file))["train"]

    def test_a_file_is_read_once_for_all_splits(self, tmp_path, monkeypatch):
        file = save(tmp_path / "file.npz", **three_splits())
        data = config(file)
        reads = []
        original = npz_parts._read_part
        monkeypatch.setattr(npz_parts, "_read_part", lambda *given: reads.append(given) or original(*given))
        for split in ("train", "val", "test"):
            data.load(split)
            config(file).load(split, length=1)
        assert len(reads) == 3  # the parts of one file

    def test_the_seed_decides_how_a_file_is_divided(self, tmp_path):
        file = save(tmp_path / "one.npz", images=noise(40, 4, 4), labels=np.arange(40) % 2)
        found = [config(file, seed=seed).load("test").images for seed in (0, 1)]
        assert not torch.equal(*found)
        assert torch.equal(found[1], read_npz(file, 1).splits["test"][0])

    def test_holding_out_would_tear_groups_apart(self, tmp_path):
        file = save(tmp_path / "file.npz", images=noise(20, 4, 4), labels=np.arange(20) % 2, groups=np.arange(20) // 2)
        with pytest.raises(ValueError, match=r"data\.holdout 0\.1 would break up the groups of .*: remove it"):
            config(file, holdout=0.1).load("train")


class TestSizes:
    @pytest.mark.parametrize(
        ("kind", "shape", "side", "size"),
        [
            ("images", (10, 20), 10, (5, 10)),
            ("images", (10, 20), 30, (15, 30)),
            ("volumes", (8, 10, 20), 40, (16, 20, 40)),
            ("volumes", (1, 10, 20), 5, (1, 2, 5)),
            ("videos", (8, 10, 20), 40, (8, 20, 40)),
            ("videos", (8, 10, 20), 20, (8, 10, 20)),
        ],
    )
    def test_sizes_are_of_the_last_axis_and_the_others_follow_but_not_frames(self, tmp_path, kind, shape, side, size):
        file = save(tmp_path / "file.npz", **three_splits(shape, kind))
        assert config(file).facts.image_size == shape
        scaled = config(file, size=side)
        assert (scaled.facts.image_size, scaled.side) == (size, side)
        assert scaled.load("train").batch([0])[0].shape == (1, 1, *size)
        test = config(file).load("test", size=side)
        assert test.facts.image_size == size
        assert test.batch([0, 1])[0].shape == (2, 1, *size)

    @pytest.mark.parametrize(("kind", "shape"), [("images", (10_000, 1)), ("volumes", (100, 1_000, 1))])
    def test_a_short_last_axis_does_not_make_examples_huge(self, tmp_path, kind, shape):
        file = save(tmp_path / "file.npz", **three_splits(shape, kind))
        with pytest.raises(ValueError, match=r"file\.npz have axes .* at size 224: choose a smaller size"):
            _ = config(file, size=224).facts
        assert config(file, size=2).facts.image_size == tuple(2 * length for length in shape)


class TestAugmentation:
    def test_padding_flip_and_fraction_are_for_training(self, tmp_path):
        data = config(
            save(tmp_path / "f.npz", **three_splits((4, 5, 6), "volumes")), padding=2, flip=True, fraction=0.5
        )
        train = data.load("train")
        assert (len(train), train.augmentation.padding, train.augmentation.flip) == (4, 2, True)
        assert train.load([0, 1], torch.tensor([1, 2])).images.shape == (2, 1, 4, 5, 6)
        assert not data.load("val").augmentation
        assert len(data.load("val")) == 4

    def test_rand_augment_is_for_flat_bytes_in_colour(self, tmp_path):
        change = {"rand_augment": [2, 9]}
        data = config(save(tmp_path / "good.npz", **three_splits((8, 8, 3))), **change).load("train")
        assert data.load([0, 1], torch.tensor([1, 2])).images.shape == (2, 3, 8, 8)
        for name, arrays in {
            "gray": three_splits((8, 8)),
            "volume": three_splits((8, 8, 8, 3), "volumes"),
            "float": three_splits((8, 8, 3), dtype=np.float32),
        }.items():
            with pytest.raises(ValueError, match=f"rand_augment needs 2-D uint8 images with 3 channels, but .*{name}"):
                config(save(tmp_path / f"{name}.npz", **arrays), **change).load("train")


def test_other_arrays_than_those_that_are_meant_are_refused(tmp_path):
    pytest.importorskip("pydantic")
    file = tmp_path / "mine.npz"
    np.savez(file, images=np.zeros((20, 4, 4), dtype=np.uint8), labels=np.arange(20) % 2)
    digest = read_npz(file).sha256
    assert len(open_data("npz", root=str(file), sha256=digest).load("train")) == 16
    with pytest.raises(ValueError, match=f"digest {digest}, but data.sha256 is 0123; .* --data.sha256 null"):
        open_data("npz", root=str(file), sha256="0123").load("train")


def test_what_a_file_holds_is_not_listed_without_end(tmp_path):
    file = save(tmp_path / "file.npz", **{f"array{number}": np.zeros(1) for number in range(500)})
    with pytest.raises(ValueError, match=r"file\.npz") as raised:
        config(file).load("train")
    assert len(str(raised.value)) < 700


def test_without_a_root_the_configuration_says_so():
    with pytest.raises(ValueError, match=r"data\.root is missing"):
        parse_config({"data": {"name": "npz"}})
