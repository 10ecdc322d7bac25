from __future__ import annotations

import io
import itertools
import os
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tests.training.requirements")
from liere.data.reading import npz_archive, npz_parts, npz_pixels, npz_splits
from liere.data.reading.npz_arrays import read_npz
from liere.data.subsets import divide
from liere.runs.config_file import parse_config
from tests.data.sections import open_data


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def three_splits(shape=(4, 4), kind="images", dtype=np.uint8, **more):
    """Arrays as MedMNIST files have them: 6 for training, 4 to validate, 2 to test."""
    arrays = {}
    for number, (split, count) in enumerate({"train": 6, "val": 4, "test": 2}.items()):
        arrays[f"{split}_{kind}"] = noise(count, *shape, seed=number).astype(dtype)
        arrays[f"{split}_labels"] = np.array([[0], [1]] * (count // 2), dtype=np.uint8)
    return arrays | more


def members(data) -> dict[str, set[bytes]]:
    """Contents of the examples of each split."""
    return {split: {image.numpy().tobytes() for image in images} for split, (images, _) in data.splits.items()}


def config(root, **fields):
    return parse_config({"data": {"name": "npz", "root": str(root), **fields}}).data


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

    @pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
    def test_files_are_read_compressed_or_not(self, tmp_path, write):
        write(tmp_path / "file.npz", **three_splits())
        assert len(read_npz(tmp_path / "file.npz").splits["train"][0]) == 6

    def test_other_arrays_in_a_file_do_not_matter(self, tmp_path):
        others = {"ages": np.arange(3), "notes": np.array({"an": "object"}, dtype=object)}
        assert read_npz(save(tmp_path / "file.npz", **three_splits(), **others)).facts.channels == 1


class TestAxes:
    @pytest.mark.parametrize(
        ("kind", "shape", "channels", "size"),
        [
            ("images", (5, 6), 1, (5, 6)),
            ("images", (5, 6, 1), 1, (5, 6)),
            ("images", (5, 6, 4), 4, (5, 6)),
            ("images", (2, 6, 3), 3, (2, 6)),
            ("images", (5, 6, 7), 1, (5, 6, 7)),
            ("images", (5, 6, 7, 2), 2, (5, 6, 7)),
            ("volumes", (5, 6, 7), 1, (5, 6, 7)),
            ("volumes", (5, 6, 3), 1, (5, 6, 3)),
            ("volumes", (2, 6, 7), 1, (2, 6, 7)),
            ("volumes", (5, 6, 7, 2), 2, (5, 6, 7)),
            ("videos", (3, 6, 7), 1, (3, 6, 7)),
            ("videos", (3, 6, 7, 3), 3, (3, 6, 7)),
        ],
    )
    def test_channels_come_first_and_every_pixel_is_kept(self, tmp_path, kind, shape, channels, size):
        arrays = three_splits(shape, kind)
        data = read_npz(save(tmp_path / "file.npz", **arrays))
        images = data.splits["train"][0]
        assert images.shape == (6, channels, *size)
        assert (data.facts.channels, data.facts.image_size) == (channels, size)
        given_ = arrays[f"train_{kind}"].reshape(6, *size, channels)
        for channel in range(channels):
            assert np.array_equal(images[:, channel].numpy(), given_[..., channel])

    @pytest.mark.parametrize(
        ("kind", "shape", "message"),
        [
            ("images", (5,), r"train_images must be \[examples, height, width\].*got shape \(6, 5\)"),
            ("images", (3, 8, 9), r"shape \(6, 3, 8, 9\): put channels last with np.moveaxis.*'volumes'.* 3 slices"),
            ("images", (1, 8, 9), "put channels last"),
            ("images", (8, 8, 8, 8), "at most 4 channels"),
            ("volumes", (8, 8), r"\[examples, depth, height, width\]"),
            ("volumes", (1, 8, 8, 8), "at most 4 channels"),
            ("videos", (8, 8), r"\[examples, frames, height, width\]"),
            ("images", (0, 8), "an axis without pixels"),
        ],
    )
    def test_other_shapes_are_told(self, tmp_path, kind, shape, message):
        with pytest.raises(ValueError, match=message):
            read_npz(save(tmp_path / "file.npz", **three_splits(shape, kind)))

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
        with pytest.raises(ValueError, match=r"file\.npz have axes .* the last one is 224: choose a smaller size"):
            _ = config(file, size=224).facts
        assert config(file, size=2).facts.image_size == tuple(2 * length for length in shape)


class TestPixels:
    def test_bytes_stay_as_they_are(self, tmp_path):
        assert read_npz(save(tmp_path / "file.npz", **three_splits())).splits["train"][0].dtype == torch.uint8

    def test_bools_become_black_and_white(self, tmp_path):
        arrays = three_splits()
        masks = {key: value > 99 if key.endswith("images") else value for key, value in arrays.items()}
        images = read_npz(save(tmp_path / "file.npz", **masks)).splits["train"][0]
        assert images.dtype == torch.uint8
        assert np.array_equal(images[:, 0].numpy(), np.where(arrays["train_images"] > 99, 255, 0))

    @pytest.mark.parametrize(
        "dtype", ["int8", "int16", "uint16", "int64", "float16", "float32", "float64", ">f4", ">i2"]
    )
    def test_other_numbers_become_float32(self, tmp_path, dtype):
        arrays = three_splits(dtype=np.dtype(dtype))
        images = read_npz(save(tmp_path / "file.npz", **arrays)).splits["train"][0]
        assert images.dtype == torch.float32
        assert np.array_equal(images[:, 0].numpy(), arrays["train_images"].astype(np.float32))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    def test_what_is_not_finite_is_told_with_the_number_of_examples(self, tmp_path, value):
        arrays = three_splits(dtype=np.float64)
        arrays["train_images"][[1, 4, 4], [0, 1, 2], 3] = value
        with pytest.raises(ValueError, match="train_images has NaN or infinity in 2 of 6 examples"):
            read_npz(save(tmp_path / "file.npz", **arrays))

    @pytest.mark.parametrize("dtype", ["complex64", "U3", "datetime64[s]"])
    def test_what_is_no_number_is_told(self, tmp_path, dtype):
        with pytest.raises(ValueError, match="train_images must hold numbers, got"):
            read_npz(save(tmp_path / "file.npz", **three_splits(dtype=np.dtype(dtype))))

    @pytest.mark.parametrize("dtype", [np.uint8, np.float32])
    def test_mean_and_deviation_are_those_of_the_training_split(self, tmp_path, dtype):
        arrays = three_splits((4, 5, 3), dtype=dtype)
        facts = read_npz(save(tmp_path / "file.npz", **arrays)).facts
        pixels = arrays["train_images"].astype(np.float64) / (255 if dtype == np.uint8 else 1)
        assert facts.mean == pytest.approx(pixels.mean((0, 1, 2)), rel=1e-12)
        assert facts.std == pytest.approx(pixels.std((0, 1, 2)), rel=1e-12)

    @pytest.mark.parametrize("value", [np.uint8(0), np.uint8(100), np.float32(0.1)])
    def test_a_channel_that_is_constant_does_not_blow_up(self, tmp_path, value):
        arrays = three_splits()
        for key in arrays:
            if key.endswith("images"):
                arrays[key] = np.full(arrays[key].shape, value)
        assert read_npz(save(tmp_path / "file.npz", **arrays)).facts.std == (1.0,)

    def test_splits_of_several_kinds_are_told(self, tmp_path):
        arrays = three_splits()
        arrays["test_images"] = arrays["test_images"].astype(np.float32)
        with pytest.raises(ValueError, match=r"test_images has pixels float32, but .*train_images has uint8"):
            read_npz(save(tmp_path / "file.npz", **arrays))
        arrays["test_images"] = noise(2, 5, 4)
        with pytest.raises(ValueError, match=r"test_images has channels and axes \(1, 5, 4\), but .* has \(1, 4, 4\)"):
            read_npz(save(tmp_path / "file.npz", **arrays))


class TestLabels:
    def labelled(self, tmp_path, train, test, **more):
        return read_npz(
            save(
                tmp_path / "file.npz",
                train_images=noise(len(train), 4, 4),
                train_labels=np.array(train),
                test_images=noise(len(test), 4, 4),
                test_labels=np.array(test),
                **more,
            )
        )

    @pytest.mark.parametrize(
        ("train", "test", "classes", "numbers"),
        [
            ([5, -1, 10], [10, 5], ("-1", "5", "10"), [2, 1]),
            (["cat", "ant", "bee"], ["bee", "ant"], ("ant", "bee", "cat"), [1, 0]),
            ([True, False], [True, False], ("False", "True"), [1, 0]),
            ([[3], [4]], [4, 3], ("3", "4"), [1, 0]),
        ],
    )
    def test_classes_are_the_sorted_values(self, tmp_path, train, test, classes, numbers):
        data = self.labelled(tmp_path, train, test)
        assert data.facts.classes == classes
        assert data.splits["test"][1].tolist() == numbers
        assert data.splits["test"][1].dtype == torch.int64

    def test_names_of_classes_are_those_given(self, tmp_path):
        names = np.array(["sick", "healthy", "unknown"])
        data = self.labelled(tmp_path, [1, 0, 1], [1, 0], classes=names)
        assert (data.facts.classes, data.splits["train"][1].tolist()) == (("sick", "healthy", "unknown"), [1, 0, 1])
        data = self.labelled(tmp_path, ["sick", "healthy"], ["healthy", "sick"], classes=names)
        assert data.splits["test"][1].tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("train", "test", "names", "message"),
        [
            ([0, 1], [2, 7], None, "label '2' is in 'test', but not in 'train'"),
            (["a", "b"], ["c"], None, "label 'c' is in 'test', but not in 'train'"),
            ([0, 1], [2], ["x", "y", "z"], "label 'z' is in 'test', but not in 'train'"),
            ([0, 1], [3], ["x", "y", "z"], "test_images: label 3 is not a place in classes, 0 to 2"),
            ([0, -1], [0], ["x", "y"], "train_images: label -1 is not a place in classes"),
            (["sick", "haelthy"], ["sick"], ["sick", "healthy"], "label 'haelthy' .*did you mean 'healthy'?"),
            ([0, 1], [0], ["x", "x"], r"classes must be different names, one a class, got \['x', 'x'\]"),
            ([0, 1], ["0"], None, "labels are integers in one split and strings in another"),
            ([0.0, 1.0], [0.0], None, "train_labels must be integers or strings, got float64"),
            ([[0, 1], [1, 0]], [0], None, r"train_labels must be one an example, .*got shape \(2, 2\)"),
            ([1, 1, 1], [1], None, "all training examples have label '1': there is nothing to learn"),
        ],
    )
    def test_what_is_wrong_with_them_is_told(self, tmp_path, train, test, names, message):
        more = {} if names is None else {"classes": np.array(names)}
        with pytest.raises(ValueError, match=message):
            self.labelled(tmp_path, train, test, **more)

    def test_names_may_be_in_one_file_of_a_folder_and_must_agree(self, tmp_path):
        names = np.array(["x", "y"])
        save(tmp_path / "d" / "train.npz", images=noise(4, 4, 4), labels=np.array([0, 1, 1, 0]), classes=names)
        save(tmp_path / "d" / "test.npz", images=noise(2, 4, 4), labels=np.array([0, 1]))
        assert read_npz(tmp_path / "d").facts.classes == ("x", "y")
        save(tmp_path / "d" / "test.npz", images=noise(2, 4, 4), labels=np.array([0, 1]), classes=names[::-1])
        with pytest.raises(ValueError, match=r"test\.npz has other 'classes'"):
            read_npz(tmp_path / "d")


class TestDividing:
    @given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=80), seed=st.integers(0, 2**62))
    def test_everybody_is_in_one_split_and_classes_have_their_share(self, labels, seed):
        parts = {
            split: part.tolist()
            for split, part in divide(torch.tensor(labels), torch.arange(len(labels)), seed).items()
        }
        assert sorted(itertools.chain(*parts.values())) == list(range(len(labels)))
        for label, count in Counter(labels).items():
            sizes = {split: sum(labels[unit] == label for unit in part) for split, part in parts.items()}
            tenth = max(round(0.1 * count), 1)
            expected = {1: (1, 0, 0), 2: (1, 0, 1)}.get(count, (count - 2 * tenth, tenth, tenth))
            assert tuple(sizes.values()) == expected

    def test_time_and_memory_grow_with_the_examples_and_not_with_their_classes(self):
        labels = torch.arange(60_000) % 20_000  # a table of classes by examples would take gigabytes
        parts = divide(labels, torch.arange(60_000))
        for split in ("train", "val", "test"):
            assert torch.equal(labels[parts[split]].sort().values, torch.arange(20_000))

    def test_a_file_is_divided_by_the_seed_alone_whatever_its_order(self, tmp_path):
        images, labels = noise(40, 4, 4), np.arange(40) % 2
        order = np.random.default_rng(0).permutation(40)
        one = members(read_npz(save(tmp_path / "one.npz", images=images, labels=labels)))
        assert {split: len(part) for split, part in one.items()} == {"train": 32, "val": 4, "test": 4}
        assert members(read_npz(save(tmp_path / "two.npz", labels=labels[order], images=images[order]))) == one
        seeds = [members(read_npz(tmp_path / "one.npz", seed)) for seed in (1, 2)]
        assert len({tuple(sorted(each["test"])) for each in (one, *seeds)}) == 3
        assert config(tmp_path / "one.npz", seed=1).load("test").images.numpy().tobytes() in {
            b"".join(image.numpy().tobytes() for image in read_npz(tmp_path / "one.npz", 1).splits["test"][0])
        }

    def test_labels_stay_with_their_images(self, tmp_path):
        images = noise(50, 4, 4)
        images[:, 0, 0] = np.arange(50) % 5
        data = read_npz(save(tmp_path / "file.npz", images=images, labels=np.arange(50) % 5))
        for each, labels in data.splits.values():
            assert each[:, 0, 0, 0].tolist() == labels.tolist()
            assert set(labels.tolist()) == set(range(5))

    @given(
        patients=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 1)), min_size=12, max_size=30),
        seed=st.integers(0, 2**62),
        named=st.booleans(),
    )
    def test_a_group_is_never_in_two_splits(self, tmp_path_factory, patients, seed, named):
        patients += [(2, 0)] * 3 + [(2, 1)] * 3
        groups = np.repeat(np.arange(len(patients)), [scans for scans, _ in patients])
        labels = np.repeat([label for _, label in patients], [scans for scans, _ in patients])
        images = np.zeros((len(groups), 2, 2), np.uint8)
        images[:, 0, 0], images[:, 0, 1] = groups, np.arange(len(groups))
        order = np.random.default_rng(seed).permutation(len(groups))
        names = np.array([f"patient {group}" for group in groups]) if named else groups
        file = tmp_path_factory.mktemp("groups") / "file.npz"
        data = read_npz(save(file, images=images[order], labels=labels[order], groups=names[order]), seed)
        found = {split: set(each[:, 0, 0, 0].tolist()) for split, (each, _) in data.splits.items()}
        assert sum(map(len, found.values())) == len(set(groups.tolist())) == len(set.union(*found.values()))
        assert sum(len(labels) for _, labels in data.splits.values()) == len(groups)
        for label in (0, 1):
            count = sum(one == label for _, one in patients)
            tenth = max(round(0.1 * count), 1)
            assert sum(patients[group][1] == label for group in found["test"]) == tenth
            assert sum(patients[group][1] == label for group in found["val"]) == tenth

    def test_groups_of_splits_that_are_given_must_not_meet(self, tmp_path):
        groups = {
            "train_groups": np.array(list("aabbcc")),
            "val_groups": np.array(list("ddee")),
            "test_groups": np.array(["f", "b"]),
        }
        with pytest.raises(ValueError, match=r"group 'b' is in .*train_images and in .*test_images"):
            read_npz(save(tmp_path / "file.npz", **three_splits(), **groups))
        groups["test_groups"] = np.array(["f", "f"])
        assert read_npz(save(tmp_path / "file.npz", **three_splits(), **groups)).has_groups

    def test_holding_out_would_tear_groups_apart(self, tmp_path):
        file = save(tmp_path / "file.npz", images=noise(20, 4, 4), labels=np.arange(20) % 2, groups=np.arange(20) // 2)
        with pytest.raises(ValueError, match=r"data\.holdout 0\.1 would tear the groups of .* apart: leave it out"):
            config(file, holdout=0.1).load("train")

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"labels": np.array([0, 0, 1, 1])}, "too few examples to divide, 4, .*'val'"),
            ({"labels": np.arange(4)}, "nothing is left for 'val'"),
            ({"labels": np.array([0, 0, 1, 1]), "groups": np.array([1, 1, 2, 2])}, "too few groups to divide, 2"),
        ],
    )
    def test_too_few_to_divide_are_told(self, tmp_path, arrays, message):
        with pytest.raises(ValueError, match=message):
            read_npz(save(tmp_path / "file.npz", images=noise(4, 4, 4), **arrays))

    def test_a_class_that_only_another_split_has_is_named(self, tmp_path):
        # Class 2 is never what most of a group has, and all of it is in one group, which goes to tests for some seed.
        labels = np.array([0, 0, 1] * 10 + [0, 0, 2])
        file = save(tmp_path / "file.npz", images=noise(33, 4, 4), labels=labels, groups=np.arange(33) // 3)
        messages = []
        for seed in range(40):
            try:
                read_npz(file, seed)
            except ValueError as error:
                messages.append(str(error))
        assert 0 < len(messages) < 40
        assert all("label '2' is in '" in message and "but not in 'train'" in message for message in messages)


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
            "grey": three_splits((8, 8)),
            "volume": three_splits((8, 8, 8, 3), "volumes"),
            "float": three_splits((8, 8, 3), dtype=np.float32),
        }.items():
            with pytest.raises(
                ValueError, match=f"rand_augment is for flat uint8 images with 3 channels, but .*{name}"
            ):
                config(save(tmp_path / f"{name}.npz", **arrays), **change).load("train")


