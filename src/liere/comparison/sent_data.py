"""Send data that were passed from Python to other machines: once per comparison, through its folder."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

from liere.data.python import PythonData
from liere.data.torch_datasets import GivenData, find_given
from liere.files.writing import write_atomically
from liere.runs.config import RunConfig

__all__ = ["SentData", "given_data", "store_data"]


@dataclass(frozen=True)
class SentData:
    """A file of data that were passed from Python.

    Attributes:
        file: The file.
    """

    file: Path

    def receive(self) -> None:
        """Make the data available to configurations in this process."""
        pickle.loads(self.file.read_bytes())  # unpickling does it


def given_data(config: RunConfig) -> GivenData | None:
    """Return data that were passed in from Python; None if the data are in files."""
    data = config.data
    return find_given(data.digest, data.description, data.examples) if isinstance(data, PythonData) else None


def store_data(data: GivenData, folder: Path) -> SentData:
    """Write data to a folder that other machines can read, unless they are there already.

    Raises:
        TypeError: If they cannot be sent to other processes.
        OSError: If the file cannot be written.
    """
    file = folder / f".data-{data.digest[:16]}.pickle"
    if not file.exists():
        write_atomically(file, pickle.dumps(data))
    return SentData(file)
