from __future__ import annotations

import collections
import itertools
import pickle

import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data.batches import Draw, EvaluationBatches, ExampleOrder, TrainingBatches, seed_of

worlds = st.sampled_from([1, 2, 3, 4])


class TestOrder:
    @given(length=st.integers(1, 60), seed=st.integers(0, 2**31), epochs=st.integers(1, 4))
    def test_every_example_comes_once_an_epoch(self, length, seed, epochs):
        order = ExampleOrder(length, seed)
        for epoch in range(epochs):
            assert sorted(order[range(epoch * length, (epoch + 1) * length)]) == list(range(length))

    @given(
        length=st.integers(1, 30),
        cuts=st.lists(st.integers(0, 40), max_size=6),
        backwards=st.booleans(),
    )
    def test_any_part_of_the_order_can_be_had_first(self, length, cuts, backwards):
        whole = ExampleOrder(length, 3)[range(40)]
        ends = sorted({0, 40, *cuts})
        parts = [range(start, stop) for start, stop in itertools.pairwise(ends)]
        order = ExampleOrder(length, 3)
        for part in reversed(parts) if backwards else parts:
            assert order[part] == [whole[place] for place in part]

    def test_epochs_and_seeds_are_other_orders(self):
        orders = [ExampleOrder(100, seed)[range(100 * epoch, 100 * epoch + 100)] for seed in (0, 1) for epoch in (0, 1)]
        assert len({tuple(order) for order in orders}) == 4
        assert all(order != sorted(order) for order in orders)

    def test_the_global_generator_is_neither_asked_nor_moved(self):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        one = ExampleOrder(20, 0)[range(20)]
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(1)
        assert ExampleOrder(20, 0)[range(20)] == one

    def test_orders_are_what_they_were_when_this_was_written(self):
        # Runs resumed with a later version depend on these.
        assert ExampleOrder(10, 1)[range(12)] == [9, 4, 8, 3, 0, 6, 5, 2, 7, 1, 9, 4]
        assert [seed_of(1), seed_of(0, 1), seed_of(1, 0), seed_of(1, 2, 3)] == [
            3069472533636442495,
            2685646668815766553,
            3249487413993484806,
            4653587641283428202,
        ]


@st.composite
def batch_shapes(draw) -> tuple[int, int, int]:
    """Draw a batch size with a number of parts and a number of processes that divide it."""
    size, accumulate, world = draw(st.integers(1, 3)), draw(worlds), draw(worlds)
    return size * accumulate * world, accumulate, world


class TestTrainingBatches:
    @given(shape=batch_shapes(), start=st.integers(0, 5), steps=st.integers(0, 5), length=st.integers(1, 40))
    def test_the_batch_of_a_step_is_the_same_for_any_number_of_parts_and_processes(self, shape, start, steps, length):
        batch_size, accumulate, world = shape
        order = ExampleOrder(length, 7)
        dealt = [
            list(TrainingBatches(order, range(start, start + steps), batch_size, accumulate, rank, world))
            for rank in range(world)
        ]
        whole = list(TrainingBatches(order, range(start, start + steps), batch_size))
        assert len(whole) == steps
        for step, expected in enumerate(whole):
            parts = [dealt[rank][step * accumulate + part] for part in range(accumulate) for rank in range(world)]
            assert len({len(part.indices) for part in parts}) == 1  # equal parts have equal weights
            assert [example for part in parts for example in part.indices] == expected.indices
            assert torch.equal(torch.cat([part.bits for part in parts]), expected.bits)

    @given(first=st.integers(0, 11), shape=batch_shapes(), rank=st.integers(0, 3))
    def test_starting_at_any_step_gives_the_same_tail(self, first, shape, rank):
        batch_size, accumulate, world = shape
        rank %= world
        whole = list(TrainingBatches(ExampleOrder(17, 2), range(12), batch_size, accumulate, rank, world))
        tail = list(TrainingBatches(ExampleOrder(17, 2), range(first, 12), batch_size, accumulate, rank, world))
        assert [draw.indices for draw in tail] == [draw.indices for draw in whole[first * accumulate :]]
        for one, other in zip(tail, whole[first * accumulate :], strict=True):
            assert torch.equal(one.bits, other.bits)

    @given(shape=batch_shapes(), steps=st.integers(0, 5))
    def test_its_length_is_the_number_of_batches(self, shape, steps):
        batches = TrainingBatches(ExampleOrder(9, 0), range(steps), *shape[:2], 0, shape[2])
        assert len(batches) == len(list(batches))

    def test_an_epoch_of_steps_sees_every_example_once(self):
        batches = list(TrainingBatches(ExampleOrder(24, 5), range(6), 8))
        for epoch in (batches[:3], batches[3:]):
            assert sorted(example for batch in epoch for example in batch.indices) == list(range(24))


