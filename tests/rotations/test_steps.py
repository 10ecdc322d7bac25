from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.rotations import steps
from liere.rotations.steps import Steps, choose_steps, group_tokens


@given(largest=st.floats(0, 1e6), size=st.integers(2, 64), vectors=st.integers(0, 64))
def test_scales_ascend_with_their_cost_and_reach_far_enough(largest, size, vectors):
    chosen = choose_steps(largest, size, vectors)
    assert chosen[0] == Steps(0, 1)
    assert chosen[-1].scale >= largest
    assert all(choice.scale < largest for choice in chosen[:-1])
    vectors = max(1, vectors)
    for less, more in itertools.pairwise(chosen):
        assert less.scale < more.scale
        assert size * less.squarings + vectors * less.steps < size * more.squarings + vectors * more.steps


def test_many_vectors_are_not_worth_steps_and_few_are():
    assert all(choice.steps <= 2 for choice in choose_steps(1000.0, size=8, vectors=32))
    assert choose_steps(5.0, size=8, vectors=2)[-1].squarings == 0
    assert Steps(1, 5) in choose_steps(10.0, size=8, vectors=2)


@given(
    ratios=st.lists(st.floats(0, 1e5), max_size=60), vectors=st.integers(1, 5), enough=st.sampled_from([0, 3, 10, 1000])
)
def test_every_token_is_in_one_group_whose_scale_is_enough_and_at_most_twice_what_it_needs(ratios, vectors, enough):
    tensor = torch.tensor(ratios)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "ENOUGH_TOKENS", enough)
        groups = group_tokens(tensor, 8, vectors)
    assert sorted(token for group in groups for token in group.tokens.tolist()) == list(range(len(ratios)))
    for own, tokens in groups:
        assert tokens.tolist() == sorted(tokens.tolist())
        assert (tensor[tokens] <= own.scale).all()
        if enough == 0:
            needed = [next(s for s in choose_steps(max(ratios), 8, vectors) if s.scale >= r) for r in tensor[tokens]]
            assert set(needed) == {own}
        assert (2 * tensor[tokens].clamp(min=1) * 2 >= own.scale).all()
