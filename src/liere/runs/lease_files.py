"""Numbered files in the folder of a run that say who works on it.

Each holder has a file of its own, `.lock-1`, `.lock-2` and so on; the highest number counts. Creating a file that does
not exist yet is atomic, also on network file systems, so two processes cannot both get the next number. A process that
was paused and resumes can only change its own file, never that of another one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

from liere.files.reading import DamagedError, read_bytes
from liere.files.writing import cannot_write
from liere.runs.lease_holder import Holder

__all__ = ["LeaseFiles", "LeaseState"]

NAME = re.compile(r"\.lock-([1-9][0-9]*)")
MOST_BYTES = 4096
BEAT_WIDTH = 20
CLAIMED, RELEASED, WITHDRAWN = (word.ljust(BEAT_WIDTH) for word in (b"claimed", b"released", b"withdrawn"))
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}


@dataclass(frozen=True)
class LeaseState:
    """What a lease file contains.

    Attributes:
        content: The whole content, which changes with every heartbeat.
        holder: Who wrote it; None if it is damaged.
    """

    content: bytes
    holder: Holder | None

    @property
    def is_claim(self) -> bool:
        """Whether its process has not decided yet whether the run is its own."""
        return self._has(CLAIMED)

    @property
    def is_released(self) -> bool:
        """Whether the holder has given the run back."""
        return self._has(RELEASED)

    @property
    def is_withdrawn(self) -> bool:
        """Whether its process decided that the run is not its own."""
        return self._has(WITHDRAWN)

    def has_ended(self) -> bool:
        """Return whether the holder is known to have released the run or to have ended."""
        return self.is_released or (self.holder is not None and self.holder.has_ended())

    def _has(self, word: bytes) -> bool:
        return self.content.partition(b"\n")[2].startswith(word)


class LeaseFiles:
    """The lease files in a folder.

    Args:
        folder: The folder of a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def numbers(self) -> list[int]:
        """Return the numbers in use, the highest first."""
        found = (NAME.fullmatch(name) for name in os.listdir(self.folder))
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def read(self, number: int) -> LeaseState | None:
        """Return the state of a lease; None if its file is gone."""
        try:
            content = read_bytes(self._path(number), MOST_BYTES)
        except FileNotFoundError:
            if not self._path(number).is_symlink():
                return None
            content = b""  # a link to nothing
        except DamagedError:
            content = b""
        return LeaseState(content, Holder.from_text(content.partition(b"\n")[0].decode("utf-8", "replace")))

    def claim(self, number: int, holder: Holder) -> bool:
        """Create the file of a number for a holder; return False if another process was faster."""
        content = holder.as_text().encode() + b"\n" + CLAIMED + b"\n"
        new = self.folder / f".lock.{holder.token}.tmp"
        try:
            with open(new, "xb") as file:
                file.write(content)
            os.link(new, self._path(number))
        except FileExistsError:
            # The answer of a network file system may get lost, and the request be repeated.
            state = self.read(number)
            return state is not None and state.holder == holder
        except FileNotFoundError:
            return False  # somebody has tidied up the temporary file
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise cannot_write(self._path(number), error) from error
            return self._claim_without_links(number, content)
        finally:
            new.unlink(missing_ok=True)
        return True

    def beat(self, number: int, count: int) -> None:
        """Change the content of a lease file, to show that its holder is alive; does nothing if the file is gone."""
        self._write(number, f"{count:0{BEAT_WIDTH}d}\n".encode())

    def release(self, number: int) -> None:
        """Mark a lease as released."""
        self._write(number, RELEASED + b"\n")

    def withdraw(self, number: int) -> None:
        """Mark a claim as withdrawn; its file stays, so that its number is not given twice."""
        self._write(number, WITHDRAWN + b"\n")

    def remove_older(self, number: int) -> None:
        """Remove the files of all leases before this one."""
        for older in self.numbers():
            if older < number:
                with contextlib.suppress(OSError):  # a folder, or already gone; only the highest number counts
                    self._path(older).unlink()

    def _path(self, number: int) -> Path:
        return self.folder / f".lock-{number}"

    def _claim_without_links(self, number: int, content: bytes) -> bool:
        try:
            with open(self._path(number), "xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def _write(self, number: int, text: bytes) -> None:
        """Overwrite the second line in place: a file of that name is not created again."""
        try:
            descriptor = os.open(self._path(number), os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return
        try:
            with os.fdopen(descriptor, "r+b") as file:
                first = file.readline(MOST_BYTES)
                file.seek(len(first))
                file.write(text)
        except OSError as error:
            raise cannot_write(self._path(number), error) from error
