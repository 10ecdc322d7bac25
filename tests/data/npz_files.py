"""Small `.npz` files as users write them."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
import numpy as np

__all__ = ["PLAIN", "members", "noise", "save", "three_splits"]


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def three_splits(shape=(4, 4), kind="images", dtype=np.uint8, **more):
    """Arrays as in MedMNIST files: 6 for training, 4 for validation, 2 for testing."""
    arrays = {}
    for number, (split, count) in enumerate({"train": 6, "val": 4, "test": 2}.items()):
        arrays[f"{split}_{kind}"] = noise(count, *shape, seed=number).astype(dtype)
        arrays[f"{split}_labels"] = np.array([[0], [1]] * (count // 2), dtype=np.uint8)
    return arrays | more


def members(data) -> dict[str, set[bytes]]:
    """Contents of the examples of each split."""
    return {split: {image.numpy().tobytes() for image in images} for split, (images, _) in data.splits.items()}


PLAIN = {"images": noise(30, 4, 4), "labels": np.arange(30) % 2}
