"""What a session does with jobs that die, are requeued, or cannot be submitted."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.executors import slurm_session
from liere.comparison.executors.contract import Task
from liere.comparison.executors.slurm_session import SlurmSession
from tests.comparison.plans import plan


class FakeJob:
    """A job that is done when `is_done` says so, without a result."""

    def __init__(self, number):
        self.job_id, self.is_done, self.state = f"{number}_0", False, "NODE_FAIL"
        self.paths = SimpleNamespace(result_pickle=Path("/no/result"), stderr=Path("/no/log"))

    def done(self, force_check=False):
        return self.is_done

    def get_info(self, mode):
        return {}


class FakeSubmitit:
    """An executor of submitit that notes what it submits, and calls `at_end` when it has."""

    def __init__(self):
        self.jobs, self.at_end = [], lambda: None

    def update_parameters(self, **_):
        pass

    @contextmanager
    def batch(self):
        yield
        self.at_end()

    def submit(self, *_):
        self.jobs.append(FakeJob(len(self.jobs)))
        return self.jobs[-1]

    def refuse(self):
        raise RuntimeError("sbatch: error: Socket timed out on send/recv operation")


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(slurm_session, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=lambda _: None))
    return clock


@pytest.fixture
def session(tmp_path, clock, monkeypatch):
    """A session of three tasks, none of which is submitted."""
    scancel = []
    monkeypatch.setattr(slurm_session.subprocess, "run", lambda command, check: scancel.append(command))
    monkeypatch.setattr(slurm_session, "for_other_machines", lambda tasks, store: list(tasks))
    monkeypatch.setattr(slurm_session, "CANCEL_SECONDS", -1.0)
    session = SlurmSession(FakeSubmitit(), tmp_path, None, lambda configs, slots: {}, is_local=False)
    session.scancel = scancel
    yield session
    session.close()


@pytest.fixture
def tasks(tmp_path):
    return [Task(run) for run in plan(tmp_path, seeds=range(3)).runs]


def test_patience_for_a_result_begins_anew_after_a_preemption(session, tasks, clock):
    session.submit(tasks[:1])
    (job,) = session.executor.jobs
    job.state = "TIMEOUT"
    job.is_done = True  # for a moment, between two states
    assert session.ended() == []
    job.is_done, clock.now = False, clock.now + 1000
    assert session.ended() == []
    job.is_done = True
    assert session.ended() == []
    clock.now += slurm_session.LATE_SECONDS + 1
    (ending,) = session.ended()
    assert ending.failure.startswith("because its job 0_0 ended as TIMEOUT")


def test_jobs_that_slurm_does_not_accept_at_first_are_an_error(session, tasks):
    session.executor.at_end = session.executor.refuse
    with pytest.raises(
        ValueError, match=r"SLURM does not accept the jobs \(sbatch: error: Socket timed out .*\): check"
    ):
        session.submit(tasks)


def test_jobs_that_slurm_does_not_accept_again_wait_and_the_others_carry_on(session, tasks, clock, capsys):
    session.submit(tasks)
    jobs = list(session.executor.jobs)
    jobs[0].is_done = True
    session.executor.at_end = session.executor.refuse
    session.ended()
    clock.now += slurm_session.LATE_SECONDS + 1
    for _ in range(3):
        assert session.ended() == []
        assert session.active() == tasks[1:]
    clock.now += slurm_session.ASK_SECONDS + 1
    assert session.ended() == []
    assert capsys.readouterr().err.count("SLURM does not accept jobs at the moment (sbatch: error: Socket") == 1
    assert len(session.executor.jobs) == 5
    session.executor.at_end = lambda: None
    clock.now += 2 * slurm_session.ASK_SECONDS + 1
    assert session.ended() == []
    assert session.active() == [*tasks[1:], tasks[0]]
    assert session.scancel == []


def test_runs_whose_job_is_never_accepted_again_fail_alone(session, tasks, clock):
    session.submit(tasks)
    session.executor.jobs[0].is_done = True
    session.executor.at_end = session.executor.refuse
    endings, begin = [], clock.now
    while not endings:
        endings = session.ended()
        clock.now += slurm_session.ASK_SECONDS
    (ending,) = endings
    assert (ending.name, ending.failure) == (tasks[0].name, "because SLURM did not accept its job 8 times")
    assert 40 * 60 < clock.now - begin < 90 * 60
    assert session.active() == tasks[1:]
    assert session.ended() == []


def test_an_interrupt_right_after_a_submission_leaves_no_job_that_is_not_canceled(session, tasks):
    session.executor.at_end = lambda: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        session.submit(tasks)
    session.cancel()
    (command,) = session.scancel
    assert set(command) == {"scancel", "0", "1", "2"}
