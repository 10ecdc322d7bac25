"""Rotations of a grid that are products of one another: along a ray from the origin, `R(m p) R(n p) = R((m + n) p)`.

Four in ten positions of a 2-D grid are a multiple of another one. Such a rotation costs one product instead of an
exponential, and its gradient two.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Rays", "find_rays"]

# Looking for rays takes a moment, once for each set of positions, and more positions are rarely a grid.
MAX_POSITIONS = 20_000
RECENT = 8


class Rays(NamedTuple):
    """Which positions are computed, and which follow from them."""

    roots: Tensor
    """Positions whose rotations are to be computed."""
    waves: list[tuple[Tensor, Tensor, Tensor]]
    """`R[target] = R[left] R[right]`, wave by wave; within a wave no position is twice a target, left or right."""


_recent: list[tuple[Tensor, Rays | None]] = []
_lock = threading.Lock()


def find_rays(positions: Tensor) -> Rays | None:
    """Return the rays of positions `[tokens, ndim]` in host memory, or None if there are none.

    A position counts as a multiple if it is one up to the rounding of its coordinates. The answer is remembered.

    Example:
        >>> rays = find_rays(torch.tensor([[0.0], [1.0], [2.0], [3.0]]))
        >>> rays.roots, rays.waves[0]
        (tensor([0, 1]), (tensor([2]), tensor([1]), tensor([1])))
    """
    with _lock:
        for index, (known, rays) in enumerate(_recent):
            if known.dtype == positions.dtype and torch.equal(known, positions):
                _recent.insert(0, _recent.pop(index))
                return rays
        rays = _find(positions) if positions.shape[0] <= MAX_POSITIONS else None
        _recent.insert(0, (positions.detach().clone(), rays))
        del _recent[RECENT:]
    return rays


def _find(positions: Tensor) -> Rays | None:
    eps = torch.finfo(positions.dtype).eps
    points: list[list[float]] = positions.tolist()
    lengths = [math.hypot(*p) for p in points]
    directions = defaultdict(list)
    for index, (p, length) in enumerate(zip(points, lengths, strict=True)):
        if length > 0 and math.isfinite(length):
            directions[tuple(round(c / length, 4) for c in p)].append(index)
    waves: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for ray in directions.values():
        ray.sort(key=lengths.__getitem__)
        root, found = ray[0], {1: ray[0]}
        for index in ray[1:]:
            multiple = round(lengths[index] / lengths[root])
            more, less = (multiple + 1) // 2, multiple // 2
            exact = all(
                abs(c - multiple * r) <= 1.5 * eps * abs(c) for c, r in zip(points[index], points[root], strict=True)
            )
            if exact and multiple not in found and more in found and less in found:
                found[multiple] = index
                waves[(multiple - 1).bit_length(), multiple % 2].append((index, found[more], found[less]))
    if not waves:
        return None
    derived = {target for wave in waves.values() for target, _, _ in wave}
    roots = torch.tensor([index for index in range(len(points)) if index not in derived])
    ordered = [waves[wave] for wave in sorted(waves)]
    columns = [[torch.tensor(column) for column in zip(*wave, strict=True)] for wave in ordered]
    return Rays(roots, [(target, left, right) for target, left, right in columns])
