"""`liere train`: train a model, and resume it after whatever happened."""

from __future__ import annotations

import argparse
import importlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from liere.commands.arguments import positive_number
from liere.commands.fields import add_fields, given_fields
from liere.optional.extras import TRAINING, require
from liere.terminal.messages import tell, warn
from liere_command.processes import is_first_process
from liere_command.signals import say_on_leaving

if TYPE_CHECKING:
    from liere.runs.config import RunConfig
    from liere.runs.cost import Cost
    from liere.runs.run import Run

__all__ = ["HELP", "add_arguments", "run"]

HELP = "train a model from a configuration, or resume a run"
PATIENCE = 60.0  # seconds for the first process to make the folder
LOCK_PATIENCE = 10.0  # seconds for a process that was killed to be gone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = (
        "liere train (--config FILE [--out RUN] [--SECTION.FIELD X ...] | --resume RUN) [--steps N] [--dry-run]"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration, like those in experiments/")
    parser.add_argument(
        "--out", type=Path, metavar="RUN", help="folder of the new run (default: ./runs/<configuration>-seed<seed>)"
    )
    parser.add_argument("--resume", type=Path, metavar="RUN", help="resume the run in this folder")
    parser.add_argument(
        "--steps", type=positive_number, metavar="N", help="take at most N steps now; --resume takes the rest"
    )
    parser.add_argument("--dry-run", action="store_true", help="check everything, say what it would cost, and stop")
    add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Train; return 0, or what a shell returns for the signal that ended it early."""
    fields = given_fields(args)
    if (args.config is None) == (args.resume is None):
        raise ValueError("give either --config FILE for a new run or --resume RUN to resume one")
    if args.resume is not None:
        return _resume(args, fields)
    from liere.runs.config_file import parse_config, read_config
    from liere.runs.run import check_new, create_run, open_run

    config = parse_config(read_config(args.config), fields, source=str(args.config))
    folder = args.out or Path("runs") / f"{args.config.stem}-seed{config.training.seed}"
    if not is_first_process():
        if args.dry_run:
            return 0
        _wait_for(folder / "config.yaml")
        return _train(open_run(folder), args)
    check_new(folder, config)
    _check_space(folder.parent, _check(config, folder))
    if args.dry_run:
        return 0
    require(*TRAINING)  # a missing package is an error before there is a folder
    importlib.import_module("liere.training.fit")
    return _train(create_run(folder, config), args)


def _resume(args: argparse.Namespace, fields: dict[str, str]) -> int:
    from liere.runs.longer import is_longer
    from liere.runs.run import open_run

    if args.out is not None:
        raise ValueError(f"--out {args.out} goes with a new run, but --resume has its folder already: leave it out")
    run = open_run(args.resume, fields)
    if run.is_finished and not is_longer(run):
        tell(f"{run.folder} is finished: its weights are in {run.final_weights}")
        return 0
    if is_first_process():
        _check_space(run.folder, _check(run.config.model_copy(update={"data": run.data}), run.folder))
    return 0 if args.dry_run else _train(run, args)


def _check(config: RunConfig, folder: Path) -> Cost:
    """Build everything once, so that what does not fit is told now, and say what the run will cost."""
    from liere.runs.cost import estimate_cost
    from liere.runs.model import build_model

    config.hardware.check()
    for split in ("train", "test"):
        config.data.load(split)
    config.check_validation(len(config.data.load("val", length=config.training.validation_examples)))
    cost = estimate_cost(config, build_model(config))
    examples = config.training.steps * config.training.batch_size
    tell(f"{folder.name}: {config.model.encoding}, {examples:,} examples in {config.training.steps:,} steps")
    counted = " for this arithmetic; start-up, data loading and checkpoints come on top"
    tell(f"{folder.name}: {cost}{'' if cost.seconds is None else counted}")
    return cost


def _train(run: Run, args: argparse.Namespace) -> int:
    from liere.training.fit import train
    from liere.training.stopping import StoppedError, StopRequest

    say_on_leaving(lambda: _how_to_go_on(run))
    request = StopRequest(further_steps=args.steps)
    try:
        result = train(run, say=warn, request=request, patience=LOCK_PATIENCE)
    except StoppedError as stop:
        if is_first_process():
            tell(f"{run.folder.name}: stopped {stop}{_how_to_go_on(run)}")
        # Lightning takes another process's exit code for a crash, and would kill the first one for it.
        return 128 + request.signal if request.signal is not None and is_first_process() else 0
    if is_first_process():
        tell(
            f"{run.folder.name}: finished after {result['examples']:,} examples and {result['seconds']:.0f} s, "
            f"best validation accuracy {100 * result['best']['accuracy']:.1f} %"
        )
        tell(f"evaluate it with: liere eval {run.folder}")
    return 0


def _how_to_go_on(run: Run) -> str:
    if any(run.checkpoints.glob("*.ckpt")) or run.best_weights.exists():
        return f"; resume with: liere train --resume {run.folder}"
    return " before its first checkpoint: nothing to save, run the same command again"


def _check_space(folder: Path, cost: Cost) -> None:
    """Make sure that checkpoints will fit: three for a moment, each of weights and two averages, and weights twice."""
    while not folder.exists():
        folder = folder.parent
    needed = 4 * cost.parameters * (3 * 3 + 2)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            f"{folder} has {free / 1e6:,.0f} MB free, but checkpoints need {needed / 1e6:,.0f} MB: "
            "free some space or choose another folder with --out"
        )


def _wait_for(file: Path) -> None:
    """Wait until the first process, maybe on another machine, has made a file."""
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"the first process has not made {file} in {PATIENCE:.0f} s: is the folder shared?")
        time.sleep(0.5)