class TestCache:
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

    def test_a_file_that_changed_is_read_again(self, tmp_path):
        file = save(tmp_path / "file.npz", **three_splits())
        before = read_npz(file).splits["train"][0].clone()
        time = file.stat().st_mtime_ns
        arrays = three_splits()
        arrays["train_images"] = 255 - arrays["train_images"]
        os.utime(save(file, **arrays), ns=(time + 1_000_000, time + 1_000_000))
        assert torch.equal(read_npz(file).splits["train"][0], 255 - before)

    def test_a_relative_path_is_of_the_folder_one_is_in(self, tmp_path, monkeypatch):
        for name, shape in (("one", (4, 4)), ("two", (6, 6))):
            file = save(tmp_path / name / "file.npz", **three_splits(shape))
            os.utime(file, ns=(0, 0))
            monkeypatch.chdir(tmp_path / name)
            assert read_npz(Path("file.npz")).facts.image_size == shape


PLAIN = {"images": noise(30, 4, 4), "labels": np.arange(30) % 2}


class TestBadFiles:
    @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.99])
    def test_a_truncated_file_is_told(self, tmp_path, share):
        file = save(tmp_path / "file.npz", **PLAIN)
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=r"file\.npz is damaged, or no \.npz file \(.*\): write it again"):
            read_npz(file)

    @pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("place", range(20, 700, 40))
    def test_wrong_bytes_are_told_in_a_line(self, tmp_path, write, place):
        write(tmp_path / "file.npz", **PLAIN)
        content = bytearray((tmp_path / "file.npz").read_bytes())
        content[place : place + 30] = bytes(byte ^ 0x5A for byte in content[place : place + 30])
        (tmp_path / "file.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"file\.npz") as raised:
            read_npz(tmp_path / "file.npz")
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize("content", [b"", b"text", b"\x80\x04N.", b"PK\x03\x04", b"\x93NUMP"])
    def test_another_file_is_told(self, tmp_path, content):
        (tmp_path / "file.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"is damaged, or no \.npz file"):
            read_npz(tmp_path / "file.npz")

    def test_a_single_array_is_told(self, tmp_path):
        np.save(tmp_path / "file.npy", PLAIN["images"])
        with pytest.raises(ValueError, match="is a single array: write images and labels into one file"):
            read_npz(tmp_path / "file.npy")

    def test_a_zip_of_other_things_is_told(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
            archive.writestr("images", b"raw")
            archive.writestr("labels", b"raw")
        with pytest.raises(ValueError, match=r"is damaged, or no \.npz file \(.*magic string"):
            read_npz(tmp_path / "file.npz")

    def test_nothing_is_unpickled(self, tmp_path):
        class Wicked:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "executed"),)

        save(tmp_path / "file.npz", images=np.array([Wicked()] * 3, dtype=object), labels=np.arange(3))
        with pytest.raises(ValueError, match="images holds Python objects"):
            read_npz(tmp_path / "file.npz")
        assert not (tmp_path / "executed").exists()

    def test_images_of_several_shapes_are_told(self, tmp_path):
        ragged = np.empty(2, dtype=object)
        ragged[:] = [np.zeros((2, 2)), np.zeros((3, 3))]
        with pytest.raises(ValueError, match="are they of several shapes"):
            read_npz(save(tmp_path / "file.npz", images=ragged, labels=np.arange(2)))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"images": 0, "lables": 0}, r"has no 'labels': rename 'lables'"),
            ({"images": 0, "y": 0}, r"has no 'labels': it holds 'images', 'y'"),
            ({"imagse": 0, "labels": 0}, "'imagse', 'labels': it must hold 'images' .*; rename 'imagse'"),
            ({"x": 0, "y": 0}, "holds 'x', 'y': it must hold 'images'"),
            ({}, "holds nothing: it must hold 'images'"),
            ({"images": 0, "volumes": 0, "labels": 0}, "holds 'images', 'volumes': keep one of them"),
            ({"images": 0, "train_images": 0, "labels": 0}, "holds 'images', 'train_images': keep one"),
            ({"train_images": 0, "train_labels": 0}, "has no 'test_images'"),
            ({"train_images": 0, "train_labels": 0, "test_image": 0}, "has no 'test_images': rename 'test_image'"),
            ({"train_images": 0, "train_labels": 0, "test_images": 0}, "has no 'test_labels'"),
            ({"train_images": 0, "valid_images": 0}, "a split 'valid': call it 'val'"),
        ],
    )
    def test_names_that_are_missing_are_told_with_the_nearest(self, tmp_path, arrays, message):
        content = {key: PLAIN["labels" if key.endswith(("labels", "y")) else "images"] for key in arrays}
        with pytest.raises(ValueError, match=message):
            read_npz(save(tmp_path / "file.npz", **content))

    def test_what_a_file_holds_is_not_listed_without_end(self, tmp_path):
        file = save(tmp_path / "file.npz", **{f"array{number}": np.zeros(1) for number in range(500)})
        with pytest.raises(ValueError, match=r"file\.npz") as raised:
            config(file).load("train")
        assert len(str(raised.value)) < 700

    def test_lengths_that_differ_are_told(self, tmp_path):
        with pytest.raises(ValueError, match="has 30 images, but 29 labels: give one for each"):
            read_npz(save(tmp_path / "file.npz", images=PLAIN["images"], labels=PLAIN["labels"][1:]))
        with pytest.raises(ValueError, match="has 30 images, but 3 groups"):
            read_npz(save(tmp_path / "file.npz", **PLAIN, groups=np.arange(3)))

    def test_an_empty_split_is_told(self, tmp_path):
        arrays = three_splits()
        arrays["val_images"], arrays["val_labels"] = arrays["val_images"][:0], arrays["val_labels"][:0]
        with pytest.raises(ValueError, match="val_images is empty"):
            read_npz(save(tmp_path / "file.npz", **arrays))
        with pytest.raises(ValueError, match="images is empty"):
            read_npz(save(tmp_path / "file.npz", images=noise(0, 4, 4), labels=np.arange(0)))

    def test_what_is_missing_is_told(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no data at --data\.root .*none: give a \.npz file"):
            read_npz(tmp_path / "none")
        save(tmp_path / "mine.npz", **PLAIN)
        with pytest.raises(FileNotFoundError, match=r"no data at .*: did you mean .*mine\.npz\?"):
            read_npz(tmp_path / "mine")
        with pytest.raises(FileNotFoundError, match=r"train\.npz is missing"):
            read_npz(tmp_path)
        save(tmp_path / "train.npz", **PLAIN)
        with pytest.raises(FileNotFoundError, match=r"test\.npz is missing"):
            read_npz(tmp_path)

    def test_files_of_a_folder_that_do_not_fit_are_told(self, tmp_path):
        save(tmp_path / "train.npz", **PLAIN)
        save(tmp_path / "test.npz", volumes=noise(2, 4, 4, 4), labels=np.arange(2))
        with pytest.raises(ValueError, match=r"test\.npz holds volumes, but .*train\.npz holds images"):
            read_npz(tmp_path)
        save(tmp_path / "test.npz", image=noise(2, 4, 4), labels=np.arange(2))
        with pytest.raises(ValueError, match=r"test\.npz has no 'images': rename 'image'"):
            read_npz(tmp_path)
        save(tmp_path / "validation.npz", **PLAIN)
        with pytest.raises(ValueError, match="has a split 'validation': call it 'val'"):
            read_npz(tmp_path)

    def test_without_a_root_the_configuration_says_so(self):
        with pytest.raises(ValueError, match=r"data\.root is missing"):
            parse_config({"data": {"name": "npz"}})


def test_the_header_of_an_array_cannot_ask_for_more_than_there_is(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)})
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue())
        archive.writestr("labels.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"is damaged, or no \.npz file"):
        read_npz(tmp_path / "file.npz")


def header(shape, dtype: str) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def write_zip(path, method=zipfile.ZIP_DEFLATED, **contents: bytes):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return path


class TestMemory:
    """A small file cannot ask for much memory, whatever it claims or expands to."""

    @pytest.fixture(autouse=True)
    def allowance(self, monkeypatch):
        monkeypatch.setattr(npz_archive, "ALLOWANCE", 400_000)

    def refuse(self, file, message=r"would take [\d,]+ bytes of memory, but at most 400,000 are allowed .* np\.savez "):
        with pytest.raises(ValueError, match=message):
            read_npz(file)

    def test_what_expands_is_refused_before_it_is_unpacked(self, tmp_path, monkeypatch):
        np.savez_compressed(tmp_path / "file.npz", images=np.zeros((30, 200, 200), np.uint8), labels=PLAIN["labels"])
        monkeypatch.delattr(np.lib.format, "read_array")
        self.refuse(tmp_path / "file.npz")

    def test_it_may_be_as_large_as_the_file_is(self, tmp_path):
        images = noise(30, 200, 200)
        file = save(tmp_path / "file.npz", images=images, labels=PLAIN["labels"])
        assert read_npz(file).facts.image_size == (200, 200)
        np.savez_compressed(file, images=images // 16, labels=PLAIN["labels"])
        assert read_npz(file).facts.image_size == (200, 200)

    def test_pixels_count_as_they_are_kept(self, tmp_path):
        images = np.zeros((30, 60, 60))
        np.savez_compressed(tmp_path / "bytes.npz", images=images.astype(np.uint8), labels=PLAIN["labels"])
        assert read_npz(tmp_path / "bytes.npz").facts.image_size == (60, 60)
        np.savez_compressed(tmp_path / "short.npz", images=images.astype(np.int8), labels=PLAIN["labels"])
        self.refuse(tmp_path / "short.npz")

    @pytest.mark.parametrize("name", ["images", "labels", "classes"])
    def test_many_tiny_examples_count_too(self, tmp_path, name):
        arrays = PLAIN | {name: np.zeros((5_000, 1, 1) if name == "images" else 5_000, np.uint8)}
        np.savez_compressed(tmp_path / "file.npz", **arrays)
        self.refuse(tmp_path / "file.npz")

    def test_arrays_that_are_not_read_do_not_count(self, tmp_path):
        np.savez_compressed(tmp_path / "file.npz", **PLAIN, masks=np.zeros(10**7))
        assert read_npz(tmp_path / "file.npz").facts.image_size == (4, 4)

    @pytest.mark.parametrize(
        ("shape", "dtype"),
        [((10**9, 10**9), "|u1"), ((-30, 4, 4), "|u1"), ((10**18,), "<U0"), ((30, 4, 4), "|V2000000000"), ((), "<f8")],
    )
    def test_claims_are_not_believed(self, tmp_path, shape, dtype):
        file = write_zip(tmp_path / "file.npz", images=header(shape, dtype) + bytes(480), labels=header((30,), "|u1"))
        self.refuse(file, "would take|is damaged")

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_ways_to_compress_that_expand_without_bounds_are_refused(self, tmp_path, method):
        images = header((30, 4, 4), "|u1") + bytes(480)
        self.refuse(write_zip(tmp_path / "file.npz", method, images=images, labels=images), "numpy does not use")

    def test_many_groups_and_many_classes_take_linear_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr(npz_archive, "ALLOWANCE", 2**28)
        count = 60_000
        numbers = np.arange(count)
        np.savez(tmp_path / "file.npz", images=noise(count, 1, 1), labels=numbers // 3, groups=numbers)
        assert len(read_npz(tmp_path / "file.npz").facts.classes) == count // 3

    def test_levels_are_counted_in_parts(self, monkeypatch):
        images = noise(7, 3, 5, 5)
        whole = npz_pixels.statistics(images)
        monkeypatch.setattr(npz_pixels, "COUNTED_AT_ONCE", 60)
        assert npz_pixels.statistics(images) == whole

    @pytest.mark.parametrize("name", ["file.npz", "folder/train.npz"])
    def test_a_pipe_is_named_and_not_waited_for(self, tmp_path, name):
        (tmp_path / "folder").mkdir()
        save(tmp_path / "folder" / "test.npz", **PLAIN)
        os.mkfifo(tmp_path / name)
        with pytest.raises(ValueError, match=r"\.npz is a named pipe, not a regular file"):
            read_npz(tmp_path / name.partition("/")[0])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=40))
def test_a_group_counts_for_the_class_that_most_of_it_has(pairs):
    _, units = np.unique([unit for unit, _ in pairs], return_inverse=True)
    labels = np.array([label for _, label in pairs])
    counts = np.zeros((units.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (units, labels), 1)
    assert npz_splits._main_classes(units, labels).tolist() == counts.argmax(1).tolist()


class TestDigest:
    def test_it_does_not_depend_on_how_arrays_are_packed(self, tmp_path):
        arrays = {"images": np.arange(20 * 16, dtype=np.uint8).reshape(20, 4, 4), "labels": np.arange(20) % 2}
        np.savez(tmp_path / "one.npz", **arrays)
        np.savez_compressed(tmp_path / "other.npz", **arrays)
        assert read_npz(tmp_path / "one.npz").sha256 == read_npz(tmp_path / "other.npz").sha256
        arrays["images"][3, 2, 1] ^= 1
        np.savez(tmp_path / "changed.npz", **arrays)
        assert read_npz(tmp_path / "changed.npz").sha256 != read_npz(tmp_path / "one.npz").sha256

    def test_other_arrays_than_those_that_are_meant_are_refused(self, tmp_path):
        pytest.importorskip("pydantic")
        file = tmp_path / "mine.npz"
        np.savez(file, images=np.zeros((20, 4, 4), dtype=np.uint8), labels=np.arange(20) % 2)
        digest = read_npz(file).sha256
        assert len(open_data("npz", root=str(file), sha256=digest).load("train")) == 16
        with pytest.raises(ValueError, match=f"their SHA-256 sum is {digest}, not 0123; .* --data.sha256 null"):
            open_data("npz", root=str(file), sha256="0123").load("train")
