"""Arguments that say where the runs of a comparison are executed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from liere.commands.arguments import positive_number

if TYPE_CHECKING:
    from liere.comparison.executors.contract import Executor

__all__ = ["add_executor_arguments", "given_executor"]

NAMES = ("local", "ray", "slurm")
OPTIONS = ("address", "partition", "time", "account", "qos", "gpus_per_run", "cpus_per_run", "cluster")


def add_executor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--executor` and its options."""
    group = parser.add_argument_group("executor", "where runs are executed: see docs/how-to/cluster.md")
    group.add_argument(
        "--executor", choices=NAMES, default="local", help="this machine, a Ray cluster, or SLURM (default: local)"
    )
    group.add_argument(
        "--jobs",
        type=positive_number,
        metavar="N",
        help="number of parallel runs (default: one per GPU or core; on a cluster, as many as it has room for)",
    )
    group.add_argument(
        "--gpus-per-run",
        type=_number,
        metavar="N",
        help="ray, slurm: GPUs per run; ray: also fractions (default: 1 if the run can use it)",
    )
    group.add_argument(
        "--cpus-per-run",
        type=positive_number,
        metavar="N",
        help="ray, slurm: CPUs per run (default: one per thread and data worker)",
    )
    group.add_argument(
        "--address", metavar="ADDRESS", help="ray: auto, HOST:PORT, or local to start Ray here (default: auto)"
    )
    group.add_argument("--partition", metavar="NAME", help="slurm: partition")
    group.add_argument(
        "--time", metavar="TIME", help="slurm: time limit of a job, after which it is requeued (default: 4:00:00)"
    )
    group.add_argument("--account", metavar="NAME", help="slurm: account")
    group.add_argument("--qos", metavar="NAME", help="slurm: quality of service")
    group.add_argument(
        "--slurm-option",
        action="append",
        type=_slurm_option,
        metavar="KEY=VALUE",
        dest="slurm_options",
        help="slurm: another option of sbatch, as in mem=32G; can be repeated",
    )
    group.add_argument(
        "--cluster",
        choices=("slurm", "local"),
        help="slurm: local executes the same jobs on this machine, without SLURM, to try them (default: slurm)",
    )


def given_executor(args: argparse.Namespace) -> Executor:
    """Return the executor with its options.

    Raises:
        ValueError: If an option belongs to another executor.
    """
    from liere.comparison.executors.choice import choose_executor

    options: dict[str, Any] = {name: getattr(args, name) for name in OPTIONS}
    return choose_executor(
        args.executor, options | {"options": dict(args.slurm_options) if args.slurm_options else None}
    )


def _number(text: str) -> float:
    """Parse a number of GPUs.

    Example:
        >>> _number("2"), _number("0.5")
        (2, 0.5)
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1024:
        raise argparse.ArgumentTypeError(f"must be a number such as 1 or 0.5, got {text!r}")
    return int(number) if number == int(number) else number


def _slurm_option(text: str) -> tuple[str, str | bool]:
    """Parse `mem=32G`, or `exclusive`, which has no value.

    Example:
        >>> _slurm_option("mem=32G"), _slurm_option("--exclusive")
        (('mem', '32G'), ('exclusive', True))
    """
    name, equals, value = text.removeprefix("--").partition("=")
    return name, value if equals else True
