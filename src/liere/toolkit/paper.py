"""The tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    export: Place | None = None,
    progress: bool = True,
    command: str | None = None,
) -> Made:
    """Make a table or figure of the paper, with the paper's numbers beside ours.

    Args:
        name: As `liere reproduce list` names them: `"main"`, `"spatial"`, ...
        scale: `"small"` or `"paper"`.
        only: Data sets to take; all, if empty.
        seeds: Other seeds than those of the experiment.
        encodings: Other encodings, with options like `"absolute:init_std=1"`.
        overrides: Fields to override, like `{"training.examples": 10_000}`.
        data: Folder of the data sets; None for ./data.
        out: Folder of runs and results, where finished runs are found; None for ./liere-reproduce/SCALE.
        own: Whether to make all runs here, instead of using those that are kept with the project.
        smoke: Whether it is a rehearsal: everything is run, with tiny models and a few examples.
        jobs: Processes at a time; None for one per GPU, or else one per core.
        export: Folder to copy results and runs to, without weights.
        progress: Whether to show how far it is.
        command: What the page says that it was made by; None for this call.

    Returns:
        Its `claims`, `numbers`, tables (`outcome.tables`) and `page`.

    Raises:
        RunsFailedError: If some runs failed; what the others found is its `result`.
        ValueError: If something does not fit.
        OSError: If data are missing, or files cannot be written.
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
    return make(request, command=call, jobs=jobs, export=None if export is None else Path(export), progress=progress)
