"""`liere reproduce`: reproduce the tables and figures of the paper."""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

from liere.commands.arguments import positive_number, seed_number, this_command
from liere.commands.executor_arguments import add_executor_arguments, given_executor
from liere.commands.fields import add_fields, given_fields
from liere.commands.results import show_result
from liere.errors import InputError, UserError
from liere.terminal.messages import say, warn
from liere.terminal.text_table import text_table

__all__ = ["HELP", "add_arguments", "run"]

HELP = "reproduce a table or figure of the paper, with the paper's numbers next to ours"
SCALES = ("small", "paper")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = (
        "liere reproduce (list | all | NAME) [--scale small|paper] [--only DATA] [--seeds N ...]\n"
        "                       [--encodings NAME ...] [--data DIR] [--out DIR] [--jobs N] [--smoke]\n"
        "                       [--own] [--dry-run [--gpus N ...]] [--configs DIR] [--export DIR]\n"
        "                       [--executor local|ray|slurm] [--SECTION.FIELD VALUE ...]"
    )
    parser.add_argument("name", metavar="NAME", help="list to print all names, one of these names, or all")
    parser.add_argument("--scale", choices=SCALES, default="small", help="scale of the experiments (default: small)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="DATA", help="use this data set only; can be repeated"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for runs and results; finished runs there are not repeated (default: ./liere-reproduce/<scale>)",
    )
    parser.add_argument(
        "--seeds", nargs="+", type=seed_number, default=[], metavar="N", help="seeds (default: those of the experiment)"
    )
    parser.add_argument(
        "--encodings",
        nargs="+",
        default=[],
        metavar="NAME",
        help="encodings, optionally with options as in absolute:init_std=1 (default: those of the experiment)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets (default: ./data)")
    parser.add_argument(
        "--smoke", action="store_true", help="test the whole pipeline with tiny models and a few examples"
    )
    parser.add_argument(
        "--own", action="store_true", help="train all models, instead of using the runs that come with the project"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print which runs are missing and their cost, without training"
    )
    _add_cluster_arguments(parser)
    parser.add_argument(
        "--configs", type=Path, metavar="DIR", help="write the configurations of all runs to DIR, without training"
    )
    parser.add_argument("--export", type=Path, metavar="DIR", help="copy results and runs, without weights, to DIR")
    add_executor_arguments(parser)
    add_fields(parser)


def _add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("plan for a cluster", "with --dry-run: schedule, storage and cost of failures")
    group.add_argument("--gpus", type=positive_number, metavar="N", help="number of GPUs, in nodes of 8")
    group.add_argument(
        "--gpu", metavar="NAME", help="data sheet: l4, l40, a100 or h100 (default: l40, as in the paper)"
    )
    group.add_argument(
        "--gpu-tflops",
        type=float,
        metavar="X",
        help="peak speed of a GPU in 1e12 operations per second, instead of --gpu",
    )
    group.add_argument(
        "--utilization", type=float, metavar="X", help="share of the peak that training reaches (default: 0.22)"
    )
    group.add_argument(
        "--failures-per-day", type=float, metavar="X", help="mean number of nodes that fail per day (default: 1)"
    )


def run(args: argparse.Namespace) -> None:
    """List the tables and figures, or reproduce them."""
    fields = given_fields(args)
    _check_cluster_arguments(args)
    if args.name == "list":
        _list(args.data)
    elif args.gpus is not None:
        _plan_cluster(args, fields)
    elif args.name == "all":
        _reproduce_all(args, fields)
    else:
        _reproduce(args.name, args, fields)


def _check_cluster_arguments(args: argparse.Namespace) -> None:
    """Raise if arguments of a plan for a cluster are given without the others that they need."""
    for name in ("gpu", "gpu_tflops", "utilization", "failures_per_day"):
        value = getattr(args, name)
        if value is not None and args.gpus is None:
            raise InputError(f"--{name.replace('_', '-')} {value} needs --gpus: add --gpus 64, for example")
    if args.gpus is not None and not args.dry_run:
        raise InputError(
            f"--gpus {args.gpus} plans for a cluster and trains nothing: add --dry-run, or use --jobs to train several "
            "runs at a time on this machine"
        )
    if args.failures_per_day is not None and not 0 <= args.failures_per_day < math.inf:
        raise InputError(f"--failures-per-day must be at least 0, got {args.failures_per_day}: use for example 1")


