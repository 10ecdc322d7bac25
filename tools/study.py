"""Run a study beyond the paper: one recipe with several variations, encodings and seeds, tested at several sizes.

    python tools/study.py experiments/studies/larger.yaml
    python tools/study.py experiments/studies/larger.yaml --keep    # write the table to results/studies
    python tools/study.py experiments/studies/larger.yaml --encodings rope_mixed --keep    # keep the other rows

A study is a file like those in `experiments/tables`. Its table has one row per variation, encoding and test condition,
with the mean over seeds and the value of every seed. Finished runs in --out are not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from liere.comparison.display import run_state
from liere.errors import suggest
from liere.files.shipped import experiments_folder
from liere.files.writing import write_atomically
from liere.reproduce.catalog import Entry
from liere.reproduce.experiment import Experiment
from liere.reproduce.outcome import Outcome
from liere.reproduce.reproduction import Reproduction, with_choice
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label
from liere.reproduce.wanted_runs import plan_runs
from liere.runs.conditions import Condition
from liere.runs.config_file import read_config
from liere.runs.run import Run
from liere.terminal.messages import say
from liere.terminal.progress import ProgressLine

KEPT = experiments_folder().parent / "results" / "studies"


def main() -> None:
    """Train the missing runs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="a file in experiments/studies")
    parser.add_argument("--out", type=Path, default=Path("liere-study"), help="folder for new runs and the table")
    parser.add_argument("--data", type=Path, help="folder of data sets (default: ./data)")
    parser.add_argument("--seeds", type=int, nargs="+", help="seeds to use instead of those of the study")
    parser.add_argument("--encodings", nargs="+", metavar="NAME", help="only these encodings of the study")
    parser.add_argument("--variations", nargs="+", metavar="NAME", help="only these variations of the study")
    parser.add_argument("--jobs", type=int, help="number of parallel processes (default: one per core)")
    parser.add_argument("--finished", action="store_true", help="train nothing, and write the table of finished runs")
    parser.add_argument("--keep", action="store_true", help="write the table to results/studies instead")
    args = parser.parse_args()
    if args.keep and args.seeds:
        parser.error("--keep requires the seeds of the study: omit --seeds")
    study = prepare(args.study, args.out, args.data, args.seeds, args.encodings, args.variations)
    say(f"{args.study.stem}: runs to train: {len(study.missing())}")
    if not args.finished:
        run(study, args.jobs)
    whole = Experiment.model_validate(read_config(args.study))
    rows = rows_of(study.results())
    folder = KEPT if args.keep else args.out
    if args.keep and (kept := folder / f"{args.study.stem}.json").exists():
        rows = merged(json.loads(kept.read_text())["rows"], rows, whole)
    content = {
        "title": whole.title,
        "note": whole.note,
        "command": f"python tools/study.py experiments/studies/{args.study.name}",
        "seeds": study.experiment.seeds,
        "test_examples": whole.test_examples,
        "missing_runs": len(study.missing()) if not args.keep else missing_runs(rows, whole),
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{args.study.stem}.json", json.dumps(content, indent=1) + "\n")
    write_atomically(folder / f"{args.study.stem}.md", markdown(content))
    say(markdown(content))


def prepare(
    file: Path,
    out: Path,
    data: Path | None = None,
    seeds: list[int] | None = None,
    encodings: list[str] | None = None,
    variations: list[str] | None = None,
) -> Reproduction:
    """Read a study, or a part of it, and return it with the runs that it needs."""
    experiment = Experiment.model_validate(read_config(file))
    for name, asked, known in (
        ("--encodings", encodings, experiment.encodings),
        ("--variations", variations, list(experiment.vary)),
    ):
        for one in asked or ():
            if one not in known:
                raise ValueError(f"{name} {one!r} is not in {file}: {suggest(one, known)}")
    if variations:
        experiment = experiment.model_copy(update={"vary": {name: experiment.vary[name] for name in variations}})
    experiment = with_choice(experiment, seeds or (), encodings or ())
    wanted = plan_runs(experiment, {}, out / "runs", data=data)
    # Seed by seed, so that partial results cover all variations.
    wanted.sort(key=lambda one: one.seed)
    entry = Entry(file.stem, "not in the paper", file.stem, lambda results: Outcome([], []))
    return Reproduction(entry, experiment, wanted, (out / "runs",))


def run(study: Reproduction, jobs: int | None) -> None:
    """Train the missing runs, and print one line per finished run."""
    line = ProgressLine()

    def tell(text: str) -> None:
        line.clear()
        say(text)

    def ended(one: Run) -> None:
        accuracies = [f"{100 * record['accuracy']['value']:.1f}" for record in one.evaluations("final")]
        tell(f"{one.folder.name}: {' / '.join(accuracies)}")

    study.check()
    study.run(slots=jobs, watch=lambda runs: line.show("; ".join(map(run_state, runs))), ended=ended, failed=tell)
    line.clear()


def rows_of(results: Results) -> list[dict[str, Any]]:
    """Return one row per data set, variation, encoding and test condition, with the accuracy of every seed."""
    rows = []
    for key, runs in sorted(
        results.runs.items(), key=lambda item: list(results.experiment.vary).index(item[0].variant)
    ):
        tests = results.experiment.data[key.data].tests
        side = runs[0].config.data.side
        for test in tests:
            condition = test.condition(side)
            found = results.found(key, condition)
            if found is not None:
                seeds = [run.config.training.seed for run in runs]
                rows.append(
                    {"data": key.data, "variant": key.variant, "encoding": key.encoding, **condition.as_dict()}
                    | {"mean": statistics.fmean(found.by_seed), "seeds": seeds, "by_seed": found.by_seed}
                )
    return rows


def merged(kept: list[dict[str, Any]], new: list[dict[str, Any]], study: Experiment) -> list[dict[str, Any]]:
    """Return the rows of a committed table, updated with new ones, in the order of the study."""
    found = {_row_key(row): row for row in [*kept, *new]}
    order = _variations_and_encodings(study)
    return sorted(found.values(), key=lambda row: order.index((row["variant"], row["encoding"])))


def missing_runs(rows: list[dict[str, Any]], study: Experiment) -> int:
    """Return how many runs of a study are missing from its rows."""
    there = {(row["data"], row["variant"], row["encoding"], seed) for row in rows for seed in row["seeds"]}
    return len(study.data) * len(_variations_and_encodings(study)) * len(study.seeds) - len(there)


def _variations_and_encodings(study: Experiment) -> list[tuple[str, str]]:
    return [
        (variation, encoding)
        for variation, fields in study.vary.items()
        for encoding in fields.get("encodings", study.encodings)
    ]


def _row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["data"], row["variant"], row["encoding"], Condition.of(row))


