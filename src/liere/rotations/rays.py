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

__all__ = ["Rays", "Wave", "find_rays"]

# Looking for rays takes a moment, once for each set of positions, and more positions are rarely a grid.
MAX_POSITIONS = 4096
RECENT = 8


class Wave(NamedTuple):
    """`R[target] = R[left] R[right]`, where no position is twice a target, left or right."""

    target: Tensor
    left: Tensor
    right: Tensor
    multiple: Tensor
    """Which multiple the target is of its root."""


class Rays(NamedTuple):
    """Which positions are computed, and which follow from them."""

    roots: Tensor
    """Positions whose rotations are to be computed."""
    waves: list[Wave]
    """What follows, one wave after the other."""

    def for_levels(self, levels: Tensor) -> Rays:
        """Return the rays that are worth following, given how often each position is to be squared.

        Multiplying adds up the rounding of as many rotations as the multiple says. That is what squaring does as well,
        unless the root turns by less than a radian or so: such rotations are better computed.
        """
        waves, roots = [], [self.roots]
        for wave in self.waves:
            good = 1.25 * torch.exp2(levels[wave.target]) >= wave.multiple
            waves.append(Wave(*(part[good] for part in wave)))
            roots.append(wave.target[~good])
        return Rays(torch.cat(roots), waves)


_recent: list[tuple[Tensor, Rays | None]] = []
_lock = threading.Lock()


def find_rays(positions: Tensor) -> Rays | None:
    """Return the rays of positions `[tokens, ndim]` in host memory, or None if there are none.

    A position counts as a multiple if it is one up to the rounding of its coordinates. The answer is remembered.

    Example:
        >>> rays = find_rays(torch.tensor([[0.0], [1.0], [2.0], [3.0]]))
        >>> rays.roots, rays.waves[0].target, rays.waves[0].left
        (tensor([0, 1]), tensor([2]), tensor([1]))
    """
    if positions.shape[0] > MAX_POSITIONS:
        return None
    with _lock:
        for index, (known, rays) in enumerate(_recent):
            if known.dtype == positions.dtype and torch.equal(known, positions):
                _recent.insert(0, _recent.pop(index))
                return rays
    rays = _find(positions)
    with _lock:
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
    waves: dict[tuple[int, int], list[tuple[int, int, int, int]]] = defaultdict(list)
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
                waves[(multiple - 1).bit_length(), multiple % 2].append((index, found[more], found[less], multiple))
    if not waves:
        return None
    derived = {target for wave in waves.values() for target, *_ in wave}
    roots = torch.tensor([index for index in range(len(points)) if index not in derived])
    ordered = [waves[wave] for wave in sorted(waves)]
    return Rays(roots, [Wave(*map(torch.tensor, zip(*wave, strict=True))) for wave in ordered])
