"""Runs on several machines need storage that all of them share: a token in the folder shows whether they do."""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from sys import path as import_paths

from liere.comparison.executors.contract import Task
from liere.comparison.sent_data import DataStore
from liere.data.torch_datasets import GivenData
from liere.errors import InputError
from liere.files.writing import prepare_folder

__all__ = ["StorageToken", "for_other_machines", "place_token"]

PATIENCE = 10.0
MEMORY = ("tmpfs", "ramfs")  # file systems in the memory of one machine


@dataclass(frozen=True)
class StorageToken:
    """A file in the folder of a plan, by which other machines recognize that folder.

    Attributes:
        file: The file.
        content: What it contains.
        patience: Seconds to wait for it, since network file systems may show a new file late.
    """

    file: Path
    content: str
    patience: float

    def is_visible(self) -> bool:
        """Return whether this machine sees the file, after waiting for it for a while."""
        deadline = time.monotonic() + self.patience
        while True:
            with suppress(OSError):
                os.listdir(self.file.parent)  # makes network file systems look again
                if self.file.read_text() == self.content:
                    return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.2)

    def check(self) -> None:
        """Raise `ValueError` unless this machine sees the file."""
        if not self.is_visible():
            raise InputError(not_shared(self.file.parent, platform.node()))

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)


def not_shared(folder: Path, where: str) -> str:
    """Return the message for a machine that does not see the folder."""
    return (
        f"--out {folder} is not the same folder on {where} as here, but runs on other machines need storage that all "
        "of them share, such as NFS or Lustre: choose a folder there"
    )


def place_token(folder: Path) -> StorageToken:
    """Write a token to the folder of a plan.

    Raises:
        OSError: If the folder cannot be written to.
    """
    prepare_folder(folder, "--out")
    content = uuid.uuid4().hex
    token = StorageToken(folder.absolute() / f".shared-{content}", content, PATIENCE)
    token.file.write_text(content)
    return token


def check_not_memory(folder: Path) -> None:
    """Raise `ValueError` if a folder is in the memory of this machine, which other machines never see."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:  # not Linux
        return
    place = folder.absolute()
    above = [(len(where), kind) for where, kind in mounts if place.is_relative_to(where)]
    if above and max(above)[1] in MEMORY:
        raise InputError(
            f"--out {folder} is in the memory of this machine, but runs on other machines need storage that all of "
            "them share, such as NFS or Lustre: choose a folder there"
        )


def for_other_machines(tasks: Sequence[Task], store: DataStore) -> list[Task]:
    """Return tasks that processes of other machines can execute: with absolute paths, and with data in a file.

    Args:
        tasks: The tasks.
        store: Where data that were passed from Python are written to.

    Raises:
        TypeError: If data that were passed from Python cannot be sent.
        OSError: If they cannot be written.
    """
    paths = tuple(dict.fromkeys(str(Path(path).absolute()) for path in import_paths))
    return [
        replace(
            task,
            planned=replace(task.planned, folder=task.planned.folder.absolute()),
            data=store.send(task.data) if isinstance(task.data, GivenData) else task.data,
            cwd=Path.cwd(),
            paths=paths,
        )
        for task in tasks
    ]
