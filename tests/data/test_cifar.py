from __future__ import annotations

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.data.cifar import Cifar10Data, Cifar100Data
from liere.data.reading.cifar_files import read_cifar
from liere.runs.config_file import parse_config
from tests.data.archives import assert_same_examples, write_cifar


@pytest.fixture(autouse=True)
def forget():
    """Clear the cache, so that changed files are read again."""
    read_cifar.cache_clear()
    yield
    read_cifar.cache_clear()


class TestConfiguration:
    def config(self, tmp_path, **fields):
        return parse_config({"data": {"name": "cifar100", "root": str(tmp_path), "verify": False, **fields}})

    def test_validation_is_the_test_split_unless_some_are_held_out(self, tmp_path):
        expected = write_cifar(tmp_path, train=200)
        data = self.config(tmp_path).data
        assert_same_examples(data.load("val").load(range(20))[1:], expected["test"])
        assert [len(data.load(split)) for split in ("train", "val", "test")] == [200, 20, 20]
        held = self.config(tmp_path, holdout=0.5).data
        assert [len(held.load(split)) for split in ("train", "val", "test")] == [100, 100, 20]
        parts = torch.cat([held.load(split).images for split in ("train", "val")])
        assert sorted(map(bytes, parts.flatten(1).numpy())) == sorted(map(bytes, expected["train"][0].reshape(200, -1)))

    def test_lengths_sizes_and_augmentation_are_those_asked_for(self, tmp_path):
        write_cifar(tmp_path, train=200)
        data = self.config(tmp_path, size=16, padding=4, flip=True, fraction=0.5).data
        train = data.load("train")
        assert len(train) == 100
        assert (train.augmentation.padding, train.augmentation.flip) == (4, True)
        assert not data.load("test").augmentation
        assert data.load("test", size=48, length=7).batch(range(7))[0].shape == (7, 3, 48, 48)
        assert train.facts.image_size == data.facts.image_size == (16, 16)
        assert len(data.load("train", length=3)) == 3

    def test_fewer_test_examples_are_spread_evenly(self, tmp_path):
        expected = write_cifar(tmp_path, test=20)
        few = self.config(tmp_path).data.load("test", length=5)
        assert few.labels.tolist() == expected["test"][1][::4]

    def test_where_the_data_is_and_whether_it_is_checked_does_not_change_the_run(self, tmp_path):
        base = parse_config({"data": {"name": "cifar100"}}).fingerprint
        assert self.config(tmp_path).fingerprint == base
        assert parse_config({"data": {"name": "cifar100", "size": 32}}).fingerprint == base
        for other in ({"fraction": 0.5}, {"holdout": 0.1}, {"padding": 4}, {"flip": True}, {"size": 48}, {"seed": 1}):
            assert self.config(tmp_path, **other).fingerprint != base, other
        assert parse_config({"data": {"name": "cifar10"}}).fingerprint != base


def test_facts_are_those_of_the_classes():
    assert [len(section.known_facts.classes) for section in (Cifar10Data, Cifar100Data)] == [10, 100]
    assert Cifar10Data.known_facts.classes[3] == "cat"
