"""Make a table or figure of the paper: train the missing runs, build the tables, write the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liere.comparison.display import states
from liere.comparison.executors.contract import Executor
from liere.comparison.failures import KEPT, RunsFailedError
from liere.evaluation.summary import plain_evaluations
from liere.files.writing import prepare_folder
from liere.report.drawing import require_matplotlib
from liere.reproduce.catalog import Entry
from liere.reproduce.experiment import Experiment
from liere.reproduce.export import export_run
from liere.reproduce.listing import describe_missing
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_page import write_outcome
from liere.reproduce.reproduction import Reproduction
from liere.reproduce.request import Request, prepare_request
from liere.reproduce.results import Results
from liere.runs.run import Run
from liere.terminal.messages import say, warn
from liere.terminal.progress import ProgressLine
from liere.terminal.text_table import text_table

__all__ = ["Made", "make"]

REHEARSAL = "This is a smoke test with tiny models and a few examples: the numbers mean nothing."


@dataclass(frozen=True, repr=False)
class Made:
    """A reproduced table or figure.

    Attributes:
        entry: The table or figure.
        outcome: Tables, figures and verdicts.
        pages: Its HTML pages: in the folder of results and, if exported, in the export folder.
        is_rehearsal: Whether it was a smoke test, whose numbers mean nothing.
    """

    entry: Entry
    outcome: Outcome
    pages: tuple[Path, ...]
    is_rehearsal: bool = False

    @property
    def claims(self) -> list[Claim]:
        """The claims of the paper, each with a verdict."""
        return self.outcome.claims

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of the table, as stored in its JSON file."""
        return self.outcome.numbers

    @property
    def page(self) -> Path:
        """The HTML page in the folder of results."""
        return self.pages[0]

    def __repr__(self) -> str:
        """Return the tables, notes and verdicts as text."""
        lines: list[str] = []
        for one in self.outcome.tables:
            lines += [one.title, *text_table(one.header, one.texts, left=one.heads), ""]
        lines += [*([REHEARSAL] if self.is_rehearsal else []), *self.outcome.notes, *map(str, self.claims)]
        return "\n".join(lines)


def make(
    request: Request,
    *,
    command: str,
    jobs: int | None = None,
    executor: Executor | None = None,
    export: Path | None = None,
    progress: bool = True,
) -> Made:
    """Train the missing runs, build the table or figure, write its files and return it.

    Args:
        request: The table or figure to make.
        command: The command to show on its page.
        jobs: How many runs are executed at the same time; None for the executor's default.
        executor: Who executes the runs; None for processes of this machine.
        export: Folder to which to copy results and runs, without weights.
        progress: Whether to print the progress.

    Raises:
        RunsFailedError: If some runs failed; the files cover the others, and `result` has their results.
        OSError: If data is missing, or files cannot be written.
        ValueError: If a setting is invalid.
    """
    reproduction = prepare_request(request)
    failures = _run_missing(reproduction, jobs, executor, progress) if reproduction else []
    prepare_folder(request.folder, "--out")
    made = None
    if not failures or (reproduction and reproduction.results().runs):
        made = _write(request, reproduction, command, export)
    if failures:
        number = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
        raise RunsFailedError(f"{number} failed, so the table is incomplete", failures, made)
    assert made is not None
    return made


def _run_missing(reproduction: Reproduction, jobs: int | None, executor: Executor | None, progress: bool) -> list[str]:
    """Train the missing runs, print the progress, and return one line per failed run."""
    require_matplotlib()
    reproduction.check(executor)
    if progress:
        say("\n".join(describe_missing(reproduction)))
    missing = len(reproduction.missing())
    if not missing:
        return []
    line, done, failures = ProgressLine(is_shown=progress), list[str](), list[str]()

    def note_end(run: Run) -> None:
        line.clear()
        done.append(run.folder.name)
        found = {record["size"]: record["accuracy"]["value"] for record in plain_evaluations(run)}
        accuracy = f", {100 * found[run.config.data.side]:.1f} % accuracy" if run.config.data.side in found else ""
        if progress:
            say(f"{len(done)} of {missing}: {run.folder.name}{accuracy}, {run.result()['seconds']:.0f} s")

    def note_failure(text: str) -> None:
        line.clear()
        failures.append(text)
        if progress:
            warn(text)

    def watch(running: list[Run]) -> None:
        line.show(f"{len(done)} of {missing} done; {states(running)}")

    try:
        reproduction.run(slots=jobs, watch=watch, ended=note_end, failed=note_failure, executor=executor)
    except KeyboardInterrupt as stop:
        stop.args = (KEPT,)
        raise
    finally:
        line.clear()
    return failures


def _write(request: Request, reproduction: Reproduction | None, command: str, export: Path | None) -> Made:
    """Build the tables and write the files."""
    entry, results = request.entry, reproduction.results() if reproduction else None
    outcome = entry.build(results) if results else entry.build()
    title = reproduction.experiment.title if reproduction and entry.name == entry.experiment else _title(entry)
    if reproduction:
        outcome.notes[:0] = _notes(reproduction.experiment)
    if results:
        outcome.notes.extend(results.left_out_notes())
    scale = f"{request.scale} scale" if reproduction else "any scale"
    scale += ", as a smoke test with tiny models" if request.smoke else ""
    pages = [
        write_outcome(entry, outcome, results, target, title=title, scale=scale, command=command)
        for target in (request.folder, *([export] if export else []))
    ]
    if results and export:
        _export(results, export)
    return Made(entry, outcome, tuple(pages), is_rehearsal=request.smoke)


def _export(results: Results, folder: Path) -> None:
    for run in results.all_runs():
        export_run(run, folder / "runs")


def _notes(experiment: Experiment) -> list[str]:
    """Return notes on an experiment: its own, and one for each data set that stands in for one of the paper's."""
    return [
        *([experiment.note] if experiment.note else []),
        *(
            f"We use {data} in place of the paper's {column.stands_for}: compare the ranking, not the values."
            for data, column in experiment.data.items()
            if column.stands_for
        ),
    ]


def _title(entry: Entry) -> str:
    title = entry.paper.partition(": ")[2]
    return title[0].upper() + title[1:]
