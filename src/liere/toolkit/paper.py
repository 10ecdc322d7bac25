"""Reproduce the tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from liere.comparison.executors.choice import choose_executor
from liere.comparison.executors.contract import Executor
from liere.reproduce.making import Made, make
from liere.reproduce.request import make_request
from liere.runs.recipe import field_texts
from liere.toolkit.calls import Place, call_text

__all__ = ["reproduce"]


def reproduce(
    name: str,
    *,
    scale: str = "small",
    only: Sequence[str] = (),
    seeds: Sequence[int] = (),
    encodings: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    data: Place | None = None,
    out: Place | None = None,
    own: bool = False,
    smoke: bool = False,
    jobs: int | None = None,
    executor: str | Executor | None = None,
    export: Place | None = None,
    progress: bool = True,
    command: str | None = None,
) -> Made:
    """Reproduce a table or figure of the paper, and return it with the paper's numbers next to ours.

    Args:
        name: A name from `liere reproduce list`, for example `"main"` or `"spatial"`.
        scale: `"small"` or `"paper"`.
        only: Data sets to include; empty for all.
        seeds: Seeds to use instead of those of the experiment.
        encodings: Encodings to use instead of those of the experiment, with options like `"absolute:init_std=1"`.
        overrides: Fields to override, like `{"training.examples": 10_000}`.
        data: Folder of the data sets; None for `./data`.
        out: Folder for runs and results, whose finished runs are reused; None for `./liere-reproduce/SCALE`.
        own: Whether to train all runs here instead of using those that come with the project.
        smoke: Whether to do a dry run of everything with tiny models and a few examples.
        jobs: How many runs are executed at the same time; None for the executor's default.
        executor: Where runs are executed: `"local"`, `"ray"`, `"slurm"`, or an executor with options, such as
            `RayExecutor(address="auto")`.
        export: Folder to which to copy results and runs, without weights.
        progress: Whether to print the progress.
        command: Command to show on the page; None for this call.

    Returns:
        The result, with `claims`, `numbers`, `outcome.tables` and `page`.

    Raises:
        RunsFailedError: If some runs failed; `result` has the results of the others.
        ValueError: If an argument is invalid.
        OSError: If data is missing, or files cannot be written.
    """
    request = make_request(
        name,
        scale=scale,
        only=only,
        seeds=seeds,
        encodings=encodings,
        overrides=field_texts(overrides),
        data=data,
        out=out,
        own=own,
        smoke=smoke,
    )
    call = command or call_text("reproduce", name, scale=scale)
    return make(
        request,
        command=call,
        jobs=jobs,
        executor=choose_executor(executor),
        export=None if export is None else Path(export),
        progress=progress,
    )
