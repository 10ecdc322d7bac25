"""Lease files in memory, used by simulated processes of which one takes a step at a time."""

from __future__ import annotations

import threading
from pathlib import Path

from liere.runs import leases
from liere.runs.lease_files import CLAIMED, RELEASED, WITHDRAWN, LeaseFiles, LeaseState
from liere.runs.lease_holder import Holder

__all__ = ["MemoryFiles", "Scene"]


class MemoryFiles(LeaseFiles):
    """Lease files that are a dict; before each access a process waits for its turn."""

    def __init__(self, content, wait):
        super().__init__(Path("run"))
        self.content, self.wait = content, wait

    def numbers(self):
        self.wait()
        return sorted(self.content, reverse=True)

    def read(self, number):
        self.wait()
        found = self.content.get(number)
        return found and LeaseState(found, Holder.from_text(found.partition(b"\n")[0].decode()))

    def claim(self, number, holder):
        self.wait()
        if number in self.content:
            return False
        self.content[number] = holder.as_text().encode() + b"\n" + CLAIMED
        return True

    def beat(self, number, count):
        self._put(number, b"%020d" % count)

    def release(self, number):
        self._put(number, RELEASED)

    def withdraw(self, number):
        self._put(number, WITHDRAWN)

    def remove_older(self, number):
        for older in self.numbers():
            if older < number:
                self.wait()
                self.content.pop(older, None)

    def _put(self, number, text):
        self.wait()
        if number in self.content:
            self.content[number] = self.content[number].partition(b"\n")[0] + b"\n" + text


class Scene:
    """Processes on machines of their own that want the same run; each writes a few times, then gives it back.

    Attributes:
        now: The time on all clocks.
        writes: Numbers of the leases under which something was written, in order, without those that were written so
            long after the check that nothing could have prevented them.
    """

    def __init__(self, processes, writes_each=3):
        self.now, self.writes, self.held, self.content = 0.0, [], 0, {}
        self.turns = [threading.Semaphore(0) for _ in range(processes)]
        self.waits = threading.Semaphore(0)
        self.is_over = False
        self.alive = set(range(processes))
        self.errors = []
        self.threads = [
            threading.Thread(target=self._live, args=(number, writes_each), daemon=True) for number in range(processes)
        ]
        for thread in self.threads:  # one at a time: each comes to its first step
            thread.start()
            self.waits.acquire()

    def step(self, number):
        """Let a process do its next access, if it has not ended."""
        if number in self.alive:
            self.turns[number].release()
            self.waits.acquire()

    def end(self):
        """End all processes wherever they are."""
        self.is_over = True
        for number in list(self.alive):
            self.step(number)
        for thread in self.threads:
            thread.join()

    def _live(self, number, writes_each):
        def wait():
            self.waits.release()
            self.turns[number].acquire()
            if self.is_over:
                raise SystemExit

        def process():
            return Holder(f"host{number}", f"machine{number}", 1, "", f"token{number}")

        try:
            files = MemoryFiles(self.content, wait)
            lease = leases.acquire_lease(
                Path("run"), 1e9, files=files, clock=lambda: self.now, sleep=lambda _: wait(), process=process
            )
            self.held += 1
            for _ in range(writes_each):
                lease.confirm()
                wait()
                if self.now - lease.renewed < leases.SILENCE:
                    self.writes.append(lease.number)
            lease.release()
        except (leases.LostRunError, SystemExit):
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.alive.discard(number)
            self.waits.release()
