from __future__ import annotations

import random

import pytest
import torch

pytest.importorskip("numpy")
import numpy as np

from liere.data.global_seeds import global_seeds


def draw() -> tuple[float, float, float]:
    return float(torch.rand(())), float(np.random.rand()), random.random()


def test_a_seed_decides_what_all_generators_draw():
    with global_seeds() as seed_all:
        drawn = {}
        for seed in (7, 7, -3, 2**63 - 1):
            seed_all(seed)
            found = draw()
            assert drawn.setdefault(seed, found) == found
    assert len({number for found in drawn.values() for number in found}) == 9


def test_generators_are_as_they_were_afterwards_even_after_an_error():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    with pytest.raises(KeyError), global_seeds() as seed_all:  # noqa: PT012
        seed_all(1)
        draw()
        raise KeyError
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()
    assert before[2] == random.getstate()
