"""A run that another machine has taken over: the process that lost it writes nothing more."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.runs import locking
from liere.runs.lease_files import LeaseFiles
from liere.runs.lease_holder import Holder
from liere.runs.leases import LostRunError
from liere.training.fit import train
from liere.training.stop_requests import StopRequest
from tests.training.tiny import differences, make_run, quiet, resume

pytestmark = quiet


class TakeOver(StopRequest):
    """Let another machine take over after some steps, as if this process had been paused; note what there is then."""

    def __init__(self, run, step):
        super().__init__()
        self.run, self.step, self.files = run, step, LeaseFiles(run.folder)
        self.before = None

    def reason(self, steps):
        if steps == self.step:
            assert self.files.claim(max(self.files.numbers()) + 1, Holder("node7", "another machine", 1, "", "token"))
            locking._HELD[self.run.folder.absolute()].renewed -= 1000  # it was paused for so long
            self.before = contents(self.run)


def contents(run):
    files = [path for path in run.folder.rglob("*") if path.is_file() and path.parent.name != "tensorboard"]
    return {path: path.read_bytes() for path in files if not path.name.startswith(".lock")}


@pytest.mark.parametrize("step", [1, 2, 5, 7])
def test_who_lost_a_run_writes_nothing_more_and_the_other_one_finishes_it(tmp_path, step):
    run, whole = make_run(tmp_path / "run"), make_run(tmp_path / "whole")
    request = TakeOver(run, step)
    with pytest.raises(LostRunError, match="was taken over by process 1 on node7 while this process was paused"):
        train(run, say=print, request=request)
    assert contents(run) == request.before
    for number in request.files.numbers():
        request.files.release(number)
    resume(run)
    train(whole, say=print)
    assert differences(run, whole) == []