def _plan_cluster(args: argparse.Namespace, fields: dict[str, str]) -> None:
    """Print the cost of the missing runs of one or all tables on a cluster."""
    from liere.reproduce.catalog import CATALOGUE
    from liere.reproduce.cluster_plan import describe_cluster, find_missing
    from liere.reproduce.gpu_sheets import choose_gpu
    from liere.reproduce.request import make_request, prepare_request

    gpu = choose_gpu(args.gpu, tflops=args.gpu_tflops, utilization=args.utilization)
    names = CATALOGUE if args.name == "all" else [args.name]
    failures = 1.0 if args.failures_per_day is None else args.failures_per_day
    with warnings.catch_warnings():
        # The paper's block of 48 leaves a part of each head unrotated, on purpose.
        warnings.filterwarnings("ignore", message="head_dim=.* is not a multiple of block_size")
        prepared = [prepare_request(make_request(name, **_options(args, fields))) for name in names]
        missing = find_missing(one for one in prepared if one is not None)
        say("\n".join(describe_cluster(missing, gpu, args.gpus, failures)))


def _list(data: Path | None) -> None:
    from liere.reproduce.listing import NOT_COUNTED, list_costs

    for line in text_table(["name", "in the paper", "small scale", "paper scale"], list_costs(data), left=4):
        say(line)
    say()
    say("Kept: the runs come with the project, so making the table takes seconds; in parentheses, the training time on")
    say("one core of the machine used. --own trains them again.")
    say(
        "To train: floating-point operations, and a rough lower bound of their time on the cores of this machine (small"
    )
    say(f"scale) or on a GPU with 100 T operations per second (paper scale); {NOT_COUNTED}.")
    say("Tables share runs of the same recipe. To make one, run: liere reproduce NAME --scale small")


def _reproduce_all(args: argparse.Namespace, fields: dict[str, str]) -> None:
    """Reproduce all tables and figures one after the other, even if some fail.

    Raises:
        RunsFailedError: If some failed.
    """
    from liere.comparison.failures import RunsFailedError
    from liere.reproduce.catalog import CATALOGUE

    failed = []
    for name in CATALOGUE:
        try:
            _reproduce(name, args, fields)
        except (OSError, UserError) as error:
            warn(f"{name}: {error}")
            failed.append(name)
    if failed:
        raise RunsFailedError(f"{len(failed)} of {len(CATALOGUE)} could not be reproduced", [", ".join(failed)])


def _reproduce(name: str, args: argparse.Namespace, fields: dict[str, str]) -> None:
    from liere import toolkit

    options = _options(args, fields)
    if args.configs is not None or args.dry_run:
        _plan(name, args, options)
        return
    command = this_command(without="--export")
    where = {"jobs": args.jobs, "executor": given_executor(args)}
    show_result(lambda: toolkit.reproduce(name, **options, **where, export=args.export, command=command))


def _options(args: argparse.Namespace, fields: dict[str, str]) -> dict[str, Any]:
    """Return the options of a request."""
    return {
        "scale": args.scale,
        "only": args.only,
        "seeds": args.seeds,
        "encodings": args.encodings,
        "overrides": fields,
        "data": args.data,
        "out": args.out,
        "own": args.own,
        "smoke": args.smoke,
    }


def _plan(name: str, args: argparse.Namespace, options: dict[str, Any]) -> None:
    """Write configurations, or print which runs are missing."""
    from liere.comparison.dry_run import describe_execution
    from liere.reproduce.listing import describe_missing
    from liere.reproduce.request import make_request, prepare_request, write_configs

    reproduction = prepare_request(make_request(name, **options))
    if reproduction is None:
        say(f"{name}: needs no runs")
    elif args.configs is not None:
        number = write_configs(reproduction, args.configs)
        what = "1 configuration" if number == 1 else f"{number} configurations"
        say(f"wrote {what} to {args.configs}; to train one, run: liere train --config FILE")
    else:
        executor = given_executor(args)
        say("\n".join(describe_missing(reproduction)))
        reproduction.check(executor)
        for plan in reproduction.plans(args.jobs, executor) if not executor.is_here else ():
            say("\n".join(describe_execution(plan)))
