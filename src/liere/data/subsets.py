"""Subsets of a data set, drawn class by class with a seed."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from liere.data.counter_random import combine
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["SPLITS", "choose_examples", "divide", "draw_fraction", "hold_out", "stable_key"]

SPLITS = ("train", "val", "test")
SHARE = 0.1  # of the examples of a class for validation, and the same for testing


def draw_fraction(labels: Int[Tensor, "examples"], fraction: float, seed: int = 0) -> Int[Tensor, "kept"]:
    """Return the indices of the examples to keep: this fraction of every class, at least one of each, in order.

    With the same seed, a larger fraction contains a smaller one.

    Example:
        >>> labels = torch.tensor([0] * 10 + [1] * 20)
        >>> kept = draw_fraction(labels, 0.2)
        >>> torch.bincount(labels[kept]).tolist()
        [2, 4]
    """
    if not 0 < fraction <= 1:
        raise InputError(f"fraction must be above 0 and at most 1, got {fraction}")
    return _first_of_each_class(labels, fraction, seed).sort().values


def hold_out(
    labels: Int[Tensor, "examples"], share: float, seed: int = 0
) -> tuple[Int[Tensor, "kept"], Int[Tensor, "held_out"]]:
    """Return the indices of the examples to keep, and of those to hold out: this share of every class.

    Every class with two or more examples has at least one held out, and never all of them.

    Example:
        >>> kept, held_out = hold_out(torch.tensor([0] * 10 + [1] * 20), 0.1)
        >>> len(kept), len(held_out)
        (27, 3)
    """
    if not 0 < share < 1:
        raise InputError(f"the fraction to hold out must be between 0 and 1, got {share}")
    out = _first_of_each_class(labels, share, ~seed, keep=1)
    if not len(out):
        raise InputError("no class has two or more examples, so none can be held out: set data.holdout to 0")
    kept = torch.ones(len(labels), dtype=torch.bool)
    kept[out] = False
    return kept.nonzero()[:, 0], out.sort().values


def divide(labels: Int[Tensor, "units"], keys: Int[Tensor, "units"], seed: int = 0) -> dict[str, Tensor]:
    """Return the indices of each split: of every class, a tenth and at least one to `"val"` and to `"test"`.

    A class with two examples has one for training and one for testing; a single example is for training.

    Args:
        labels: Class of each example or group.
        keys: A number that identifies each example or group, independent of its position.
        seed: Seed of the random order.

    Example:
        >>> parts = divide(torch.tensor([0] * 20 + [1] * 10), torch.arange(30))
        >>> {split: len(members) for split, members in parts.items()}
        {'train': 24, 'val': 3, 'test': 3}
    """
    order = combine(torch.tensor(seed), keys).argsort(stable=True)
    parts: dict[str, list[Tensor]] = {split: [] for split in SPLITS}
    by_class = order[labels[order].argsort(stable=True)]
    for members in by_class.split(labels.unique(return_counts=True)[1].tolist()):
        share = max(round(SHARE * len(members)), 1)
        num_test = min(share, len(members) - 1)
        num_val = min(share, len(members) - 1 - num_test)
        sizes = [len(members) - num_val - num_test, num_val, num_test]
        for split, part in zip(SPLITS, members.split(sizes), strict=True):
            parts[split].append(part)
    return {split: torch.cat(members).sort().values for split, members in parts.items()}


def stable_key(content: bytes | memoryview) -> int:
    """Return a key for `divide` that depends on the content or name of an example, not on its position."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)


def choose_examples(
    split: str,
    labels: Int[Tensor, "examples"],
    length: int | None = None,
    *,
    holdout: float = 0.0,
    fraction: float = 1.0,
    seed: int = 0,
) -> Int[Tensor, "chosen"]:
    """Return the indices of the examples that belong to a split.

    Args:
        split: `"train"`, `"val"` or `"test"`.
        labels: Labels of the examples to choose from; for `"val"` with held-out examples, those of `"train"`.
        length: Maximum number of examples: the first of `"train"`, evenly spaced ones of other splits.
        holdout: Fraction of the training examples to validate with.
        fraction: Fraction of the training examples to use.
        seed: Seed of the random choice.

    Example:
        >>> choose_examples("test", torch.zeros(10, dtype=torch.long), 5).tolist()
        [0, 2, 4, 6, 8]
    """
    chosen = torch.arange(len(labels))
    if holdout and split != "test":
        chosen = hold_out(labels, holdout, seed)[split == "val"]
    if split == "train" and fraction < 1:
        chosen = chosen[draw_fraction(labels[chosen], fraction, seed)]
    if length is None or length >= len(chosen):
        return chosen
    return chosen[:length] if split == "train" else chosen[torch.arange(length) * len(chosen) // length]


def _first_of_each_class(labels: Int[Tensor, "examples"], share: float, seed: int, keep: int = 0) -> Tensor:
    order = combine(torch.tensor(seed), torch.arange(len(labels))).argsort(stable=True)
    by_class = order[labels[order].argsort(stable=True)]
    classes = by_class.split(labels.unique(return_counts=True)[1].tolist())
    return torch.cat([members[: min(max(round(share * len(members)), 1), len(members) - keep)] for members in classes])
