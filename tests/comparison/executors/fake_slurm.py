"""Commands of SLURM that execute jobs on this machine: enough of sbatch, srun, sacct, scancel and scontrol.

Installed as scripts by `install`; each calls this file with its name.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

ARRAY = 1000
COMMANDS = ("sbatch", "srun", "sacct", "scancel", "scontrol")


def install(folder: Path) -> Path:
    """Write the commands to a folder, and return it; jobs are noted there, too."""
    folder.mkdir()
    for name in COMMANDS:
        script = folder / name
        script.write_text(f'#!/bin/bash\nexec {shlex.quote(sys.executable)} {shlex.quote(__file__)} {name} "$@"\n')
        script.chmod(0o755)
    return folder


def here() -> Path:
    """Return the folder of the commands."""
    return next(Path(part) for part in os.environ["PATH"].split(":") if (Path(part) / "sbatch").exists())


def sbatch(script: str) -> None:
    """Start the jobs of a script, at most as many at a time as its array allows."""
    number = ARRAY + len(list(here().glob("*.script")))
    copy = here() / f"{number}.script"
    copy.write_text(Path(script).read_text())
    command = [sys.executable, __file__, "control", str(copy)]
    subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"Submitted batch job {number}")


def control(script: str) -> None:
    """Execute the jobs of an array, again if they asked for it."""
    text, number = Path(script).read_text(), Path(script).stem
    array = re.search(r"--array=0-(\d+)%(\d+)", text)
    names = [f"{number}_{index}" for index in range(int(array[1]) + 1)] if array else [number]
    waiting, running = list(names), {}
    for name in names:
        (here() / f"{name}.state").write_text("PENDING")
    while waiting or running:
        while waiting and len(running) < (int(array[2]) if array else 1):
            name = waiting.pop(0)
            env = os.environ | {"SLURM_JOB_ID": name, "SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
            env |= {"SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "here"}
            if "_" in name:
                env |= {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": name.partition("_")[2]}
            (here() / f"{name}.state").write_text("RUNNING")
            running[name] = subprocess.Popen(["bash", script], env=env, start_new_session=True)
            (here() / f"{name}.pid").write_text(str(running[name].pid))
        time.sleep(0.2)
        for name, process in list(running.items()):
            if process.poll() is not None:
                del running[name]
                asked = here() / f"{name}.requeue"
                if asked.exists():
                    asked.rename(here() / f"{name}.requeued")
                    waiting.append(name)
                elif (here() / f"{name}.canceled").exists():
                    (here() / f"{name}.state").write_text("CANCELLED by 0")
                else:
                    (here() / f"{name}.state").write_text("FAILED" if process.returncode else "COMPLETED")


def srun(*arguments: str) -> None:
    """Execute a command in place of this one."""
    command = list(arguments)
    output = command[command.index("--output") + 1]
    error = command[command.index("--error") + 1]
    name = os.environ["SLURM_JOB_ID"]
    array, _, index = name.partition("_")
    for number, path in ((1, output), (2, error)):
        for tag, value in (("%A", array), ("%a", index), ("%j", name), ("%t", "0")):
            path = path.replace(tag, value)
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    while command[0].startswith("-"):
        command = command[2:] if command[0] in ("--output", "--error") else command[1:]
    os.execvp(command[0], command)


def sacct(*_: str) -> None:
    """Print the states of all jobs."""
    print("JobID|State|NodeList")
    for file in here().glob("*.state"):
        print(f"{file.stem}|{file.read_text()}|here")


def scancel(*numbers: str) -> None:
    """Ask jobs to end."""
    for file in here().glob("*.pid"):
        if file.stem.partition("_")[0] in numbers:
            (here() / f"{file.stem}.canceled").touch()
            os.killpg(int(file.read_text()), signal.SIGTERM)


def scontrol(verb: str, name: str) -> None:
    """Note that a job is to be executed again."""
    assert verb == "requeue"
    (here() / f"{name}.requeue").touch()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
