from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data.subsets import divide, draw_fraction, hold_out

labels_of_sets = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(torch.tensor)
# There are two of class 0, so that something can be held out.
labels_to_hold_out = st.lists(st.integers(0, 4), max_size=60).map(lambda labels: torch.tensor([*labels, 0, 0]))
shares = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**62)


class TestFraction:
    @given(labels=labels_of_sets, fraction=st.floats(0.001, 1), seed=seeds)
    def test_it_is_this_share_of_every_class(self, labels, fraction, seed):
        kept = draw_fraction(labels, fraction, seed)
        everybody, some = Counter(labels.tolist()), Counter(labels[kept].tolist())
        assert some == {label: max(round(fraction * count), 1) for label, count in everybody.items()}

    @given(labels=labels_of_sets, fraction=st.floats(0.001, 1), seed=seeds)
    def test_examples_are_kept_once_and_in_order(self, labels, fraction, seed):
        kept = draw_fraction(labels, fraction, seed).tolist()
        assert kept == sorted(set(kept))
        assert all(0 <= example < len(labels) for example in kept)

    @given(labels=labels_of_sets, fractions=st.tuples(shares, shares), seed=seeds)
    def test_a_larger_one_holds_a_smaller_one(self, labels, fractions, seed):
        small, large = (set(draw_fraction(labels, fraction, seed).tolist()) for fraction in sorted(fractions))
        assert small <= large

    @given(labels=labels_of_sets, seed=seeds)
    def test_all_of_it_is_all_of_it(self, labels, seed):
        assert draw_fraction(labels, 1.0, seed).tolist() == list(range(len(labels)))

    def test_seeds_draw_others_and_every_example_is_drawn_by_some(self):
        labels = torch.tensor([0, 1] * 20)
        drawn = [tuple(draw_fraction(labels, 0.25, seed).tolist()) for seed in range(40)]
        assert len(set(drawn)) == 40
        assert set().union(*drawn) == set(range(40))
        assert drawn[3] == tuple(draw_fraction(labels, 0.25, 3).tolist())

    @pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, float("nan")])
    def test_another_number_is_reported(self, fraction):
        with pytest.raises(ValueError, match=f"fraction must be above 0 and at most 1, got {fraction}"):
            draw_fraction(torch.tensor([0, 1]), fraction)


class TestHoldOut:
    @given(labels=labels_to_hold_out, share=shares, seed=seeds)
    def test_the_two_parts_are_disjoint_and_complete(self, labels, share, seed):
        kept, out = (part.tolist() for part in hold_out(labels, share, seed))
        assert sorted(kept + out) == list(range(len(labels)))
        assert kept == sorted(kept)
        assert out == sorted(out)

    @given(labels=labels_to_hold_out, share=shares, seed=seeds)
    def test_it_is_this_share_of_every_class_but_never_a_whole_one(self, labels, share, seed):
        kept, out = hold_out(labels, share, seed)
        everybody, some = Counter(labels.tolist()), Counter(labels[out].tolist())
        for label, count in everybody.items():
            assert some[label] == min(max(round(share * count), 1), count - 1)
        assert set(labels[kept].tolist()) == set(labels.tolist())

    @given(labels=labels_to_hold_out, share=shares, seed=seeds)
    def test_it_depends_on_the_seed_alone(self, labels, share, seed):
        one, other = hold_out(labels, share, seed), hold_out(labels, share, seed)
        assert torch.equal(one[1], other[1])

    def test_it_is_not_what_a_fraction_of_the_same_seed_is(self):
        labels = torch.zeros(1000, dtype=torch.long)
        held_out, fraction = (set(part.tolist()) for part in (hold_out(labels, 0.1)[1], draw_fraction(labels, 0.1)))
        assert len(held_out & fraction) < 30

    def test_seeds_hold_out_others(self):
        labels = torch.zeros(40, dtype=torch.long)
        assert len({tuple(hold_out(labels, 0.25, seed)[1].tolist()) for seed in range(20)}) == 20

    @pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
    def test_another_number_is_reported(self, share):
        with pytest.raises(ValueError, match=f"the fraction to hold out must be between 0 and 1, got {share}"):
            hold_out(torch.tensor([0, 1]), share)

    def test_classes_of_one_cannot_be_split(self):
        with pytest.raises(ValueError, match="no class has two or more examples"):
            hold_out(torch.tensor([0, 1, 2]), 0.5)


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
        labels = torch.arange(60_000) % 20_000  # a table of classes x examples would take gigabytes
        parts = divide(labels, torch.arange(60_000))
        for split in ("train", "val", "test"):
            assert torch.equal(labels[parts[split]].sort().values, torch.arange(20_000))
