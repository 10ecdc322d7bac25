"""Execute runs as a SLURM job array through submitit; jobs save, requeue and resume when their time is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from liere.comparison.executors.contract import Executor
from liere.comparison.executors.resources import Resources, resources_of, threads_of
from liere.comparison.executors.slurm_options import check_options, check_text, check_time, parse_minutes
from liere.comparison.executors.slurm_session import SlurmSession
from liere.comparison.executors.storage import check_not_memory
from liere.errors import InputError
from liere.optional.extras import require
from liere.runs.config import RunConfig

__all__ = ["CLUSTERS", "SlurmExecutor"]

CLUSTERS = ("slurm", "local")
SIGNAL_SECONDS = 120  # between the request to save and the end of the time limit
TIMEOUTS = 50  # how often a run is requeued because its time was over


@dataclass(frozen=True)
class SlurmExecutor(Executor):
    """Execute each run as a job of a SLURM job array.

    Attributes:
        partition: Partition; None for the default one.
        time: Time limit of a job, in minutes or as SLURM writes it: `"4:00:00"`, `"2-00:00:00"`. A run that takes
            longer is saved and requeued.
        gpus_per_run: GPUs per run, a whole number; None for one unless `hardware.accelerator` is cpu.
        cpus_per_run: CPUs per run; None for one per thread and one per worker that loads data.
        account: Account to charge; None for the default one.
        qos: Quality of service; None for the default one.
        options: Other options of sbatch by their long names: `{"mem": "32G", "exclusive": True}`.
        cluster: `"slurm"`, or `"local"` to execute the same jobs as processes of this machine, without SLURM, which
            shows whether everything works before it is queued.
    """

    name: ClassVar[str] = "slurm"

    partition: str | None = None
    time: int | str = "4:00:00"
    gpus_per_run: float | None = None
    cpus_per_run: int | None = None
    account: str | None = None
    qos: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = "slurm"

    def __post_init__(self) -> None:
        check_time(self.time, SIGNAL_SECONDS if self.cluster == "slurm" else 0)
        if self.cluster not in CLUSTERS:
            raise InputError(f"--cluster must be slurm or local, got {self.cluster!r}")
        if self.gpus_per_run is not None and int(self.gpus_per_run) != self.gpus_per_run:
            raise InputError(f"--gpus-per-run must be a whole number for SLURM, got {self.gpus_per_run}")
        for name in ("partition", "account", "qos"):
            check_text(f"--{name}", getattr(self, name))
        check_options(self.options)

    def slots(self, config: RunConfig, jobs: int | None, runs: int) -> int | None:
        """Return how many runs are executed at the same time; without `jobs`, SLURM decides."""
        if self.cluster == "local":
            return min(jobs or 1, runs)
        return None if jobs is None else min(jobs, runs)

    def threads(self, config: RunConfig, slots: int | None) -> int:
        """Return the number of threads of a run."""
        return threads_of(config, self.cpus_per_run)

    def check(self, folder: Path) -> None:
        """Check that there is SLURM, and that other machines may see the folder; creates nothing.

        Raises:
            ImportError: If submitit is not installed.
            ValueError: If there is no SLURM, or other machines cannot see the folder.
        """
        require("submitit")
        import submitit

        if self.cluster == "local":
            return
        check_not_memory(folder)
        if submitit.SlurmExecutor.affinity() <= 0:
            raise InputError(
                "--executor slurm needs the commands of SLURM, and srun is not found: run it on a login node, or try "
                "--cluster local"
            )

    def open(self, folder: Path, slots: int | None) -> SlurmSession:
        """Return a session, which has not submitted anything yet.

        Raises:
            ImportError: If submitit is not installed.
            ValueError: If there is no SLURM, or other machines cannot see the folder.
        """
        self.check(folder)
        import submitit

        kind: Any = submitit.LocalExecutor if self.cluster == "local" else submitit.SlurmExecutor
        made = kind(_job_folder(folder), max_num_timeout=TIMEOUTS)
        return SlurmSession(made, folder, slots, self.parameters, is_local=self.cluster == "local")

    def parameters(self, configs: Sequence[RunConfig], slots: int | None) -> dict[str, Any]:
        """Return the parameters of submitit for the jobs of some runs."""
        needs = self._needs(configs)
        if self.cluster == "local":
            found: dict[str, Any] = {"timeout_min": parse_minutes(self.time), "signal_delay_s": min(SIGNAL_SECONDS, 30)}
            return found | ({"gpus_per_node": int(needs.gpus)} if needs.gpus else {})
        found = {
            "job_name": "liere",
            "time": parse_minutes(self.time),
            "nodes": 1,
            "ntasks_per_node": 1,
            "cpus_per_task": needs.cpus,
            "signal_delay_s": SIGNAL_SECONDS,
            "array_parallelism": slots or len(configs),
            "additional_parameters": {"requeue": True, **self.options},
        }
        chosen: dict[str, Any] = {"partition": self.partition, "account": self.account, "qos": self.qos}
        chosen["gpus_per_node"] = int(needs.gpus) or None
        return found | {name: value for name, value in chosen.items() if value is not None}

    def describe(self, folder: Path, configs: Sequence[RunConfig], slots: int | None) -> list[str]:
        """Return the script that would be submitted; works without SLURM.

        Raises:
            ImportError: If submitit is not installed.
            ValueError: If other machines cannot see the folder.
        """
        if self.cluster == "local":
            number = "one at a time" if slots == 1 else f"{slots} at a time"
            return [f"Runs are jobs of submitit on this machine, without SLURM, {number}."]
        require("submitit")
        check_not_memory(folder)
        return [
            f"Runs are the jobs of a SLURM job array. All machines must see {folder.absolute()}: each job checks that",
            "before it trains. The script for sbatch:",
            "",
            *self.script(folder, configs, slots).splitlines(),
        ]

    def script(self, folder: Path, configs: Sequence[RunConfig], slots: int | None) -> str:
        """Return the script that would be submitted; works without SLURM."""
        import submitit

        class Preview(submitit.SlurmExecutor):
            """An executor that does not ask for the commands of SLURM."""

            @classmethod
            def affinity(cls) -> int:
                """Return that it can be used."""
                return 1

        preview = Preview(_job_folder(folder), max_num_timeout=TIMEOUTS)
        preview.update_parameters(**self.parameters(configs, slots))
        if len(configs) > 1:
            preview.parameters["map_count"] = len(configs)
        return str(preview._make_submission_file_text(preview._submitit_command_str, ""))

    def _needs(self, configs: Sequence[RunConfig]) -> Resources:
        """Return the most that one of the runs needs, since all jobs of an array ask for the same."""
        each = [
            resources_of(config, cpus=self.cpus_per_run, gpus=self.gpus_per_run, has_gpus=self.cluster == "slurm")
            for config in configs
        ]
        return Resources(max(one.cpus for one in each), max(one.gpus for one in each))


def _job_folder(folder: Path) -> Path:
    """Return the folder of scripts and logs of jobs."""
    return folder.absolute() / "slurm"
