"""`liere compare`: several encodings, several seeds, one recipe."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from liere.commands.arguments import positive_number, seed_number
from liere.commands.fields import add_fields, given_fields
from liere.terminal.messages import say, table, warn

if TYPE_CHECKING:
    from liere.comparison.plan import Plan
    from liere.runs.run import Run

__all__ = ["HELP", "ProgressLine", "add_arguments", "run", "run_comparison", "run_state"]

HELP = "train several encodings with several seeds and one recipe, test them, and report"
# Absolute positions twice: as published (deviation 1), and as in timm (0.02). Which one is better depends on the data.
PAPER_ENCODINGS = ("absolute:init_std=1", "absolute", "visionllama", "rope_mixed", "liere8", "liere")
SECONDS_BETWEEN_LINES = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = (
        "liere compare --config FILE [--encodings NAME ...] [--seeds N ...] [--sizes N ...] [--examples N] "
        "[--jobs N] [--out DIR] [--SECTION.FIELD X ...]"
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the recipe, a configuration")
    parser.add_argument(
        "--encodings",
        nargs="+",
        default=list(PAPER_ENCODINGS),
        metavar="NAME",
        help=f"encodings, with options like absolute:init_std=1 (default: {' '.join(PAPER_ENCODINGS)})",
    )
    parser.add_argument("--seeds", nargs="+", type=seed_number, default=[0, 1, 2], metavar="N", help="(default: 0 1 2)")
    parser.add_argument(
        "--sizes", nargs="+", type=positive_number, metavar="N", help="image sizes to test at (default: as trained)"
    )
    parser.add_argument("--examples", type=positive_number, metavar="N", help="test examples (default: all)")
    parser.add_argument("--jobs", type=positive_number, metavar="N", help="processes (default: one per GPU or core)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("liere-compare"),
        metavar="DIR",
        help="folder of runs and report; what is finished there is not run again (default: ./liere-compare)",
    )
    add_fields(parser)


def run(args: argparse.Namespace) -> None:
    """Compare."""
    from liere.runs.config_file import read_config

    fields = given_fields(args)
    for name in ("model.encoding", "training.seed", "model.options"):
        if name in fields:
            raise ValueError(f"--{name} is what a comparison varies: use --encodings and --seeds instead")
    from liere.comparison.plan import make_plan

    plan = make_plan(
        read_config(args.config),
        fields,
        encodings=args.encodings,
        seeds=args.seeds,
        sizes=args.sizes,
        examples=args.examples,
        folder=args.out,
        slots=args.jobs,
        source=str(args.config),
    )
    run_comparison(plan)


def run_comparison(plan: Plan) -> None:
    """Run what is missing of a comparison, show how it goes, and write the report of what is done.

    Raises:
        RuntimeError: If some runs failed.
    """
    from liere.commands.report import write_and_show
    from liere.comparison.plan import run_plan
    from liere.files.writing import prepare_folder
    from liere.report.drawing import require_matplotlib

    require_matplotlib()
    prepare_folder(plan.folder, "--out")
    display = _Display(plan)
    failures: list[str] = []

    def note_failure(line: str) -> None:
        display.clear()
        warn(line)
        failures.append(line)

    try:
        run_plan(plan, watch=display.show, ended=display.add, failed=note_failure)
    except KeyboardInterrupt:
        display.clear()
        say("stopped; what is finished is kept: run the same command again to resume")
        sys.exit(130)
    display.clear()
    command = "liere " + shlex.join(sys.argv[1:])
    from liere.runs.run import open_run

    done = [open_run(run.folder) for run in plan.runs if run.is_done()]
    if done:
        write_and_show(done, plan.folder, command)
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(plan.runs)} runs failed: {'; '.join(failures)}")


class _Display:
    """A table that grows as runs end, and a line below it that tells how the others are."""

    def __init__(self, plan: Plan) -> None:
        from liere.runs.encoding_names import encoding_names

        names = encoding_names([planned.config for planned in plan.runs])
        self.names = {planned.folder: name for planned, name in zip(plan.runs, names, strict=True)}
        self.plan, self.ended = plan, 0
        self.header = ["encoding", "seed", *(f"{size} px" for size in plan.sizes), "examples to 95 %", "seconds"]
        self.widths = [max(len(name), 11) for name in self.header]
        self.line = ProgressLine()

    def add(self, run: Run) -> None:
        """Show a run that ended."""
        from liere.evaluation.summary import examples_to_target, plain_evaluations

        self.clear()
        accuracies = {record["size"]: record["accuracy"]["value"] for record in plain_evaluations(run)}
        reached = examples_to_target(run)
        row = [
            self.names[run.folder],
            str(run.config.training.seed),
            *(f"{100 * accuracies[size]:.1f} %" for size in self.plan.sizes),
            "not reached" if reached is None else f"{reached:,}",
            f"{run.result()['seconds']:.0f}",
        ]
        padding = [" " * width for width in self.widths]
        lines = table(self.header, [padding, row], left=1)
        for line in [*lines[:2], lines[3]] if self.ended == 0 else lines[3:]:
            say(line)
        self.ended += 1

    def show(self, running: list[Run]) -> None:
        """Tell how the runs at work are."""
        self.line.show(f"{self.ended} of {len(self.plan.runs)} done; " + "; ".join(map(run_state, running)))

    def clear(self) -> None:
        """Take the last line away."""
        self.line.clear()


class ProgressLine:
    """A line on standard error that is rewritten, or else one now and then."""

    def __init__(self) -> None:
        self.last_line = time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def show(self, line: str) -> None:
        """Show a line in place of the last one."""
        if self.is_terminal:
            self.clear()
            sys.stderr.write(line[:119])
            sys.stderr.flush()
        elif time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the last line away."""
        if self.is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def run_state(run: Run) -> str:
    """Say how far a run is."""
    rows = run.metric_rows()
    total = run.config.training.steps
    step = int(rows[-1]["step"]) if rows else 0
    validations = [row["val_accuracy"] for row in rows if row["val_accuracy"]]
    accuracy = f", {100 * float(validations[-1]):.0f} % right" if validations else ""
    return f"{run.folder.name}: " + ("testing" if step >= total else f"{100 * step // total} % trained{accuracy}")
