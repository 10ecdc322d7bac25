"""Run a study of our own: one recipe, several variations, encodings and seeds, tested at several sizes.

    python tools/study.py experiments/studies/larger.yaml
    python tools/study.py experiments/studies/larger.yaml --keep    # the table goes to docs/results/studies

A study is a file like those of `experiments/tables`. Its table has one row for each variation, encoding and way of
testing, with the mean over seeds and every seed. Runs that are in --out already are not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from liere.comparison.display import run_state
from liere.files.writing import write_atomically
from liere.reproduce.catalog import Entry
from liere.reproduce.experiment import Experiment, experiments_folder
from liere.reproduce.outcome import Outcome
from liere.reproduce.reproduction import Reproduction
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label
from liere.reproduce.wanted_runs import plan_runs
from liere.runs.conditions import Condition
from liere.runs.config_file import read_config
from liere.runs.run import Run
from liere.terminal.messages import say
from liere.terminal.progress import ProgressLine

KEPT = experiments_folder().parent / "docs" / "results" / "studies"


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="a file of experiments/studies")
    parser.add_argument("--out", type=Path, default=Path("liere-study"), help="folder of new runs and of the table")
    parser.add_argument("--data", type=Path, help="folder of data sets (default: ./data)")
    parser.add_argument("--seeds", type=int, nargs="+", help="other seeds than those of the study")
    parser.add_argument("--jobs", type=int, help="processes (default: one per core)")
    parser.add_argument("--finished", action="store_true", help="train nothing: the table of what is finished")
    parser.add_argument("--keep", action="store_true", help="write the table to docs/results/studies instead")
    args = parser.parse_args()
    if args.keep and args.seeds:
        parser.error("--keep is for the seeds of the study: leave --seeds out")
    study = prepare(args.study, args.out, args.data, args.seeds)
    say(f"{args.study.stem}: {len(study.missing())} runs to do")
    if not args.finished:
        run(study, args.jobs)
    folder = KEPT if args.keep else args.out
    results = study.results()
    content = {
        "title": study.experiment.title,
        "note": study.experiment.note,
        "command": f"python tools/study.py experiments/studies/{args.study.name}",
        "seeds": study.experiment.seeds,
        "test_examples": study.experiment.test_examples,
        "missing_runs": len(study.missing()),
        "rows": rows_of(results),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{args.study.stem}.json", json.dumps(content, indent=1) + "\n")
    write_atomically(folder / f"{args.study.stem}.md", markdown(content))
    say(markdown(content))


def prepare(file: Path, out: Path, data: Path | None = None, seeds: list[int] | None = None) -> Reproduction:
    """Read a study and say which runs it needs."""
    experiment = Experiment.model_validate(read_config(file))
    if seeds:
        experiment = experiment.model_copy(update={"seeds": seeds})
    wanted = plan_runs(experiment, {}, out / "runs", data=data)
    # Seed by seed, so that a part of the runs says something of all variations.
    wanted.sort(key=lambda one: one.seed)
    entry = Entry(file.stem, "not in the paper", file.stem, lambda results: Outcome([], []))
    return Reproduction(entry, experiment, wanted, (out / "runs",))


def run(study: Reproduction, jobs: int | None) -> None:
    """Make the missing runs, with a line for each that ends."""
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
    """Return one row for each data set, variation, encoding and way of testing: the accuracy of every seed."""
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


def markdown(content: dict[str, Any]) -> str:
    """Return the table: sizes are columns, everything else is a row."""
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
            "Accuracy in percent, mean over seeds; in parentheses every seed. " + content["note"],
            "",
            *(f"| {' | '.join(line)} |" for line in table),
            "",
            *([f"{missing} of its runs are missing.", ""] if (missing := content.get("missing_runs", 0)) else []),
            f"Made by `{content['command']}`. All numbers: the JSON file beside this page.",
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
