"""Several runs: compare encodings, run the demo, report what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from liere.comparison.default_encodings import PAPER_ENCODINGS
from liere.comparison.demo import demo_plan, describe_demo
from liere.comparison.plan import make_plan
from liere.comparison.result import ComparisonResult
from liere.errors import InputError
from liere.reproduce.comparing import check_report_name, report_runs, run_comparison
from liere.reproduce.request import VARIED
from liere.runs.encoding_text import encoding_text
from liere.runs.find_runs import find_runs
from liere.runs.recipe import field_texts, read_recipe
from liere.runs.run import Run
from liere.terminal.messages import say
from liere.toolkit.calls import Encoding, Place, call_text, folder_of, several

__all__ = ["compare", "demo", "report"]


def compare(
    recipe: Place | Mapping[str, Any],
    *,
    encodings: Sequence[Encoding] = PAPER_ENCODINGS,
    seeds: Iterable[int] = range(3),
    sizes: Sequence[int] | None = None,
    examples: int | None = None,
    out: Place = "liere-compare",
    overrides: Mapping[str, Any] | None = None,
    data: Any = None,
    jobs: int | None = None,
    progress: bool = True,
    command: str | None = None,
) -> ComparisonResult:
    """Train several encodings with several seeds and one recipe, test them, and write the report.

    Every run is a process of its own. What is finished in `out` is not run again.

    Args:
        recipe: A YAML file like those in `experiments/`, or a dict of its sections.
        encodings: What to compare: names with options, like `"liere8:init_scale=3.14"`, or classes.
        seeds: Seeds of every encoding.
        sizes: Image sizes to test at; None for the size in training.
        examples: Test examples; None for all.
        out: Folder of runs and report.
        overrides: Fields to override, like `{"training.examples": 10_000}`; text is read as on the command line.
        data: Instead of the recipe's data: a torch data set of images and labels, or a tuple of two (to train and to
            test); what `liere.data.from_datasets` returned; or a section, like `{"name": "images", "root": ...}`.
        jobs: Processes at a time; None for one per GPU, or else one per core.
        progress: Whether to show runs as they end, and how far the others are.
        command: What the report says that it was made by; None for this call.

    Raises:
        RunsFailedError: If some runs failed; what the others found is reported, and is its `result`.
        ValueError: If something does not fit, or `out` has runs of another recipe.
        OSError: If data are missing, or files cannot be written.
    """
    found, fields, seeds = read_recipe(recipe, data), field_texts(overrides), several("seeds", seeds)
    encodings = several("encodings", encodings, one=(str, type))
    sizes = None if sizes is None else several("sizes", sizes, one=(int,))
    for name in VARIED:
        if name in fields:
            raise InputError(f"--{name} is what a comparison varies: use --encodings and --seeds instead")
    plan = make_plan(
        found.content,
        fields,
        encodings=encodings,
        seeds=seeds,
        sizes=sizes,
        examples=examples,
        folder=Path(out),
        slots=jobs,
        source=found.source,
    )
    given = {"encodings": [*map(encoding_text, encodings)], "seeds": seeds, "sizes": sizes, "examples": examples}
    call = command or call_text("compare", found.source or "recipe", **given, out=str(out), overrides=overrides)
    return run_comparison(plan, command=call, progress=progress)


def demo(
    out: Place = "liere-demo",
    *,
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = True,
    command: str | None = None,
) -> ComparisonResult:
    """Train each encoding on the paper's spatial task, and show which of them learn it.

    Args:
        out: Folder of runs and report; what is finished there is not run again.
        quick: Whether to take two encodings on a small grid: under two minutes.
        seed: Seed of weights and order.
        jobs: Processes at a time; None for one per GPU, or else one per core.
        progress: Whether to show what it is about and how far it is.
        command: What the report says that it was made by; None for this call.
    """
    plan = demo_plan(Path(out), quick=quick, seed=seed, slots=jobs)
    if progress:
        say(describe_demo(plan, quick=quick) + "\n")
    return run_comparison(
        plan, command=command or call_text("demo", str(out), quick=quick, seed=seed), progress=progress
    )


def report(
    runs: Run | Place | Sequence[Run | Place],
    *,
    out: Place = "liere-report",
    name: str = "report",
    command: str | None = None,
) -> ComparisonResult:
    """Write a page, Markdown and JSON of finished, evaluated runs, and return what they found together.

    Args:
        runs: Runs, their folders, or folders of comparisons with all their runs.
        out: Folder of the report.
        name: What to call its files.
        command: What the report says that it was made by; None for this call.

    Raises:
        OSError: If there is no such run, or files cannot be written.
        ValueError: If a run is not finished or not evaluated, or they cannot be compared.
    """
    check_report_name(name)
    given = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    folders = [folder_of(one) for one in given]
    call = command or call_text("report", [str(folder) for folder in folders], out=str(out), name=name)
    return report_runs(find_runs(folders), Path(out), command=call, name=name)
