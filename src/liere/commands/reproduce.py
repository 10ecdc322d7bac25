"""`liere reproduce`: the tables and figures of the paper."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from liere.commands.arguments import positive_number, seed_number
from liere.commands.compare import ProgressLine, run_state
from liere.commands.fields import add_fields, given_fields
from liere.terminal.messages import say, table, warn

if TYPE_CHECKING:
    from liere.reproduce.catalog import Entry
    from liere.reproduce.experiment import Experiment
    from liere.reproduce.reproduction import Reproduction
    from liere.runs.run import Run

__all__ = ["HELP", "add_arguments", "run"]

HELP = "make a table or figure of the paper, with the paper's numbers beside ours"
SCALES = ("small", "paper")
A_WEEK = 1e17  # operations: on a few cores
GPU_SPEED = 1e14  # operations per second, for the cost in days of a GPU
NOT_COUNTED = "starting processes, loading data and testing come on top"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = (
        "liere reproduce (list | all | NAME) [--scale small|paper] [--only DATA] [--seeds N ...] "
        "[--encodings NAME ...] [--data DIR] [--out DIR] [--jobs N] [--smoke] [--own] [--dry-run] [--configs DIR] "
        "[--export DIR] [--SECTION.FIELD X ...]"
    )
    parser.add_argument("name", metavar="NAME", help="a table or figure, as `liere reproduce list` names them, or all")
    parser.add_argument("--scale", choices=SCALES, default="small", help="which experiments (default: small)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="DATA", help="this data set only; may be given several times"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of runs and results; what is finished there is not run again (default: ./liere-reproduce/<scale>)",
    )
    parser.add_argument(
        "--seeds", nargs="+", type=seed_number, default=[], metavar="N", help="(default: the experiment's)"
    )
    parser.add_argument(
        "--encodings",
        nargs="+",
        default=[],
        metavar="NAME",
        help="with options, like absolute:init_std=1 (default: the experiment's)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets (default: ./data)")
    parser.add_argument("--jobs", type=positive_number, metavar="N", help="processes (default: one per GPU or core)")
    parser.add_argument(
        "--smoke", action="store_true", help="a rehearsal: everything is run, with tiny models and a few examples"
    )
    parser.add_argument(
        "--own", action="store_true", help="make all runs here: do not use those that are kept with the project"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say which runs are missing and what they cost, and stop"
    )
    parser.add_argument(
        "--configs", type=Path, metavar="DIR", help="write the configuration of every run there, and stop"
    )
    parser.add_argument("--export", type=Path, metavar="DIR", help="copy results and runs there, without weights")
    add_fields(parser)


def run(args: argparse.Namespace) -> None:
    """List, or reproduce."""
    fields = given_fields(args)
    for name in ("model.encoding", "training.seed", "model.options"):
        if name in fields:
            raise ValueError(f"--{name} is what the experiments vary: use --encodings and --seeds instead")
    from liere.reproduce.catalog import find_entry

    if args.name == "list":
        _list(args.data)
    elif args.name == "all":
        _reproduce_all(args, fields)
    else:
        _reproduce(find_entry(args.name), args, fields)


def _reproduce_all(args: argparse.Namespace, fields: dict[str, str]) -> None:
    """Make one after the other; what cannot be made does not stop the others.

    Raises:
        RuntimeError: If some could not be made.
    """
    from liere.reproduce.catalog import CATALOGUE

    failed = []
    for name, entry in CATALOGUE.items():
        try:
            _reproduce(entry, args, fields)
        except (OSError, RuntimeError, ValueError) as error:
            warn(f"{name}: {error}")
            failed.append(name)
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(CATALOGUE)} could not be made: {', '.join(failed)}")


def _list(data: Path | None) -> None:
    from liere.reproduce.catalog import CATALOGUE

    rows = [[entry.name, entry.paper, *(_cost(entry, scale, data) for scale in SCALES)] for entry in CATALOGUE.values()]
    for line in table(["name", "in the paper", "small scale", "paper scale"], rows, left=4):
        say(line)
    say()
    say(
        "Kept: the runs are part of the project, so the table takes seconds; in parentheses, what training them took on"
    )
    say("one core of the machine that did. --own trains them again.")
    say("To train: floating-point operations, and roughly the least time for this arithmetic, on the cores here (small")
    say(f"scale) or on a GPU with 100 T operations per second (paper scale); {NOT_COUNTED}.")
    say("Tables share runs of the same recipe. Make one with: liere reproduce NAME --scale small")


def _cost(entry: Entry, scale: str, data: Path | None) -> str:
    """Say what a table costs: nothing but seconds where its runs are kept, or else their training."""
    from liere.reproduce.reproduction import committed_runs, prepare
    from liere.runs.cost import duration, estimate_seconds, scaled

    if not entry.experiment:
        return "no runs"
    kept = committed_runs(scale)
    reproduction = prepare(entry, scale, {}, places=[Path(), *([kept] if kept else [])], data=data)
    missing, runs = reproduction.missing(), reproduction.runs()
    if not missing:
        results = [run.result() for run in reproduction.results().unique_runs()]
        core_seconds = sum(result["seconds"] * result["machine"].get("threads", 1) for result in results)
        return f"{len(runs)} runs, kept (training: {duration(core_seconds)} of a core)"
    count = f"{len(runs)} runs to train" if len(missing) == len(runs) else f"{len(runs)} runs, {len(missing)} to train"
    try:
        operations = sum(run.operations for run in missing)
    except (OSError, ValueError):  # of arrays that are not there, or other ones
        files = {str(run.config.data.path) for run in missing if run.config.data.facts_need_files}
        return f"{count}; cost unknown without {', '.join(sorted(files))}"
    seconds = estimate_seconds(operations) if scale == "small" else operations / GPU_SPEED
    return f"{count}: {scaled(operations)}, {duration(seconds)}"


def _reproduce(entry: Entry, args: argparse.Namespace, fields: dict[str, str]) -> None:
    from liere.files.writing import prepare_folder
    from liere.reproduce.reproduction import committed_runs, prepare

    folder = args.out or Path("liere-reproduce") / (f"{args.scale}-smoke" if args.smoke else args.scale)
    reproduction, failures = None, list[str]()
    if entry.experiment:
        committed = None if args.own or args.smoke else committed_runs(args.scale)
        places = [folder / "runs", *([committed] if committed else [])]
        reproduction = prepare(
            entry,
            args.scale,
            fields,
            places=places,
            only=args.only,
            seeds=args.seeds,
            encodings=args.encodings,
            data=args.data,
            smoke=args.smoke,
        )
        if args.configs is not None:
            _write_configs(reproduction, args.configs)
            return
        if args.dry_run:
            _say_missing(reproduction)
            reproduction.check()
            return
        failures = _run_missing(reproduction, args.jobs)
    elif args.dry_run or args.configs is not None:
        say(f"{entry.name}: needs no runs")
        return
    prepare_folder(folder, "--out")
    if not failures or (reproduction and reproduction.results().runs):
        _show(entry, reproduction, folder, args)
    if failures:
        number = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
        raise RuntimeError(f"{number} failed, so the table is not complete: {'; '.join(failures)}")


def _run_missing(reproduction: Reproduction, jobs: int | None) -> list[str]:
    """Make what is missing, tell how it goes, and return what failed, a line each."""
    from liere.evaluation.summary import plain_evaluations
    from liere.report.drawing import require_matplotlib

    require_matplotlib()
    reproduction.check()
    missing = _say_missing(reproduction)
    if not missing:
        return []
    line, done, failures = ProgressLine(), list[str](), list[str]()

    def note_end(run: Run) -> None:
        line.clear()
        done.append(run.folder.name)
        found = {record["size"]: record["accuracy"]["value"] for record in plain_evaluations(run)}
        right = f", {100 * found[run.config.data.side]:.1f} % right" if run.config.data.side in found else ""
        say(f"{len(done)} of {missing}: {run.folder.name}{right}, {run.result()['seconds']:.0f} s")

    def note_failure(text: str) -> None:
        line.clear()
        warn(text)
        failures.append(text)

    def watch(running: list[Run]) -> None:
        line.show(f"{len(done)} of {missing} done; " + "; ".join(map(run_state, running)))

    try:
        reproduction.run(slots=jobs, watch=watch, ended=note_end, failed=note_failure)
    except KeyboardInterrupt:
        line.clear()
        say("stopped; what is finished is kept: run the same command again to resume")
        sys.exit(130)
    line.clear()
    return failures


def _say_missing(reproduction: Reproduction) -> int:
    from liere.runs.cost import duration, estimate_seconds, scaled

    missing, total = reproduction.missing(), len(reproduction.runs())
    say(f"{reproduction.entry.name}: {total - len(missing)} of {total} runs are finished")
    untrained = [run for run in missing if not run.is_trained()]
    if len(untrained) < len(missing):
        say(f"{reproduction.entry.name}: {len(missing) - len(untrained)} are trained, and have to be tested")
    if untrained and all(not run.config.data.facts_need_files or run.config.data.path.exists() for run in untrained):
        operations = sum(run.operations for run in untrained)
        hint = f"at least about {duration(estimate_seconds(operations))} on the cores of this machine"
        if operations > A_WEEK:
            hint = f"at least about {duration(operations / GPU_SPEED)} on a GPU with 100 T operations per second"
        work = f"{scaled(operations)} operations, {hint} for this arithmetic alone; {NOT_COUNTED}"
        say(f"{reproduction.entry.name}: {len(untrained)} to train, {work}")
    return len(missing)


def _write_configs(reproduction: Reproduction, folder: Path) -> None:
    from liere.files.writing import prepare_folder, write_atomically

    prepare_folder(folder, "--configs")
    runs = reproduction.runs()
    for planned in runs:
        write_atomically(folder / f"{planned.folder.name}.yaml", planned.config.to_yaml())
    say(f"wrote {len(runs)} configurations to {folder}: train one with liere train --config FILE")


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


def _command() -> str:
    """Return what was typed, without the copy that was asked for."""
    kept, words = [], sys.argv[1:]
    while words:
        word, *words = words
        if word == "--export":
            words = words[1:]
        elif not word.startswith("--export="):
            kept.append(word)
    return "liere " + shlex.join(kept)


def _title(entry: Entry) -> str:
    title = entry.paper.partition(": ")[2]
    return title[0].upper() + title[1:]


def _show(entry: Entry, reproduction: Reproduction | None, folder: Path, args: argparse.Namespace) -> None:
    """Print the table and the verdicts, and write the files."""
    from liere.reproduce.export import export_run
    from liere.reproduce.outcome_page import write_outcome

    results = reproduction.results() if reproduction else None
    outcome = entry.build(results) if results else entry.build()
    title = reproduction.experiment.title if reproduction and entry.name == entry.experiment else _title(entry)
    if reproduction:
        outcome.notes[:0] = _notes(reproduction.experiment)
    if results:
        outcome.notes.extend(results.left_out_notes())
    scale = f"{args.scale} scale" if reproduction else "any scale"
    scale += ", a rehearsal with tiny models" if args.smoke else ""
    for one in outcome.tables:
        say()
        say(one.title)
        for line in table(one.header, one.texts, left=one.heads):
            say(line)
    say()
    if args.smoke:
        say("A rehearsal with tiny models and a few examples: the numbers mean nothing.")
    for note in outcome.notes:
        say(note)
    for claim in outcome.claims:
        say(str(claim))
    for target in (folder, *([args.export] if args.export else [])):
        page = write_outcome(entry, outcome, results, target, title=title, scale=scale, command=_command())
        if results and target == args.export:
            for one_run in results.all_runs():
                export_run(one_run, target / "runs")
        say(f"report: {page}")
