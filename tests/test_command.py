"""The `liere` program before torch is imported, and the processes of a distributed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at /proc")
LAUNCH = """
import os, subprocess, sys, time
from liere_command.processes import announce_first_process
announce_first_process()
child = "from liere_command.processes import end_with_first_process as end; end(); import time; time.sleep(100)"
environment = os.environ | {"LOCAL_RANK": sys.argv[1]}
process = subprocess.Popen([sys.executable, "-c", child], env=environment, stdout=subprocess.DEVNULL)
print(process.pid, flush=True)
time.sleep(100)
"""


def catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(mask >> (number - 1) & 1)


def wait_until(condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("delay", [0, 0.1])
def test_a_signal_while_torch_is_imported_is_told_in_a_line(number, delay):
    process = subprocess.Popen(
        [sys.executable, "-m", "liere_command", "train", "--config", "none.yaml"], stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: catches(process.pid, signal.SIGHUP))  # the last one to be caught
    time.sleep(delay)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    name = signal.Signals(number).name
    assert error == f"liere: stopped by {name} before any work was done: nothing to save, run the same command again\n"
    assert process.returncode == 128 + number


def test_other_commands_have_the_usual_signals():
    code = (
        "import signal; from liere_command import signals\n"
        "before = [signal.getsignal(number) for number in signals.SIGNALS]\n"
        "signals.leave_on_signals()\n"
        "assert [signal.getsignal(number) for number in signals.SIGNALS] != before\n"
        "signals.use_default_signals()\n"
        "assert [signal.getsignal(number) for number in signals.SIGNALS] == before\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signals.leave_on_signals()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


CALL = """
import os, sys
from liere_command.signals import leave_on_signals
leave_on_signals()  # before threads are started
import liere.commands.{0} as command
def call(args):
    {1}
