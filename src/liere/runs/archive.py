"""Archives of finished runs: one compressed file per run, without weights, as committed with the project's tables."""

from __future__ import annotations

import io
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from liere.errors import InputError
from liere.files.reading import DamagedError, memory_limit, open_regular, reason, shorten, stored_bytes
from liere_command.signals import call_on_leaving

__all__ = ["SUFFIX", "pack_files", "read_archive", "unpacked"]

SUFFIX = ".tar.xz"
FILES = ("config.yaml", "result.json", "evaluation.json", "metrics.csv")
PREDICTIONS = "predictions"
"""Folder of a run whose files an archive may also contain."""
MOST_BYTES = 200_000_000
"""Maximum total size of the files of a run."""
ALLOWANCE = 16 * 2**20
"""Bytes that any archive may expand to, however small it is; see `files.reading`."""
MOST_MEMBERS = 1_000
LONGEST_NAME = 255  # bytes: the limit of file systems
DECODER_BYTES = 32 * 2**20  # our archives need 9 MiB, but a file may request 4 GiB
FRESH = tuple[int, int]  # modification time and size of an archive

_unpacked: dict[Path, tuple[FRESH, Path]] = {}
_places: dict[Path, tempfile.TemporaryDirectory[str]] = {}
"""Temporary folders of unpacked runs, by the folder of their archives; removed when the process exits."""


def pack_files(files: Mapping[str, bytes]) -> bytes:
    """Return the files of a run as an archive; the same files give the same bytes.

    Args:
        files: File contents by name: the files of every run, and `predictions/NAME`.

    Raises:
        ValueError: If a name is not one of these.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            _check_name(name)
            member = tarfile.TarInfo(name)  # without owner and date, so that archives are reproducible
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def read_archive(file: Path) -> dict[str, bytes]:
    """Return the files of a run by name.

    Raises:
        FileNotFoundError: If there is no such archive.
        DamagedError: If it is damaged, expands to much more than its size justifies, or contains anything but the
            regular files of a run.
    """
    try:
        content = io.BytesIO(_expand(file))
        with tarfile.open(fileobj=content, mode="r|") as tar:  # as a stream, so that headers cannot seek back
            return _members(tar)
    except (OSError, MemoryError, DamagedError):
        raise
    except Exception as error:  # lzma and tarfile raise many types on damaged files
        raise DamagedError(
            f"{file} is damaged ({reason(error)}): delete it, or restore it from the repository"
        ) from None


def unpacked(folder: Path) -> Path:
    """Return the folder of a run or, if only its archive exists, a temporary folder with its files.

    An archive is unpacked once per process, into a folder with the name of the run.

    Raises:
        DamagedError: If the archive is damaged.
    """
    archive = folder.with_name(folder.name + SUFFIX)
    if folder.exists() or not archive.exists():
        return folder
    archive = archive.resolve()
    status = archive.stat()
    fresh = (status.st_mtime_ns, status.st_size)
    if archive not in _unpacked or _unpacked[archive][0] != fresh:
        _unpacked[archive] = (fresh, _unpack(archive, folder.name))
    return _unpacked[archive][1]


def _unpack(archive: Path, name: str) -> Path:
    files = read_archive(archive)
    if archive.parent not in _places:
        _places[archive.parent] = tempfile.TemporaryDirectory(prefix="liere-runs-")
        call_on_leaving(_places[archive.parent].cleanup)
    folder = Path(_places[archive.parent].name) / name
    shutil.rmtree(folder, ignore_errors=True)  # left over if the archive has changed
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return folder


def _expand(file: Path) -> bytes:
    with open_regular(file) as stream:
        most = min(memory_limit(stored_bytes(stream), ALLOWANCE), MOST_BYTES)
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECODER_BYTES)
        parts, left = [], most + 1
        while left and not decoder.eof:
            packed = stream.read(2**16) if decoder.needs_input else b""
            if decoder.needs_input and not packed:
                raise EOFError("it is truncated")
            parts.append(decoder.decompress(packed, max_length=left))
            left -= len(parts[-1])
    if not left:
        raise DamagedError(f"{file} expands to more than {most:,} bytes, the limit for a run: delete it")
    return b"".join(parts)


def _members(tar: tarfile.TarFile) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for number, member in enumerate(tar):
        _check_name(member.name)
        if number == MOST_MEMBERS or member.name in files:
            raise InputError(f"{shorten(member.name)!r} is repeated, or there are more than {MOST_MEMBERS:,} files")
        # Sparse files can claim any size without containing that many bytes.
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
            raise InputError(f"{shorten(member.name)!r} is not a regular file")
        stream = tar.extractfile(member)
        assert stream is not None  # it is a regular file
        files[member.name] = stream.read()
    return files


def _check_name(name: str) -> None:
    """Raise `ValueError` unless a name is one of a run's files, none of which is outside its folder."""
    folder, _, file = name.partition("/")
    is_plain = file not in ("", ".", "..") and not any(sign in file for sign in "/\\:")
    is_plain = is_plain and file.isprintable() and len(file.encode()) <= LONGEST_NAME
    if name not in FILES and not (folder == PREDICTIONS and is_plain):
        raise InputError(f"{shorten(name)!r} is not a file of a run")
