"""Making a table or figure of the paper: the missing runs, what came out, and the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liere.comparison.display import run_state
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

REHEARSAL = "A rehearsal with tiny models and a few examples: the numbers mean nothing."


@dataclass(frozen=True, repr=False)
class Made:
    """A table or figure that was made.

    Attributes:
        entry: Which one.
        outcome: What came out.
        pages: Its pages: in the folder of results, and where it was exported to.
        is_rehearsal: Whether it was as small as can be, so that its numbers mean nothing.
    """

    entry: Entry
    outcome: Outcome
    pages: tuple[Path, ...]
    is_rehearsal: bool = False

    @property
    def claims(self) -> list[Claim]:
        """The claims of the paper, with the verdict on each."""
        return self.outcome.claims

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of the table, as its JSON file holds them."""
        return self.outcome.numbers

    @property
    def page(self) -> Path:
        """The page in the folder of results."""
        return self.pages[0]

    def __repr__(self) -> str:
        """Show the tables and the verdicts."""
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
    export: Path | None = None,
    progress: bool = True,
) -> Made:
    """Make the missing runs, then the table or figure, and write its files.

    Args:
        request: Which table or figure.
        command: What made it, for its page.
        jobs: Processes at a time; None for one per GPU, or else one per core.
        export: Folder to copy results and runs to, without weights.
        progress: Whether to show how far it is.

    Raises:
        RunsFailedError: If some runs failed; what the others found is written, and is its `result`.
        OSError: If data are missing, or files cannot be written.
        ValueError: If something does not fit.
    """
    reproduction = prepare_request(request)
    failures = _run_missing(reproduction, jobs, progress) if reproduction else []
    prepare_folder(request.folder, "--out")
    made = None
    if not failures or (reproduction and reproduction.results().runs):
        made = _write(request, reproduction, command, export)
    if failures:
        number = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
        raise RunsFailedError(f"{number} failed, so the table is not complete", failures, made)
    assert made is not None
    return made


def _run_missing(reproduction: Reproduction, jobs: int | None, progress: bool) -> list[str]:
    """Make what is missing, show how far it is, and return what failed, a line each."""
    require_matplotlib()
    reproduction.check()
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
        right = f", {100 * found[run.config.data.side]:.1f} % right" if run.config.data.side in found else ""
        if progress:
            say(f"{len(done)} of {missing}: {run.folder.name}{right}, {run.result()['seconds']:.0f} s")

    def note_failure(text: str) -> None:
        line.clear()
        failures.append(text)
        if progress:
            warn(text)

    def watch(running: list[Run]) -> None:
        line.show(f"{len(done)} of {missing} done; " + "; ".join(map(run_state, running)))

    try:
        reproduction.run(slots=jobs, watch=watch, ended=note_end, failed=note_failure)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(KEPT) from None
    finally:
        line.clear()
    return failures


def _write(request: Request, reproduction: Reproduction | None, command: str, export: Path | None) -> Made:
    """Build the tables, and write the files."""
    entry, results = request.entry, reproduction.results() if reproduction else None
    outcome = entry.build(results) if results else entry.build()
    title = reproduction.experiment.title if reproduction and entry.name == entry.experiment else _title(entry)
    if reproduction:
        outcome.notes[:0] = _notes(reproduction.experiment)
    if results:
        outcome.notes.extend(results.left_out_notes())
    scale = f"{request.scale} scale" if reproduction else "any scale"
    scale += ", a rehearsal with tiny models" if request.smoke else ""
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
    """Return what to know of an experiment: its own note, and which data stand for the paper's."""
    return [
        *([experiment.note] if experiment.note else []),
        *(
            f"{data} stands for the paper's {column.stands_for}: compare the order, not the height."
            for data, column in experiment.data.items()
            if column.stands_for
        ),
    ]


def _title(entry: Entry) -> str:
    title = entry.paper.partition(": ")[2]
    return title[0].upper() + title[1:]
