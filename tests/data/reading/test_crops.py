from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tests.training.requirements")
import numpy as np
from PIL import Image

from liere.data.reading import crops
from liere.data.reading.crops import crop_middle, draw_box, uniform_numbers
from liere.optional.torchvision_ops import import_with_torchvision
from tests.data.file_archives import picture


@given(st.integers(1, 500), st.integers(1, 500), st.integers(-(2**63), 2**63 - 1), st.floats(0.01, 1))
def test_boxes_are_inside(width, height, word, min_area):
    left, top, right, bottom = draw_box(width, height, uniform_numbers(word, 40), min_area)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height


def test_boxes_are_distributed_as_those_of_torchvision():
    transforms = import_with_torchvision("torchvision.transforms")
    ours = torch.tensor([draw_box(300, 200, uniform_numbers(word, 40), 0.08) for word in range(1000)]).float()
    ours = torch.stack([ours[:, 0], ours[:, 1], ours[:, 2] - ours[:, 0], ours[:, 3] - ours[:, 1]], 1)
    blank = torch.zeros(1, 200, 300)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs = torch.tensor(
            [transforms.RandomResizedCrop.get_params(blank, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(1000)]
        ).float()
    theirs = theirs[:, [1, 0, 3, 2]]
    errors = (ours.var(0) / 1000 + theirs.var(0) / 1000).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() / errors).max() < 4
    torch.testing.assert_close(ours.std(0), theirs.std(0), rtol=0.12, atol=0)


@pytest.mark.parametrize("size", [(30_000, 2), (1, 60_000)])
def test_a_long_strip_takes_no_more_memory_than_others(size, monkeypatch):
    strip = Image.linear_gradient("L").resize(size).convert("RGB")
    monkeypatch.setattr(crops, "MOST_RESIZED", 10**6)
    assert crop_middle(strip, 224).size == (224, 224)


def test_only_the_middle_of_a_strip_is_resized_and_it_is_the_same(monkeypatch):
    image = picture(1, 0, (90, 40))
    whole = np.asarray(crop_middle(image, 32)).astype(int)
    monkeypatch.setattr(crops, "MOST_RESIZED", 0)
    assert np.abs(np.asarray(crop_middle(image, 32)) - whole).max() <= 1