def markdown(content: dict[str, Any]) -> str:
    """Return the table as Markdown, with one column per image size."""
    sizes = sorted({row["size"] for row in content["rows"]})
    groups: dict[tuple[str, ...], dict[int, dict[str, Any]]] = {}
    for row in content["rows"]:
        _, _, tested = Condition.of(row).describe().partition(", ")
        key = (row["data"], row["variant"], label(row["encoding"]), tested)
        groups.setdefault(key, {})[row["size"]] = row
    head = ["data", "variation", "encoding", "tested with", *(f"{size} px" for size in sizes)]
    columns = [number for number in range(4) if len({key[number] for key in groups}) > 1]
    lines = [
        [*(key[number] for number in columns), *(_cell(cells.get(size)) for size in sizes)]
        for key, cells in groups.items()
    ]
    header = [*(head[number] for number in columns), *head[4:]]
    table = [header, ["---"] * len(header), *lines]
    return "\n".join(
        [
            f"# {content['title']}",
            "",
            "Accuracy in percent: mean over seeds, in parentheses the value of every seed. " + content["note"],
            "",
            *(f"| {' | '.join(line)} |" for line in table),
            "",
            *([f"Missing runs: {missing}.", ""] if (missing := content.get("missing_runs", 0)) else []),
            f"Made by `{content['command']}`. All numbers are in the JSON file of the same name.",
            "",
        ]
    )


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    seeds = ", ".join(f"{100 * value:.1f}" for value in row["by_seed"])
    return f"{100 * row['mean']:.1f}" + (f" ({seeds})" if len(row["by_seed"]) > 1 else "")


if __name__ == "__main__":
    main()
