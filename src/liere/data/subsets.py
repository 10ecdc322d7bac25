"""Parts of a data set, drawn class by class by a seed."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from liere.data.counter_random import combine
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["SPLITS", "choose_examples", "divide", "draw_fraction", "hold_out", "stable_key"]

SPLITS = ("train", "val", "test")
SHARE = 0.1  # of the examples of a class, to validate, and again to test


def draw_fraction(labels: Int[Tensor, "examples"], fraction: float, seed: int = 0) -> Int[Tensor, "kept"]:
    """Return which examples to keep: this share of every class, at least one of each, in their old order.

    A larger fraction of the same seed holds all of a smaller one.

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
    """Split examples in two, class by class: those to keep, and this share of every class.

    Some are held out of every class, but never all: one that is alone in its class is kept.

    Example:
        >>> kept, held_out = hold_out(torch.tensor([0] * 10 + [1] * 20), 0.1)
        >>> len(kept), len(held_out)
        (27, 3)
    """
    if not 0 < share < 1:
        raise InputError(f"the share to hold out must be between 0 and 1, got {share}")
    out = _first_of_each_class(labels, share, ~seed, keep=1)
    if not len(out):
        raise InputError("no class has two examples, so none can be held out: use data.holdout 0")
    kept = torch.ones(len(labels), dtype=torch.bool)
    kept[out] = False
    return kept.nonzero()[:, 0], out.sort().values


def divide(labels: Int[Tensor, "units"], keys: Int[Tensor, "units"], seed: int = 0) -> dict[str, Tensor]:
    """Return who is in which split, class by class: a tenth to `"val"`, a tenth to `"test"`, at least one to each.

    Of a class with two, one is for training and one for tests; a class with one is for training.

    Args:
        labels: Class of each example or group.
        keys: A number that tells each from others, wherever it stands.
        seed: Of the order.

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
    """Return a number for `divide` that depends on what an example is, or is called, and not on its place."""
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
    """Return which examples belong to a split, of those that it is made of.

    Args:
        split: `"train"`, `"val"` or `"test"`.
        labels: Of these examples; for `"val"` they are those of `"train"` where examples are held out.
        length: How many examples at most; of `"train"` the first, of others evenly spread ones.
        holdout: Share of the training examples to validate with.
        fraction: Share of the training examples to use.
        seed: Decides which.

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
