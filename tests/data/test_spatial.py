from __future__ import annotations

import pytest
import torch

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.data import SpatialReasoning
from tests.data.sections import open_data


def test_every_field_reaches_the_images():
    fields = {"distance": (1, 3), "distractor_arrows": 2, "distractor_letters": 1, "colors": "random", "seed": 7}
    section = open_data("spatial", size=60, train_examples=30, **fields)
    train = section.load("train")
    expected = SpatialReasoning(
        60, "train", 7, 30, distance=(1, 3), distractor_arrows=2, distractor_letters=1, colors="random"
    )
    assert len(train) == 30
    assert torch.equal(train.batch(range(30))[0], expected.batch(range(30))[0])
    plain = SpatialReasoning(60, "train", 7, 30)
    assert not torch.equal(train.batch(range(30))[0], plain.batch(range(30))[0])


def test_only_training_has_the_length_of_the_section():
    section = open_data("spatial", train_examples=30)
    usual = len(SpatialReasoning(108, "test", 0))
    assert [len(section.load(split)) for split in ("train", "test")] == [30, usual]
    assert [len(section.load(split, length=4)) for split in ("train", "val", "test")] == [4, 4, 4]


def test_facts_follow_the_size():
    assert open_data("spatial").facts.image_size == (108, 108)
    assert open_data("spatial", size=60).facts.image_size == (60, 60)
    assert open_data("spatial").load("test", size=84, length=2).facts.image_size == (84, 84)
    assert (open_data("spatial").side, len(open_data("spatial").facts.classes)) == (108, 4)


def test_decisive_fields_have_the_names_of_old_fingerprints():
    section = open_data("spatial", colors="random", size=108, distance=2)
    assert section.decisive_fields() == {"colours": "random", "distance": 2}
