from __future__ import annotations

import pytest
import torch

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.data import from_datasets
from liere.data.batches import EvaluationBatches
from liere.data.loader import make_loader
from tests.data.own_sets import Counted, Patches, section

ZEROS = torch.zeros(1, 4, 4)


class TestLabels:
    def test_labels_are_read_from_examples_only_where_nothing_lists_them(self):
        counted = Counted([(image, label) for image, label in Patches(60)])
        data = from_datasets(counted, classes=["a", "b"])
        before = counted.reads
        assert len(section(data).load("test")) == 6
        assert counted.reads - before >= 60
        whole = Patches(400)
        half = Counted(whole)
        half.targets = [*whole.labels]
        data = from_datasets(half, mean=[0.5] * 3, std=[0.5] * 3)
        section(data).load("test")
        assert half.reads < 200

    def test_a_list_of_labels_that_examples_do_not_agree_with_is_not_believed(self):
        data = Counted([(image, 1 - label) for image, label in Patches(60)])
        data.targets = Patches(60).labels
        config = section(from_datasets(data))
        chosen = config.load("test")
        assert chosen.batch(range(6))[1].bincount().tolist() == [3, 3]


def test_labels_and_images_are_checked_when_they_are_loaded():
    examples = [(ZEROS, 0), (ZEROS, 1), (ZEROS, 2), (ZEROS, 1)]
    config = section(from_datasets(examples, examples, classes=["a", "b"]))
    with pytest.raises(ValueError, match="label 2 of train must be from 0 to 1, got 2"):
        config.load("train").batch([1, 2])
    odd = [(ZEROS, 0), (ZEROS, 1), (ZEROS, 1), (ZEROS, 1), (torch.zeros(1, 4, 5), 1), (ZEROS, 1)]
    config = section(from_datasets(odd, odd, classes=["a", "b"], mean=[0.0], std=[1.0]))
    with pytest.raises(ValueError, match=r"image 4 of train is .*\(1, 4, 5\).* give all images the same shape"):
        config.load("train").batch([3, 4])


def test_workers():
    data = section(from_datasets(Patches(40), Patches(20))).load("test")
    one, other = (list(make_loader(data, EvaluationBatches(20, 6), workers=workers)) for workers in (0, 2))
    assert all(torch.equal(a.images, b.images) for a, b in zip(one, other, strict=True))
