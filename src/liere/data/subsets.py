"""Parts of a data set, drawn class by class."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.data.counter_random import combine
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["draw_fraction", "hold_out"]


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


def _first_of_each_class(labels: Int[Tensor, "examples"], share: float, seed: int, keep: int = 0) -> Tensor:
    order = combine(torch.tensor(seed), torch.arange(len(labels))).argsort(stable=True)
    by_class = order[labels[order].argsort(stable=True)]
    classes = by_class.split(labels.unique(return_counts=True)[1].tolist())
    return torch.cat([members[: min(max(round(share * len(members)), 1), len(members) - keep)] for members in classes])
