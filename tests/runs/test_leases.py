"""Leases on runs: between processes, between machines, after deaths and pauses."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("filelock")
from hypothesis import given
from hypothesis import strategies as st

from liere.runs import lease_holder, leases
from liere.runs.lease_files import LeaseFiles
from liere.runs.lease_holder import Holder, this_process
from liere.runs.leases import LostRunError, acquire_lease
from liere.runs.locking import confirm_lock, is_locked, lock_folder
from tests.runs.simulated_leases import Scene

ELSEWHERE = Holder("node7", "another machine", os.getpid(), "", "a token")


class Clock:
    """A clock that only moves while somebody waits; `events` happen at their times."""

    def __init__(self, **events):
        self.now, self.events = 100.0, []

    def __call__(self):
        return self.now

    def at(self, seconds, event):
        self.events.append((self.now + seconds, event))

    def sleep(self, seconds):
        self.now += seconds
        due = [event for when, event in self.events if when <= self.now]
        self.events = [(when, event) for when, event in self.events if when > self.now]
        for event in due:
            event()


@pytest.fixture
def clock():
    return Clock()


def take(folder, patience, clock):
    return acquire_lease(folder, patience, clock=clock, sleep=clock.sleep)


def hold_elsewhere(folder, number=1, holder=ELSEWHERE):
    files = LeaseFiles(folder)
    assert files.claim(number, holder)
    files.beat(number, 1)
    return files


def test_whoever_waits_can_be_called_off(tmp_path, clock):
    hold_elsewhere(tmp_path)
    begin = clock()

    def check():
        if clock() > begin + 5:
            raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        acquire_lease(tmp_path, 30, clock=clock, sleep=clock.sleep, check=check)
    assert clock() < begin + 10
    assert LeaseFiles(tmp_path).numbers() == [1]


def test_leases_follow_each_other_and_leave_one_file(tmp_path, clock):
    for number in (1, 2, 3):
        lease = take(tmp_path, 0, clock)
        assert lease.number == number
        lease.confirm()
        lease.release()
    assert [path.name for path in tmp_path.iterdir()] == [".lock-3"]


def test_a_live_process_of_this_machine_keeps_its_lease_however_silent_it_is(tmp_path, clock):
    mine = take(tmp_path, 0, clock)  # its heartbeat is never started
    with pytest.raises(ValueError, match="is in use by another process: wait for it or stop it"):
        take(tmp_path, 1000, clock)
    mine.confirm()


def test_a_dead_process_of_this_machine_is_succeeded_at_once(tmp_path, clock):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    hold_elsewhere(tmp_path, holder=replace(this_process(), pid=ended.pid))
    assert take(tmp_path, 0, clock).number == 2


def test_another_process_that_got_the_same_id_is_not_the_holder(tmp_path, clock):
    hold_elsewhere(tmp_path, holder=replace(this_process(), start="1"))  # this process, but of another time
    assert take(tmp_path, 0, clock).number == 2


def test_another_machine_is_succeeded_after_a_minute_of_silence(tmp_path, clock):
    hold_elsewhere(tmp_path)
    begin = clock()
    lease = take(tmp_path, 10, clock)
    assert leases.SILENCE <= clock() - begin < leases.SILENCE + 2 * leases.SLOW_POLL
    assert lease.number == 2
    lease.confirm()


def test_who_does_not_want_to_wait_does_not(tmp_path, clock):
    hold_elsewhere(tmp_path)
    with pytest.raises(ValueError, match="is in use by another process on node7: wait for it or stop it"):
        take(tmp_path, 0, clock)
    assert clock() == 100.0


def test_another_machine_that_is_alive_keeps_its_lease(tmp_path, clock):
    files = hold_elsewhere(tmp_path)
    for beat in range(2, 20):
        clock.at((beat - 1) * leases.HEARTBEAT, lambda beat=beat: files.beat(1, beat))
    with pytest.raises(ValueError, match="in use by another process on node7"):
        take(tmp_path, 15, clock)
    assert clock() < 100 + leases.SILENCE  # it was seen to be alive, so there is nothing more to find out


def test_a_release_on_another_machine_is_seen_soon(tmp_path, clock):
    files = hold_elsewhere(tmp_path)
    clock.at(5, lambda: files.release(1))
    take(tmp_path, 10, clock)
    assert clock() <= 105 + leases.SLOW_POLL


def test_who_was_paused_notices_before_it_writes(tmp_path, clock, monkeypatch):
    paused = acquire_lease(tmp_path, 0, clock=clock, process=lambda: ELSEWHERE)
    paused.confirm()
    successor = take(tmp_path, 10, clock)
    with pytest.raises(LostRunError, match=rf"run {tmp_path} was taken over by process {os.getpid()} on .*: it stops"):
        paused.confirm()
    paused.release()  # changes nothing for the successor
    successor.confirm()


def test_a_brief_check_asks_the_files_only_after_a_pause(tmp_path, clock):
    lease = take(tmp_path, 0, clock)
    hold_elsewhere(tmp_path, number=2)
    lease.confirm(is_brief=True)  # nobody could have taken over so soon after a heartbeat
    clock.now += leases.SILENCE / 2
    with pytest.raises(LostRunError):
        lease.confirm(is_brief=True)
    with pytest.raises(LostRunError):
        lease.confirm(is_brief=True)


def test_a_claim_that_came_to_nothing_does_not_count(tmp_path, clock):
    lease = take(tmp_path, 0, clock)
    files = LeaseFiles(tmp_path)
    files.claim(2, ELSEWHERE)
    files.withdraw(2)
    lease.confirm()
    lease.release()
    assert take(tmp_path, 0, clock).number == 3


def test_a_claim_whose_process_died_does_not_shorten_the_wait_for_the_holder(tmp_path, clock):
    hold_elsewhere(tmp_path)
    LeaseFiles(tmp_path).claim(2, replace(this_process(), start="1"))
    begin = clock()
    assert take(tmp_path, 10, clock).number == 3
    assert clock() - begin >= leases.SILENCE


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"pid": -1}\n', b"x" * 10_000])
def test_a_damaged_lease_is_waited_for_like_that_of_another_machine(tmp_path, clock, content):
    (tmp_path / ".lock-1").write_bytes(content)
    begin = clock()
    assert take(tmp_path, 10, clock).number == 2
    assert clock() - begin >= leases.SILENCE


@pytest.mark.parametrize("number", [1, 10**18 - 1, 10**30])
@pytest.mark.parametrize("replace_it", [lambda path: path.mkdir(), lambda path: path.symlink_to("nothing")])
def test_whatever_has_the_name_of_a_lease_does_not_keep_the_run_for_good(tmp_path, clock, number, replace_it):
    replace_it(tmp_path / f".lock-{number}")
    begin = clock()
    for following in (1, 2):
        lease = take(tmp_path, 10, clock)
        assert lease.number == number + following
        lease.confirm()
        lease.release()
    assert clock() - begin >= leases.SILENCE


@pytest.mark.parametrize("pid", [2**31, 2**70])
def test_no_process_has_a_huge_number(tmp_path, clock, pid):
    hold_elsewhere(tmp_path, holder=replace(this_process(), pid=pid))
    assert not is_locked(tmp_path)
    assert take(tmp_path, 0, clock).number == 2


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, clock):
    lease, before = take(tmp_path, 0, clock), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        for act, number in ((lease.confirm, 1), (lambda: lease.files.claim(2, ELSEWHERE), 2)):
            with pytest.raises(OSError, match=rf"\.lock-{number} could not be written \(File too large\): free some"):
                act()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == [".lock-1"]


def test_systems_without_hard_links_do_without(tmp_path, clock, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "no links")

    monkeypatch.setattr(os, "link", refuse)
    lease = take(tmp_path, 0, clock)
    assert not LeaseFiles(tmp_path).claim(1, ELSEWHERE)
    lease.confirm()


def test_an_answer_that_got_lost_is_recognized(tmp_path, clock, monkeypatch):
    link = os.link

    def link_and_lose_the_answer(*paths):
        link(*paths)
        raise FileExistsError

    monkeypatch.setattr(os, "link", link_and_lose_the_answer)
    assert take(tmp_path, 0, clock).number == 1


def test_locks_of_this_process_can_be_confirmed_and_seen(tmp_path):
    confirm_lock(tmp_path)  # not locked by this process: nothing to confirm
    assert not is_locked(tmp_path / "missing")
    assert not is_locked(tmp_path)
    with lock_folder(tmp_path):
        assert is_locked(tmp_path)
        confirm_lock(tmp_path)
        LeaseFiles(tmp_path).claim(2, ELSEWHERE)
        with pytest.raises(LostRunError):
            confirm_lock(tmp_path)


class TestSimulatedMachines:
    @given(
        st.lists(
            st.one_of(st.integers(0, 2), st.sampled_from([leases.SILENCE / 2, leases.SILENCE, 3 * leases.SILENCE])),
            max_size=150,
        )
    )
    def test_writes_are_never_out_of_order(self, steps):
        """A process that has been succeeded writes nothing, whatever the order in which three machines proceed."""
        scene = Scene(3)
        try:
            for step in steps:
                if isinstance(step, int):
                    scene.step(step)
                else:
                    scene.now += step
        finally:
            scene.end()
        assert scene.errors == []
        assert scene.writes == sorted(scene.writes)

    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30)), max_size=40))
    def test_everybody_gets_its_turn_in_the_end(self, steps):
        scene = Scene(3, writes_each=1)
        for number, times in steps:
            for _ in range(times):
                scene.step(number)
        for _ in range(400):
            scene.now += 1.0
            for number in range(3):
                scene.step(number)
        scene.end()
        assert scene.errors == []
        assert scene.held == 3


def live(folder, machine, writes):
    """Write to a run as a process that believes to be on a machine of its own."""
    lease_holder._this_machine = lambda: machine
    leases.HEARTBEAT, leases.SILENCE = 0.1, 1.5
    with lock_folder(folder, patience=60):
        (folder / f"{machine} has it").touch()
        for _ in range(writes):
            time.sleep(0.05)
            try:
                confirm_lock(folder)
            except LostRunError:
                os._exit(7)
            with open(folder / "log", "a") as file:
                file.write(machine + "\n")


class TestProcesses:
    """Processes that believe to be on machines of their own."""

    @pytest.fixture
    def start(self, tmp_path):
        started = []

        def begin(machine, writes):
            # Forked, because importing torch again would take longer than the test.
            process = multiprocessing.get_context("fork").Process(target=live, args=(tmp_path, machine, writes))
            process.start()
            started.append(process)
            return process

        yield begin
        for process in started:
            process.kill()
            process.join()

    @staticmethod
    def wait_for(path):
        deadline = time.monotonic() + 60
        while not path.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    @staticmethod
    def code(process):
        process.join(60)
        return process.exitcode

    def test_a_killed_machine_is_succeeded_and_a_live_one_is_waited_for(self, tmp_path, start):
        first = start("one", 10_000)
        self.wait_for(tmp_path / "one has it")
        second = start("two", 3)
        time.sleep(2.5)  # longer than the silence
        first.kill()
        assert self.code(second) == 0
        machines = (tmp_path / "log").read_text().split()
        assert machines == sorted(machines)  # none of the second before the first was killed
        assert machines.count("one") > 10
        assert machines.count("two") == 3

    def test_a_paused_machine_is_succeeded_and_stops_when_it_wakes(self, tmp_path, start):
        first = start("one", 10_000)
        self.wait_for(tmp_path / "one has it")
        os.kill(first.pid, signal.SIGSTOP)
        second = start("two", 3)
        self.wait_for(tmp_path / "two has it")
        os.kill(first.pid, signal.SIGCONT)
        assert (self.code(second), self.code(first)) == (0, 7)
        machines = (tmp_path / "log").read_text().split()
        assert machines == sorted(machines)

    def test_of_many_that_wait_one_wins_at_a_time(self, tmp_path, start):
        dead = start("dead", 10_000)
        self.wait_for(tmp_path / "dead has it")
        waiting = [start(f"m{number}", 3) for number in range(3)]
        dead.kill()
        assert [self.code(process) for process in waiting] == [0, 0, 0]
        machines = [name for name in (tmp_path / "log").read_text().split() if name != "dead"]
        assert sorted(machines) == sorted(3 * ["m0", "m1", "m2"])
        assert all(len(set(machines[first : first + 3])) == 1 for first in (0, 3, 6))  # never mixed