command.run = call
from liere_command import main
sys.argv = ["liere", *{2!r}]
sys.exit(main())
"""
FLOPS = ("flops", ["flops"])
EVAL = ("eval_command", ["eval", "run"])


def call(command: tuple[str, list[str]], body: str, rank: str = "0") -> tuple[int, str]:
    """Run a command that does something else, and return its exit code and what it prints to standard error."""
    code = CALL.format(command[0], body, command[1])
    environment = os.environ | {"SLURM_PROCID": rank}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_with_nothing_to_save_leaves_where_an_exception_would_be_ignored(number):
    body = f"type('Guard', (), {{'__del__': lambda self: os.kill(os.getpid(), {int(number)})}})()"
    name = signal.Signals(number).name
    assert call(FLOPS, body) == (128 + number, f"liere: stopped by {name}\n")


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code"), [(FLOPS, 143), (EVAL, 0)])
def test_a_task_of_slurm_receives_signals_unless_it_may_belong_to_a_run_of_several(command, code):
    assert call(command, "os.kill(os.getpid(), 15)", rank="1")[0] == code


@pytest.mark.slow
def test_a_signal_while_python_exits_does_not_change_the_exit_code():
    assert call(FLOPS, "import atexit; atexit.register(os.kill, os.getpid(), 2)") == (0, "")


def test_temporary_files_are_removed_when_a_signal_ends_the_program(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from liere_command import signals\n"
        "signals.leave_on_signals()\n"
        "left, kept = (Path(sys.argv[1]) / name for name in ('left', 'kept'))\n"
        "left.touch(), kept.touch()\n"
        "with signals.calling_on_leaving(kept.unlink):\n"
        "    pass\n"
        "signals.call_on_leaving(left.unlink)\n"
        "os.kill(os.getpid(), 15)\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", code, tmp_path], stderr=subprocess.DEVNULL, check=False).returncode == 143
    )
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_signals_after_the_work_keep_its_exit_code():
    code = (
        "import os; from liere_command import signals\n"
        "signals.leave_on_signals()\n"
        "signals.leave_silently(2)\n"
        "os.kill(os.getpid(), 15)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")


def test_signals_while_python_takes_down_its_modules_keep_the_exit_code():
    code = (
        "import os, sys; from liere_command import signals\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, pid=os.getpid()):\n"
        "        kill(pid, 15)\n"
        "late = Late()\n"
        "signals.leave_on_signals()\n"
        "signals.leave_silently(2)\n"
        "sys.exit(2)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")


def test_a_process_ends_with_its_parent():
    code = (
        "import os, subprocess, sys\n"
        "child = 'import sys, time; from liere_command.processes import end_with_parent as end;'\n"
        "child += 'end(int(sys.argv[1])); time.sleep(100)'\n"
        "child = subprocess.Popen([sys.executable, '-c', child, str(os.getpid())], stdout=subprocess.DEVNULL)\n"
        "print(child.pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wait_until(lambda: not is_running(int(done.stdout)), seconds=30)


def test_further_processes_keep_signals_for_later():
    code = (
        "import os, signal; from liere_command import signals\n"
        "signals.leave_on_signals()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "assert signal.sigpending() == {signal.SIGTERM}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"LOCAL_RANK": "1"})


@pytest.mark.parametrize(("rank", "ends"), [("1", True), ("0", False)])
def test_processes_of_a_run_end_with_the_one_that_started_them(rank, ends):
    parent = subprocess.Popen([sys.executable, "-c", LAUNCH, rank], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    time.sleep(1)  # it may have to begin to watch
    parent.kill()
    parent.communicate()
    try:
        if ends:
            wait_until(lambda: not is_running(child), seconds=60)
        else:
            time.sleep(2)
            assert is_running(child)
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)


def test_a_process_that_starts_when_the_one_that_started_it_is_gone_ends_at_once():
    with subprocess.Popen([sys.executable, "-c", ""]) as launcher:
        pass
    code = "from liere_command.processes import end_with_first_process as end; end(); print('lives')"
    for pid, lives in [(launcher.pid, False), (os.getppid(), True), ("no number", True)]:
        environment = os.environ | {"LOCAL_RANK": "1", "LIERE_LAUNCHER": str(pid)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == ((0, "lives\n") if lives else (1, ""))


def test_signals_wait_for_what_must_not_be_left_halfway():
    code = (
        "import os, signal; from liere_command import signals\n"
        "signals.leave_on_signals()\n"
        "with signals.hold_signals():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('whole', flush=True)\n"
        "print('left')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "whole\n")


def test_lines_that_nobody_reads_do_not_end_the_program():
    code = (
        "import os, sys; from liere.terminal.messages import tell, warn\n"
        "for stream in (1, 2):\n"
        "    reader, writer = os.pipe(); os.dup2(writer, stream); os.close(reader); os.close(writer)\n"
        "for _ in range(2):\n"
        "    tell('line'); warn('line')\n"
        "sys.exit(129)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 129


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("closed", ["0", "1", "2", "1 2", "0 1 2"])
def test_streams_that_are_closed_are_opened_to_nowhere(tmp_path, closed):
    """Files that are opened later do not get the descriptors of closed streams, and the program continues."""
    code = (
        "from liere_command.streams import open_missing_streams\n"
        "open_missing_streams()\n"
        "import sys\n"
        f"file = open({str(tmp_path / 'file')!r}, 'w')\n"
        "assert file.fileno() > 2\n"
        "for stream in (sys.stdout, sys.stderr):\n"
        "    stream.write('a line\\n'), stream.flush()\n"
        "assert sys.stdin.read() == ''\n"
        "file.write('well')\n"
    )
    closing = " ".join(f"{number}>&-" for number in closed.split())
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *words], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "file").read_text() == "well"


def test_a_command_works_without_standard_output():
    words = [sys.executable, "-m", "liere_command", "flops", "--size", "vit_tiny"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_task_of_slurm_leaves_on_signals_once_it_is_known_to_be_a_run_of_its_own():
    code = (
        "import os, signal; from liere_command import signals\n"
        "signals.leave_on_signals()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "signals.release_signals(2)\n"
        "print('kept', flush=True)\n"
        "signals.release_signals(1)\n"
        "print('lives')\n"
    )
    environment = os.environ | {"SLURM_PROCID": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "kept\n")
    assert "stopped by SIGTERM before any work was done" in done.stderr


@pytest.mark.parametrize("rank", ["0", "1"])
def test_processes_of_torchrun_all_leave_and_one_of_them_says_so(rank):
    code = (
        "import os, signal; from liere_command import signals\n"
        "signals.leave_on_signals()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "print('lives')\n"
    )
    environment = os.environ | {"TORCHELASTIC_RUN_ID": "none", "RANK": rank}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "")
    assert done.stderr.count("stopped by SIGTERM") == (rank == "0")


def test_processes_of_torchrun_end_with_it():
    code = (
        "import os, subprocess, sys, time\n"
        "child = 'from liere_command import processes as p; p.end_with_first_process(); import time; time.sleep(100)'\n"
        "environment = os.environ | {'TORCHELASTIC_RUN_ID': 'none', 'RANK': '0', 'LOCAL_RANK': '0'}\n"
        "process = subprocess.Popen([sys.executable, '-c', child], env=environment, stdout=subprocess.DEVNULL)\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(100)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    time.sleep(1)  # it may have to begin to watch
    parent.kill()
    parent.communicate()
    try:
        wait_until(lambda: not is_running(child), seconds=60)
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)
