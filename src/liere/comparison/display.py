"""Terminal output during a comparison: a growing result table, and the progress of active runs."""

from __future__ import annotations

from collections.abc import Sequence

from liere.comparison.plan import Plan
from liere.evaluation.summary import examples_to_target, plain_evaluations
from liere.runs.encoding_names import encoding_names
from liere.runs.run import Run
from liere.terminal.messages import say, warn
from liere.terminal.progress import ProgressLine
from liere.terminal.text_table import text_table

__all__ = ["ComparisonDisplay", "run_state", "states"]

MOST_SHOWN = 8  # active runs; a cluster may have hundreds


class ComparisonDisplay:
    """A table that grows as runs finish, and a line below it with the progress of active runs.

    Args:
        plan: The comparison.
        is_shown: Whether to print anything.
    """

    def __init__(self, plan: Plan, *, is_shown: bool = True) -> None:
        names = encoding_names([planned.config for planned in plan.runs])
        self.names = {planned.folder: name for planned, name in zip(plan.runs, names, strict=True)}
        self.plan, self.ended, self.is_shown = plan, 0, is_shown
        self.header = ["encoding", "seed", *(f"{size} px" for size in plan.sizes), "examples to 95 %", "seconds"]
        self.widths = [max(len(name), 11) for name in self.header]
        self.line = ProgressLine(is_shown=is_shown)

    def add(self, run: Run) -> None:
        """Add a finished run to the table."""
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
        lines = text_table(self.header, [padding, row], left=1)
        if self.is_shown:
            for line in [*lines[:2], lines[3]] if self.ended == 0 else lines[3:]:
                say(line)
        self.ended += 1

    def fail(self, line: str) -> None:
        """Print why a run failed."""
        self.clear()
        if self.is_shown:
            warn(line)

    def show(self, running: list[Run]) -> None:
        """Show the progress of the active runs."""
        self.line.show(f"{self.ended} of {len(self.plan.runs)} done; {states(running)}")

    def clear(self) -> None:
        """Erase the progress line."""
        self.line.clear()


def states(running: Sequence[Run]) -> str:
    """Return a short text on the progress of active runs, of which only the first few are named."""
    more = len(running) - MOST_SHOWN
    named = "; ".join(map(run_state, running[:MOST_SHOWN]))
    return f"{named}; and {more} more" if more > 0 else named


def run_state(run: Run) -> str:
    """Return a short text on the progress of a run."""
    total = run.config.training.steps
    step, accuracy = 0, ""
    for row in run.metric_rows():
        step = int(row["step"])
        if row["val_accuracy"]:
            accuracy = f", {100 * float(row['val_accuracy']):.0f} % accuracy"
    return f"{run.folder.name}: " + ("testing" if step >= total else f"{100 * step // total} % trained{accuracy}")
