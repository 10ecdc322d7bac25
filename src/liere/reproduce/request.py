"""The options of `liere reproduce`: which table or figure to make, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from liere.errors import InputError
from liere.files.writing import prepare_folder, write_atomically
from liere.reproduce import reproduction as reproductions
from liere.reproduce.catalog import Entry, find_entry
from liere.reproduce.reproduction import Reproduction, prepare

__all__ = ["SCALES", "VARIED", "Request", "make_request", "prepare_request", "write_configs"]

SCALES = ("small", "paper")
VARIED = ("model.encoding", "training.seed", "model.options")
"""Fields that experiments and comparisons set themselves."""


@dataclass(frozen=True)
class Request:
    """A table or figure to make, with options.

    Attributes:
        entry: The table or figure.
        scale: `"small"` or `"paper"`.
        only: Data sets to include; empty for all.
        seeds: Seeds to use instead of those of the experiment.
        encodings: Encodings to use instead of those of the experiment.
        overrides: Fields to override, by dotted name, with values as text.
        data: Folder of the data sets; None for ./data.
        out: Folder of runs and results; None for ./liere-reproduce/SCALE.
        own: Whether to train all runs here instead of using those that come with the project.
        smoke: Whether it is a smoke test with tiny models.
    """

    entry: Entry
    scale: str = "small"
    only: Sequence[str] = ()
    seeds: Sequence[int] = ()
    encodings: Sequence[str] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)
    data: Path | None = None
    out: Path | None = None
    own: bool = False
    smoke: bool = False

    @property
    def folder(self) -> Path:
        """Folder of runs and results."""
        return self.out or Path("liere-reproduce") / (f"{self.scale}-smoke" if self.smoke else self.scale)


def make_request(
    name: str, *, data: str | Path | None = None, out: str | Path | None = None, **options: Any
) -> Request:
    """Return a request for a table or figure by name; `options` are attributes of `Request`.

    Raises:
        ValueError: If the table, figure or scale does not exist.
    """
    if options.get("scale", "small") not in SCALES:
        raise InputError(f"unknown scale {options['scale']!r}: choose from {', '.join(SCALES)}")
    places: dict[str, Any] = {
        key: None if place is None else Path(place) for key, place in {"data": data, "out": out}.items()
    }
    return Request(find_entry(name), **places, **options)


def prepare_request(request: Request) -> Reproduction | None:
    """Return the runs of a table or figure; None if it needs none.

    Raises:
        ValueError: If a setting is invalid.
    """
    for name in VARIED:
        if name in request.overrides:
            raise InputError(f"--{name} is varied by the experiments themselves: use --encodings and --seeds instead")
    if not request.entry.experiment:
        return None
    committed = None if request.own or request.smoke else reproductions.committed_runs(request.scale)
    return prepare(
        request.entry,
        request.scale,
        dict(request.overrides),
        places=[request.folder / "runs", *([committed] if committed else [])],
        only=request.only,
        seeds=request.seeds,
        encodings=request.encodings,
        data=request.data,
        smoke=request.smoke,
    )


def write_configs(reproduction: Reproduction, folder: Path) -> int:
    """Write the configuration of every run to a folder, and return the number of files.

    Raises:
        OSError: If they cannot be written.
    """
    prepare_folder(folder, "--configs")
    runs = reproduction.runs()
    for planned in runs:
        write_atomically(folder / f"{planned.folder.name}.yaml", planned.config.to_yaml())
    return len(runs)
