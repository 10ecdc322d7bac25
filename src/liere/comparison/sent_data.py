"""Send data that were passed from Python to other machines: once per comparison, through its folder."""

from __future__ import annotations

import hashlib
import pickle
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from liere.data.python import PythonData
from liere.data.torch_datasets import GivenData, find_given
from liere.errors import InputError
from liere.files.writing import write_atomically
from liere.runs.config import RunConfig

__all__ = ["DataStore", "SentData", "given_data"]


@dataclass(frozen=True)
class SentData:
    """A file of data that were passed from Python.

    Attributes:
        file: The file.
        digest: SHA-256 of its contents: others might be able to write to its folder, and unpickling executes code.
    """

    file: Path
    digest: str

    def receive(self) -> None:
        """Make the data available to configurations in this process.

        Raises:
            ValueError: If the file does not contain what was written.
            OSError: If it cannot be read.
        """
        content = self.file.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.digest:
            raise InputError(
                f"{self.file} was changed after the data were written to it, so it is not read: make sure that only "
                "you can write to --out, and run the same command again"
            )
        pickle.loads(content)  # makes them available


class DataStore:
    """The files of data that one command has written for its runs.

    Args:
        folder: A folder that all machines see under the same path.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.sent: dict[str, SentData] = {}

    def send(self, data: GivenData) -> SentData:
        """Write data to a new file, once; a file that is there already could be anybody's.

        Raises:
            TypeError: If they cannot be sent to other processes.
            OSError: If the file cannot be written.
        """
        if data.digest not in self.sent:
            content = pickle.dumps(data)
            file = self.folder / f".data-{secrets.token_hex(16)}.pickle"
            write_atomically(file, content)
            self.sent[data.digest] = SentData(file, hashlib.sha256(content).hexdigest())
        return self.sent[data.digest]

    def remove(self) -> None:
        """Remove the files, once no run needs them."""
        for sent in self.sent.values():
            with suppress(OSError):
                sent.file.unlink(missing_ok=True)
        self.sent = {}


def given_data(config: RunConfig) -> GivenData | None:
    """Return data that were passed in from Python; None if the data are in files."""
    data = config.data
    return find_given(data.digest, data.description, data.examples) if isinstance(data, PythonData) else None
