"""Functions on several runs: compare encodings, run the demo, write a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from liere.comparison.default_encodings import PAPER_ENCODINGS
from liere.comparison.demo import demo_plan, describe_demo
from liere.comparison.executors.choice import choose_executor
from liere.comparison.executors.contract import Executor
from liere.comparison.plan import Plan, make_plan
from liere.comparison.result import ComparisonResult
from liere.errors import InputError
from liere.reproduce.comparing import check_report_name, report_runs, run_comparison
from liere.reproduce.request import VARIED
from liere.runs.encoding_text import encoding_text
from liere.runs.find_runs import find_runs
from liere.runs.recipe import field_texts, read_recipe
from liere.runs.run import Run
from liere.terminal.messages import say
from liere.toolkit.calls import Encoding, Place, call_text, count_of, folder_of, path_of, several

__all__ = ["compare", "demo", "plan_comparison", "report"]


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
    executor: str | Executor | None = None,
    progress: bool = True,
    command: str | None = None,
) -> ComparisonResult:
    """Train several encodings with several seeds and one recipe, test them, write a report and return the results.

    Every run has its own process, on this machine or on a cluster. Finished runs in `out` are not repeated, and any
    executor resumes what another one began.

    Args:
        recipe: A YAML file like those in `experiments/`, or a dict with the same sections.
        encodings: Encodings to compare: names with options, like `"liere8:init_scale=3.14"`, or classes.
        seeds: Seeds for every encoding.
        sizes: Image sizes to test at; None for the training size.
        examples: Number of test examples; None for all.
        out: Folder for runs and report.
        overrides: Fields to override, like `{"training.examples": 10_000}`; strings are parsed as on the command line.
        data: Replaces the recipe's data: a torch data set of images and labels, a tuple of two (training and test),
            the result of `liere.data.from_datasets`, or a section like `{"name": "images", "root": ...}`.
        jobs: How many runs are executed at the same time; None for one per GPU, or one per core without a GPU, and on a
            cluster for as many as it has room for.
        executor: Where runs are executed: `"local"`, `"ray"`, `"slurm"`, or an executor with options, such as
            `SlurmExecutor(partition="gpu", time="8:00:00")`.
        progress: Whether to print finished runs and the progress of the others.
        command: Command to show in the report; None for this call.

    Raises:
        RunsFailedError: If some runs failed; the report covers the others, and `result` has their results.
        ValueError: If an argument is invalid, or `out` contains runs of another recipe.
        OSError: If data is missing, or files cannot be written.
    """
    seeds, encodings = several("seeds", seeds), several("encodings", encodings, one=(str, type))
    sizes = None if sizes is None else several("sizes", sizes, one=(int,))
    given: dict[str, Any] = {"seeds": seeds, "sizes": sizes, "examples": examples, "out": out, "overrides": overrides}
    plan = plan_comparison(recipe, encodings=encodings, **given, data=data, jobs=jobs, executor=executor)
    plan.check_executor()
    given = {"encodings": [*map(encoding_text, encodings)], **given, "out": str(out)}
    call = command or call_text("compare", str(recipe) if isinstance(recipe, str | Path) else "recipe", **given)
    return run_comparison(plan, command=call, progress=progress)


def plan_comparison(
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
    executor: str | Executor | None = None,
) -> Plan:
    """Return the plan of a comparison, with everything checked; takes arguments of `compare`, and creates nothing.

    Raises:
        ValueError: If an argument is invalid, or `out` contains runs of another recipe.
        OSError: If data is missing.
    """
    found, fields = read_recipe(recipe, data), field_texts(overrides)
    for name in VARIED:
        if name in fields:
            raise InputError(f"--{name} is varied by the comparison itself: use --encodings and --seeds instead")
    return make_plan(
        found.content,
        fields,
        encodings=several("encodings", encodings, one=(str, type)),
        seeds=several("seeds", seeds),
        sizes=None if sizes is None else several("sizes", sizes, one=(int,)),
        examples=count_of("examples", examples),
        folder=path_of("out", out),
        slots=count_of("jobs", jobs),
        source=found.source,
        executor=choose_executor(executor),
    )


def demo(
    out: Place = "liere-demo",
    *,
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = True,
    command: str | None = None,
) -> ComparisonResult:
    """Train each encoding on the paper's spatial task, write a report and return the results.

    Args:
        out: Folder for runs and report; finished runs in it are not repeated.
        quick: Whether to train only two encodings on a small grid, in under two minutes.
        seed: Seed of the weights and of the order of examples.
        jobs: Number of parallel processes; None for one per GPU, or one per core without a GPU.
        progress: Whether to print a description of the task and the progress.
        command: Command to show in the report; None for this call.
    """
    plan = demo_plan(path_of("out", out), quick=quick, seed=seed, slots=count_of("jobs", jobs))
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
    """Write a report on evaluated runs as HTML, Markdown and JSON, and return the results.

    Args:
        runs: Runs, their folders, or folders of comparisons.
        out: Folder for the report.
        name: Base name of its files.
        command: Command to show in the report; None for this call.

    Raises:
        OSError: If a run does not exist, or files cannot be written.
        ValueError: If a run is not finished or not evaluated, or if the runs cannot be compared.
    """
    check_report_name(name)
    given = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    folders = [folder_of(one) for one in given]
    call = command or call_text("report", [str(folder) for folder in folders], out=str(out), name=name)
    return report_runs(find_runs(folders), path_of("out", out), command=call, name=name)
