from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from liere.data import SpatialReasoning
from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches
from liere.data.loader import LostWorkerError, lost_workers, make_loader
from liere.errors import InputError


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
            def load(self, indices, bits=None):
                ignored = [signal.getsignal(one) == signal.SIG_IGN for one in (signal.SIGINT, signal.SIGTERM)]
                return super().load(indices)._replace(labels=torch.tensor(ignored, dtype=torch.long))

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.getsignal(number) for number in numbers]
        (batch,) = make_loader(Handlers(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        assert batch.labels.tolist() == [1, 1]
        list(make_loader(Handlers(48, "val", length=2), EvaluationBatches(2, 2)))
        assert [signal.getsignal(number) for number in numbers] == before

    @pytest.mark.parametrize(
        "error", [InputError("a.png is damaged: replace it"), OSError("no disk"), MemoryError("too little")]
    )
    def test_errors_in_workers_keep_their_message(self, error):
        class Broken(SpatialReasoning):
            def load(self, indices, bits=None):
                raise error

        with pytest.raises(type(error)) as raised:
            list(make_loader(Broken(48, "val", length=2), EvaluationBatches(2, 2), workers=1))
        assert str(raised.value) == str(error)
        del raised  # it refers to the loader
        gc.collect()

    def test_a_worker_that_is_killed_is_reported_in_one_line(self):
        class Deadly(SpatialReasoning):
            def load(self, indices, bits=None):
                os.kill(os.getpid(), signal.SIGKILL)

        loader = make_loader(Deadly(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        message = (
            r"^a data loader worker (was killed by signal: Killed|exited unexpectedly), which often means that memory "
            r"ran out: use fewer hardware\.workers, and evaluate again$"
        )
        with pytest.raises(LostWorkerError, match=message), lost_workers("evaluate again"):
            list(loader)

    def test_a_worker_that_is_killed_at_once_is_missed_when_its_batch_is(self, monkeypatch):
        put = _MultiProcessingDataLoaderIter._try_put_index

        def kill_and_put(batches):
            for worker in batches._workers:
                worker.kill()
                os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
            put(batches)

        list(make_loader(SpatialReasoning(48, "val", length=2), EvaluationBatches(2, 2), workers=1))  # sets a handler
        loader = make_loader(SpatialReasoning(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        monkeypatch.setattr(_MultiProcessingDataLoaderIter, "_try_put_index", kill_and_put)
        batches = iter(loader)
        with pytest.raises(RuntimeError, match=r"DataLoader worker .* exited unexpectedly"):
            next(batches)

    @pytest.mark.parametrize("number", [1, 2])
    def test_workers_are_killed_if_another_cannot_be_started(self, monkeypatch, number):
        started, fork = [], os.fork

        def fail_to_fork():
            if len(started) == number - 1:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            started.append(fork())
            return started[-1]

        monkeypatch.setattr(os, "fork", fail_to_fork)
        message = r"^a data loader worker could not be started \(Resource .*\): use fewer hardware\.workers, and eval"
        loader = make_loader(SpatialReasoning(48, "val", length=2), EvaluationBatches(2, 2), workers=2)
        with pytest.raises(LostWorkerError, match=message), lost_workers("evaluate again"):
            iter(loader)
        assert len(started) == number - 1
        assert not multiprocessing.active_children()
        gc.collect()  # an error in the destructor would be a warning

    def test_a_thread_that_cannot_be_started_ends_the_workers(self, monkeypatch):
        def fail_to_start(thread):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", fail_to_start)
        loader = make_loader(SpatialReasoning(48, "val", length=2), EvaluationBatches(2, 2), workers=2)
        with pytest.raises(LostWorkerError, match=r"not be started \(can't start"), lost_workers("evaluate again"):
            iter(loader)
        assert not multiprocessing.active_children()

    def test_a_worker_that_cannot_send_a_batch_is_not_waited_for(self, monkeypatch, capfd):
        def fail_to_share(storage, *_):
            raise RuntimeError("unable to allocate shared memory: No space left on device")

        monkeypatch.setattr(torch.UntypedStorage, "_share_fd_cpu_", fail_to_share)
        loader = make_loader(SpatialReasoning(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        with pytest.raises(LostWorkerError, match="exited unexpectedly"), lost_workers("evaluate again"):
            next(iter(loader))
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith("liere: warning: a data loader worker cannot send a batch, see df /dev/shm")
        assert line.endswith("No space left on device)")

    def test_too_many_open_files_are_reported_in_one_line(self):
        message = "Too many open files. Communication with the workers is no longer possible. Please increase the limit"
        with pytest.raises(LostWorkerError, match=r"could not be reached \(too many open files"), lost_workers("go on"):
            raise RuntimeError(message)

    def test_the_reason_is_found_in_the_error_that_lightning_replaced(self):
        error = RuntimeError("other")
        error.__context__ = RuntimeError("DataLoader worker (pid(s) 1) exited unexpectedly")
        with pytest.raises(LostWorkerError, match="exited unexpectedly"), lost_workers("evaluate again"):
            raise error

    def test_other_errors_are_left_alone(self):
        with pytest.raises(RuntimeError, match=r"^other$"), lost_workers("evaluate again"):
            raise RuntimeError("other")

    @pytest.mark.parametrize("method", [None, "forkserver"])
    def test_workers_that_are_left_at_the_end_of_the_program_do_not_keep_it(self, tmp_path, method):
        code = (
            "import multiprocessing\n"
            "from liere.data import SpatialReasoning\n"
            "from liere.data.batches import EvaluationBatches\n"
            "from liere.data.loader import make_loader\n"
            "def work():\n"
            "    data = SpatialReasoning(48, 'val', length=400)\n"
            "    batches = iter(make_loader(data, EvaluationBatches(400, 4), workers=2))\n"
            "    next(batches)\n"
            "    batches.itself = batches\n"  # a cycle, so that it is not collected before the exit
            "    print('leaves', flush=True)\n"
            "if __name__ == '__main__':\n"
        )
        if method is None:
            code += "    work()\n"
        else:
            code += f"    process = multiprocessing.get_context({method!r}).Process(target=work)\n"
            code += "    process.start(), process.join()\n"
        # A file, so that we wait for the program itself and not for a pipe that a worker keeps open.
        (tmp_path / "program.py").write_text(code)
        with (tmp_path / "log").open("w") as log:
            command = [sys.executable, tmp_path / "program.py"]
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=400, check=False)
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
            def load(self, indices, bits=None):
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
            def load(self, indices, bits=None):
                blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
                found = [one in blocked for one in (signal.SIGINT, signal.SIGTERM)]
                return super().load(indices)._replace(labels=torch.tensor(found, dtype=torch.long))

        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        (batch,) = make_loader(Mask(48, "val", length=2), EvaluationBatches(2, 2), workers=1)
        assert batch.labels.tolist() == [1, 1]
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
