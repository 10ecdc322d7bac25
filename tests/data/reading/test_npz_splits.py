from __future__ import annotations

import tracemalloc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy")
import numpy as np

from liere.data.reading import npz_archive, npz_splits
from liere.data.reading.npz_arrays import read_npz
from tests.data.npz_files import members, noise, save, three_splits


class TestLabels:
    def labeled(self, tmp_path, train, test, **more):
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
        data = self.labeled(tmp_path, train, test)
        assert data.facts.classes == classes
        assert data.splits["test"][1].tolist() == numbers
        assert data.splits["test"][1].dtype == torch.int64

    def test_integers_of_several_types_stay_exact(self, tmp_path):
        data = self.labeled(tmp_path, [2**62, 2**62 + 1], np.array([2**62 + 1, 2**62], np.uint64))
        assert data.facts.classes == (str(2**62), str(2**62 + 1))
        assert data.splits["test"][1].tolist() == [1, 0]

    def test_names_of_classes_are_those_given(self, tmp_path):
        names = np.array(["sick", "healthy", "unknown"])
        data = self.labeled(tmp_path, [1, 0, 1], [1, 0], classes=names)
        assert (data.facts.classes, data.splits["train"][1].tolist()) == (("sick", "healthy", "unknown"), [1, 0, 1])
        data = self.labeled(tmp_path, ["sick", "healthy"], ["healthy", "sick"], classes=names)
        assert data.splits["test"][1].tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("train", "test", "names", "message"),
        [
            ([0, 1], [2, 7], None, "label '2' is in 'test' but not in 'train'"),
            (["a", "b"], ["c"], None, "label 'c' is in 'test' but not in 'train'"),
            ([0, 1], [2], ["x", "y", "z"], "label 'z' is in 'test' but not in 'train'"),
            ([0, 1], [3], ["x", "y", "z"], "test_images: label 3 is not an index of classes, 0 to 2"),
            ([0, -1], [0], ["x", "y"], "train_images: label -1 is not an index of classes"),
            (["sick", "haelthy"], ["sick"], ["sick", "healthy"], "label 'haelthy' .*did you mean 'healthy'?"),
            ([0, 1], [0], ["x", "x"], r"classes must be unique names, one per class, got \['x', 'x'\]"),
            ([0, 1], ["0"], None, "labels are integers in one split and strings in another"),
            ([0.0, 1.0], [0.0], None, "train_labels must be integers or strings, got float64"),
            ([[0, 1], [1, 0]], [0], None, r"train_labels must have one entry per example, .*got shape \(2, 2\)"),
            ([1, 1, 1], [1], None, "all training examples have label '1': add examples of another class"),
        ],
    )
    def test_what_is_wrong_with_them_is_reported(self, tmp_path, train, test, names, message):
        more = {} if names is None else {"classes": np.array(names)}
        with pytest.raises(ValueError, match=message):
            self.labeled(tmp_path, train, test, **more)


class TestGivenSplits:
    def test_splits_of_several_kinds_are_reported(self, tmp_path):
        arrays = three_splits()
        arrays["test_images"] = arrays["test_images"].astype(np.float32)
        with pytest.raises(ValueError, match=r"test_images has dtype float32, but .*train_images has uint8"):
            read_npz(save(tmp_path / "file.npz", **arrays))
        arrays["test_images"] = noise(2, 5, 4)
        with pytest.raises(ValueError, match=r"test_images has channels and axes \(1, 5, 4\), but .* has \(1, 4, 4\)"):
            read_npz(save(tmp_path / "file.npz", **arrays))

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


class TestDividing:
    def test_a_file_is_divided_by_the_seed_alone_whatever_its_order(self, tmp_path):
        images, labels = noise(40, 4, 4), np.arange(40) % 2
        order = np.random.default_rng(0).permutation(40)
        one = members(read_npz(save(tmp_path / "one.npz", images=images, labels=labels)))
        assert {split: len(part) for split, part in one.items()} == {"train": 32, "val": 4, "test": 4}
        assert members(read_npz(save(tmp_path / "two.npz", labels=labels[order], images=images[order]))) == one
        seeds = [members(read_npz(tmp_path / "one.npz", seed)) for seed in (1, 2)]
        assert len({tuple(sorted(each["test"])) for each in (one, *seeds)}) == 3

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

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"labels": np.array([0, 0, 1, 1])}, r"too few examples \(4\), .*'val'"),
            ({"labels": np.arange(4)}, "nothing is left for 'val'"),
            ({"labels": np.array([0, 0, 1, 1]), "groups": np.array([1, 1, 2, 2])}, r"too few groups \(2\)"),
        ],
    )
    def test_too_few_to_divide_are_reported(self, tmp_path, arrays, message):
        with pytest.raises(ValueError, match=message):
            read_npz(save(tmp_path / "file.npz", images=noise(4, 4, 4), **arrays))

    def test_a_class_that_only_another_split_has_is_named(self, tmp_path):
        # Class 2 is never the majority of a group, and is all in one group, which some seeds assign to the test split.
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

    def test_many_groups_and_many_classes_take_linear_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr(npz_archive, "ALLOWANCE", 2**28)
        count = 60_000
        numbers = np.arange(count)
        np.savez(tmp_path / "file.npz", images=noise(count, 1, 1), labels=numbers // 3, groups=numbers)
        tracemalloc.start()
        try:
            assert len(read_npz(tmp_path / "file.npz").facts.classes) == count // 3
            assert tracemalloc.get_traced_memory()[1] < 10_000 * count
        finally:
            tracemalloc.stop()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=40))
def test_a_group_counts_for_the_class_that_most_of_it_has(pairs):
    _, units = np.unique([unit for unit, _ in pairs], return_inverse=True)
    labels = np.array([label for _, label in pairs])
    counts = np.zeros((units.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (units, labels), 1)
    assert npz_splits._main_classes(units, labels).tolist() == counts.argmax(1).tolist()
