"""Run a comparison from plan to report; runs on the paper's task are shown with the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from liere.comparison.display import ComparisonDisplay
from liere.comparison.execution import run_plan
from liere.comparison.failures import KEPT, RunsFailedError
from liere.comparison.plan import Plan
from liere.comparison.result import ComparisonResult
from liere.errors import InputError
from liere.evaluation.summary import summarize
from liere.files.writing import prepare_folder
from liere.report.drawing import require_matplotlib
from liere.reproduce.printed_beside import add_printed_numbers
from liere.runs.run import Run, open_run

__all__ = ["check_report_name", "report_runs", "run_comparison"]

LONGEST_NAME = 200  # bytes, which leaves room for suffixes


def run_comparison(plan: Plan, *, command: str, progress: bool = True) -> ComparisonResult:
    """Train and evaluate the missing runs of a comparison, write the report, and return the results.

    Args:
        plan: The comparison.
        command: The command to show in the report.
        progress: Whether to print the progress.

    Raises:
        RunsFailedError: If some runs failed; the report covers the others, and `result` has their results.
        ImportError: If matplotlib is not installed.
        OSError: If files cannot be written.
        KeyboardInterrupt: If it was interrupted; finished runs are kept.
    """
    require_matplotlib()
    prepare_folder(plan.folder, "--out")
    display = ComparisonDisplay(plan, is_shown=progress)
    failures: list[str] = []

    def note_failure(line: str) -> None:
        display.fail(line)
        failures.append(line)

    try:
        run_plan(plan, watch=display.show, ended=display.add, failed=note_failure)
    except KeyboardInterrupt as stop:
        stop.args = (KEPT,)
        raise
    finally:
        display.clear()
    done = [open_run(run.folder) for run in plan.runs if run.is_done()]
    result = report_runs(done, plan.folder, command=command) if done else None
    if failures or result is None:
        raise RunsFailedError(f"{len(failures)} of {len(plan.runs)} runs failed", failures, result)
    return result


def report_runs(runs: Sequence[Run], folder: Path, *, command: str, name: str = "report") -> ComparisonResult:
    """Write a report on evaluated runs, and return their results.

    Args:
        runs: The runs.
        folder: Folder for the report.
        command: The command to show in the report.
        name: Base name of the files.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If files cannot be written.
        ValueError: If a run is not finished or not evaluated, or if the runs cannot be compared.
    """
    require_matplotlib()
    summary = summarize(runs, command=command, root=folder)
    add_printed_numbers(summary, [run.config for run in runs])
    prepare_folder(folder, "--out")
    result = ComparisonResult(tuple(runs), summary)
    return replace(result, pages=(result.report(folder / f"{name}.html"),))


def check_report_name(name: str) -> None:
    """Raise `ValueError` unless the name is a plain file name, so that the report stays in its folder."""
    is_plain = name.isprintable() and len(name.encode()) <= LONGEST_NAME
    if not name or not is_plain or Path(name).name != name or name.startswith("."):
        raise InputError(f"--name must be a plain file name such as report, got {name!r}: use --out for the folder")