def counted(batches: EvaluationBatches) -> list[list[int]]:
    return [draw.indices for place, draw in enumerate(batches) if not batches.is_extra(place)]


class TestEvaluationBatches:
    @given(length=st.integers(0, 50), batch_size=st.integers(1, 20), world=st.integers(1, 6))
    def test_every_example_is_in_one_batch_of_one_process(self, length, batch_size, world):
        dealt = [EvaluationBatches(length, batch_size, rank, world) for rank in range(world)]
        seen = collections.Counter(example for batches in dealt for batch in counted(batches) for example in batch)
        assert seen == collections.Counter(range(length))
        assert all(0 < len(batch.indices) <= batch_size for batches in dealt for batch in batches)

    @given(length=st.integers(0, 50), batch_size=st.integers(1, 20), world=st.integers(1, 6))
    def test_processes_have_equally_many_of_which_at_most_the_last_is_extra(self, length, batch_size, world):
        dealt = [EvaluationBatches(length, batch_size, rank, world) for rank in range(world)]
        assert {len(batches) for batches in dealt} == {len(list(batches)) for batches in dealt}
        assert len({len(batches) for batches in dealt}) == 1
        for batches in dealt:
            assert not any(batches.is_extra(place) for place in range(len(batches) - 1))
            assert all(len(draw.indices) == 1 for place, draw in enumerate(batches) if batches.is_extra(place))
        assert world > 1 or not any(dealt[0].is_extra(place) for place in range(len(dealt[0])))

    @given(length=st.integers(0, 50), batch_size=st.integers(1, 20), world=st.integers(1, 6))
    def test_batches_are_the_same_for_any_number_of_processes(self, length, batch_size, world):
        alone = {tuple(batch) for batch in counted(EvaluationBatches(length, batch_size))}
        together = {
            tuple(batch)
            for rank in range(world)
            for batch in counted(EvaluationBatches(length, batch_size, rank, world))
        }
        assert alone == together


def test_seeds_depend_on_every_number_and_fit_into_63_bits():
    numbers = [(a, b) for a in range(-5, 20) for b in range(20)]
    found = {seed_of(*pair) for pair in numbers}
    assert len(found) == len(numbers)
    assert all(0 <= seed < 2**63 for seed in found)


def test_augmentation_bits_differ_from_place_to_place_and_seed_to_seed():
    one, other = (list(TrainingBatches(ExampleOrder(8, seed), range(4), 8)) for seed in (0, 1))
    bits = torch.cat([draw.bits for draw in [*one, *other]])
    assert len(bits.unique()) == 64


def test_draws_are_sent_to_workers_as_numbers():
    """A tensor would take a file descriptor and a thread, which print tracebacks if a worker is killed."""
    for draw in (Draw([3, 1], torch.tensor([2**63 - 1, -5])), Draw([0], None)):
        sent = pickle.loads(pickle.dumps(draw))
        assert type(sent) is Draw
        assert sent.indices == draw.indices
        assert (sent.bits is None) == (draw.bits is None)
        assert sent.bits is None or torch.equal(sent.bits, draw.bits)
    assert b"_rebuild_tensor" not in pickle.dumps(Draw([3], torch.tensor([7])))
