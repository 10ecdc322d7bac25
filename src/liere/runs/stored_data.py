"""The facts of its data that a run stores, so that its model works without the data and they can be found again."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from liere.data.facts import DataFacts
from liere.data.registry import DataConfig
from liere.errors import InputError
from liere.files.reading import DamagedError, read_json
from liere.files.writing import write_atomically

__all__ = ["StoredData", "at_root", "read_stored_data", "with_facts", "without_facts"]

STORED_BYTES = 10_000_000  # enough for 100,000 classes with long names


@dataclass(frozen=True)
class StoredData:
    """The content of a run's `facts.json`.

    Attributes:
        facts: Classes, channels, image size and normalization of the data that the run was trained on.
        root: Absolute path of the data in training; None for data without files.
        root_from_run: The same path relative to the run's folder, so that both can be moved together.
    """

    facts: DataFacts
    root: str | None = None
    root_from_run: str | None = None

    @classmethod
    def of(cls, data: DataConfig, folder: Path) -> StoredData:
        """Return the facts and location of data for the run in a folder."""
        has_files = "root" in type(data).model_fields and data.path.exists()
        return cls(data.facts, os.path.abspath(data.path), _from(folder, data.path)) if has_files else cls(data.facts)

    def places(self, folder: Path) -> list[Path]:
        """Return possible locations of the data of the run in a folder, the most likely first."""
        found = [Path(self.root)] if self.root is not None else []
        found += [Path(os.path.normpath(folder / self.root_from_run))] if self.root_from_run is not None else []
        return found

    def write(self, path: Path) -> None:
        """Write it atomically as JSON."""
        content = {**self.facts.as_dict(), "root": self.root, "root_from_run": self.root_from_run}
        write_atomically(path, json.dumps(content, indent=1) + "\n")


def read_stored_data(path: Path) -> StoredData | None:
    """Return the content of a file by `StoredData.write`; None if it does not exist, as in older runs.

    Raises:
        DamagedError: If it contains anything else.
    """
    try:
        content = read_json(path, STORED_BYTES)
    except FileNotFoundError:
        return None
    if not isinstance(content, dict):
        raise DamagedError(f"{path} is damaged (it is not an object): delete it if the data are available")
    roots = [content.pop(name, None) for name in ("root", "root_from_run")]
    try:
        if not all(root is None or isinstance(root, str) for root in roots):
            raise InputError("root must be a path")
        return StoredData(DataFacts.from_dict(content), *roots)
    except ValueError as error:
        raise DamagedError(f"{path} is damaged ({error}): delete it if the data are available") from None


def with_facts(data: DataConfig, facts: DataFacts) -> DataConfig:
    """Return a data section with these facts, which then does not read them from the data."""
    copy = data.model_copy()
    vars(copy)["facts"] = facts  # fills the cache of `cached_property`
    return copy


def without_facts(data: DataConfig) -> DataConfig:
    """Return a data section that reads the facts from the data again."""
    copy = data.model_copy()
    vars(copy).pop("facts", None)
    return copy


def at_root(data: DataConfig, root: Path) -> DataConfig:
    """Return a data section with another root; sections without files are unchanged."""
    return data.model_copy(update={"root": str(root)}) if "root" in type(data).model_fields else data


def _from(folder: Path, path: Path) -> str | None:
    try:
        return os.path.relpath(path.resolve(), folder.resolve())
    except ValueError:  # on another drive
        return None
