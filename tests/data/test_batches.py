from __future__ import annotations

import collections
import gc
import itertools
import signal
import subprocess
import sys
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data import SpatialReasoning
from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches, make_loader, seed_of

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
        # Runs that are resumed with a later version count on these.
        assert ExampleOrder(10, 1)[range(12)] == [9, 4, 8, 3, 0, 6, 5, 2, 7, 1, 9, 4]
        assert [seed_of(1), seed_of(0, 1), seed_of(1, 0), seed_of(1, 2, 3)] == [
            3069472533636442495,
            2685646668815766553,
            3249487413993484806,
            4653587641283428202,
        ]


@st.composite
def batch_shapes(draw) -> tuple[int, int, int]:
    """Draw a batch size, a number of parts and a number of processes that fit."""
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
            assert len({len(part.indices) for part in parts}) == 1  # equal shares, so that means of means are means
            assert [example for part in parts for example in part.indices] == expected.indices
            assert torch.equal(torch.cat([part.words for part in parts]), expected.words)

    @given(first=st.integers(0, 11), shape=batch_shapes(), rank=st.integers(0, 3))
    def test_starting_at_any_step_gives_the_same_tail(self, first, shape, rank):
        batch_size, accumulate, world = shape
        rank %= world
        whole = list(TrainingBatches(ExampleOrder(17, 2), range(12), batch_size, accumulate, rank, world))
        tail = list(TrainingBatches(ExampleOrder(17, 2), range(first, 12), batch_size, accumulate, rank, world))
        assert [draw.indices for draw in tail] == [draw.indices for draw in whole[first * accumulate :]]
        for one, other in zip(tail, whole[first * accumulate :], strict=True):
            assert torch.equal(one.words, other.words)

    @given(shape=batch_shapes(), steps=st.integers(0, 5))
    def test_its_length_is_the_number_of_batches(self, shape, steps):
        batches = TrainingBatches(ExampleOrder(9, 0), range(steps), *shape[:2], 0, shape[2])
        assert len(batches) == len(list(batches))

    def test_an_epoch_of_steps_sees_every_example_once(self):
        batches = list(TrainingBatches(ExampleOrder(24, 5), range(6), 8))
        for epoch in (batches[:3], batches[3:]):
            assert sorted(example for batch in epoch for example in batch.indices) == list(range(24))


class TestEvaluationBatches:
    @given(length=st.integers(0, 50), batch_size=st.integers(1, 20), world=st.integers(1, 6))
    def test_every_example_is_in_one_batch_of_one_process(self, length, batch_size, world):
        dealt = [list(EvaluationBatches(length, batch_size, rank, world)) for rank in range(world)]
        seen = collections.Counter(example for batches in dealt for batch in batches for example in batch.indices)
        assert seen == collections.Counter(range(length))
        assert all(0 < len(batch.indices) <= batch_size for batches in dealt for batch in batches)
        assert [len(EvaluationBatches(length, batch_size, rank, world)) for rank in range(world)] == list(
            map(len, dealt)
        )

    @given(length=st.integers(0, 50), batch_size=st.integers(1, 20), world=st.integers(1, 6))
    def test_batches_are_the_same_for_any_number_of_processes(self, length, batch_size, world):
        alone = {tuple(batch.indices) for batch in EvaluationBatches(length, batch_size)}
        together = {
            tuple(batch.indices)
            for rank in range(world)
            for batch in EvaluationBatches(length, batch_size, rank, world)
        }
        assert alone == together


