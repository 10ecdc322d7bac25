"""Several processes at once, each of which is a command of `liere`, forked from one that has imported everything.

Imports take most of the time of a tiny run. As a script, it reads one line of JSON per job from standard input, forks
its processes, and answers with a line of JSON: their exit codes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Crew", "start_crew"]

ROOT = Path(__file__).parents[2]


class Crew:
    """A process that forks others."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process, self.folder, self.jobs = process, folder, 0

    def run(self, *words: str | Path, ranks: int = 2, like: str = "torchrun") -> str:
        """Run a command in several processes, as torchrun or SLURM would start them, and return what they print."""
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.jobs += 1
        output = self.folder / f"{self.jobs}.txt"
        environments = [_environment(like, rank, ranks, port) for rank in range(ranks)]
        job = {"words": list(map(str, words)), "environments": environments, "output": str(output)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        codes = json.loads(self.process.stdout.readline())
        assert codes == [0] * ranks, output.read_text()
        return output.read_text()


@contextmanager
def start_crew(folder: Path) -> Iterator[Crew]:
    """Start a process that forks others; `folder` receives what they print."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.training.crew"],
        cwd=ROOT,
        env=environment | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Crew(process, folder)
    finally:
        process.communicate()


def _environment(like: str, rank: int, ranks: int, port: int) -> dict[str, str]:
    common: dict[str, Any] = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    if like == "torchrun":
        common |= {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
        common |= {"GROUP_RANK": 0, "TORCHELASTIC_RUN_ID": "crew"}
    else:
        common |= {"SLURM_NTASKS": ranks, "SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NODEID": 0}
        common |= {"SLURM_NNODES": 1, "SLURM_STEP_ID": 0, "SLURM_JOB_ID": 77}
    return {name: str(value) for name, value in common.items()}


def _work(job: dict[str, Any], environment: dict[str, str]) -> int:
    """Run a command in this process, which was just forked."""
    file = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.update(environment)
    sys.argv = ["liere", *(word.replace("RANK", environment.get("SLURM_PROCID", "")) for word in job["words"])]
    from liere_command import main

    try:
        return main()
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _serve() -> None:
    import torch

    import liere.toolkit
    import liere.training.fit  # noqa: F401

    torch.set_num_threads(1)
    for line in sys.stdin:
        job = json.loads(line)
        children = []
        for environment in job["environments"]:
            if (child := os.fork()) == 0:
                os._exit(_work(job, environment))
            children.append(child)
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _serve()