class TestLoader:
    def test_batches_hold_ids_images_and_labels(self):
        data = SpatialReasoning(48, "val", length=10)
        torch.manual_seed(0)
        before = torch.get_rng_state()
        (first, second, third) = make_loader(data, EvaluationBatches(10, 4))
        assert torch.equal(torch.get_rng_state(), before)
        assert third.ids.tolist() == [8, 9]
        for batch in (first, second, third):
            images, labels = data.batch(batch.ids.tolist())
            assert torch.equal(batch.images, images)
            assert torch.equal(batch.labels, labels)

    def test_workers_load_the_same_in_the_same_order(self):
        data = SpatialReasoning(48, "train", length=20)
        batches = TrainingBatches(ExampleOrder(20, 1), range(4), 6, 2)
        loaded = [list(make_loader(data, batches, workers=workers)) for workers in (0, 2)]
        assert len(loaded[0]) == 8
        for one, other in zip(*loaded, strict=True):
            assert all(torch.equal(*parts) for parts in zip(one, other, strict=True))

    def test_workers_leave_signals_to_the_process_that_trains(self):
        class Handlers(SpatialReasoning):
            def load(self, indices, words=None):
                ignored = [signal.getsignal(one) == signal.SIG_IGN for one in (signal.SIGINT, signal.SIGTERM)]
                return super().load(indices)._replace(labels=torch.tensor(ignored, dtype=torch.long))

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.getsignal(number) for number in numbers]
        (batch,) = make_loader(Handlers(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        assert batch.labels.tolist() == [1, 1]
        list(make_loader(Handlers(48, "val", length=2), EvaluationBatches(2, 2)))
        assert [signal.getsignal(number) for number in numbers] == before

    @pytest.mark.parametrize("method", [None, "forkserver"])
    def test_workers_that_are_left_at_the_end_of_the_program_do_not_keep_it(self, tmp_path, method):
        code = (
            "import multiprocessing\n"
            "from liere.data import SpatialReasoning\n"
            "from liere.data.batches import EvaluationBatches, make_loader\n"
            "def work():\n"
            "    data = SpatialReasoning(48, 'val', length=400)\n"
            "    batches = iter(make_loader(data, EvaluationBatches(400, 4), workers=2))\n"
            "    next(batches)\n"
            "    batches.itself = batches\n"  # not collected before the end
            "    print('leaves', flush=True)\n"
            "if __name__ == '__main__':\n"
        )
        if method is None:
            code += "    work()\n"
        else:
            code += f"    process = multiprocessing.get_context({method!r}).Process(target=work)\n"
            code += "    process.start(), process.join()\n"
        # A file: what is waited for is the program itself, not the end of a pipe that a worker has open.
        (tmp_path / "program.py").write_text(code)
        with (tmp_path / "log").open("w") as log:
            command = [sys.executable, tmp_path / "program.py"]
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=120, check=False)
        assert (done.returncode, (tmp_path / "log").read_text()) == (0, "leaves\n")

    def test_workers_of_a_loader_that_is_garbage_end_by_themselves(self):
        batches = iter(make_loader(SpatialReasoning(48, "val", length=40), EvaluationBatches(40, 4), workers=2))
        next(batches)
        workers = batches._workers
        batches.itself = [batches]  # a cycle, as in the traceback of an error
        del batches
        gc.collect()
        assert [worker.exitcode for worker in workers] == [0, 0]

    def test_a_worker_that_does_not_end_is_killed(self, monkeypatch):
        class Stuck(SpatialReasoning):
            def load(self, indices, words=None):
                if indices == [1]:
                    time.sleep(1_000)
                return super().load(indices)

        monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.5)
        batches = iter(make_loader(Stuck(48, "val", length=2), EvaluationBatches(2, 1), workers=1))
        next(batches)
        (worker,) = batches._workers
        batches._shutdown_workers()
        assert worker.exitcode == -signal.SIGKILL

    def test_workers_are_started_with_signals_blocked(self):
        class Mask(SpatialReasoning):
            def load(self, indices, words=None):
                blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
                found = [one in blocked for one in (signal.SIGINT, signal.SIGTERM)]
                return super().load(indices)._replace(labels=torch.tensor(found, dtype=torch.long))

        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        (batch,) = make_loader(Mask(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        assert batch.labels.tolist() == [1, 1]
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_seeds_depend_on_every_number_and_fit_into_63_bits():
    numbers = [(a, b) for a in range(-5, 20) for b in range(20)]
    found = {seed_of(*pair) for pair in numbers}
    assert len(found) == len(numbers)
    assert all(0 <= seed < 2**63 for seed in found)


def test_augmentation_words_differ_from_place_to_place_and_seed_to_seed():
    one, other = (list(TrainingBatches(ExampleOrder(8, seed), range(4), 8)) for seed in (0, 1))
    words = torch.cat([draw.words for draw in [*one, *other]])
    assert len(words.unique()) == 64
