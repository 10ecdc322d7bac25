"""Rotations of a grid that are products of each other: along a ray from the origin, `R(m p) R(n p) = R((m + n) p)`.

Four in ten positions of a 2-D grid are a multiple of another one. Such a rotation costs one product instead of an
exponential, and its gradient two. A grid away from the origin has fewer multiples of its own positions, but if two of
them are on the same ray, both are multiples of a position outside the grid, which is computed as an extra position.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import torch
from torch import Tensor

from liere.rotations.lattice import Lines, find_lines

__all__ = ["Rays", "Wave", "find_rays"]

RECENT = 8
# A product for the multiple m accumulates the rounding errors of m rotations. So does squaring, unless the root rotates
# by less than about a radian: then computing the exponential is more accurate.
ALLOWANCE = 1.25
# Extra positions are looked up in a table of this width.
MAX_EXTRA_MULTIPLE = 256


class Wave(NamedTuple):
    """Products `R[target] = R[left] R[right]`, where no position is a target, left or right twice."""

    target: Tensor
    left: Tensor
    right: Tensor
    multiple: Tensor
    """The multiple of its root that each target is."""


class Extra(NamedTuple):
    """Additional positions, `positions[anchor] * factor`, numbered after the given ones."""

    anchor: Tensor
    factor: Tensor

    def extend(self, values: Tensor) -> Tensor:
        """Return values proportional to positions, `[tokens, ...]`, with those of the extra positions appended."""
        factor = self.factor.to(values).reshape(-1, *[1] * (values.ndim - 1))
        return torch.cat([values, values[self.anchor] * factor]) if len(self.anchor) else values


class Rays(NamedTuple):
    """Which rotations are computed as exponentials, and which follow from them as products."""

    roots: Tensor
    """Positions whose rotations are computed as exponentials."""
    waves: list[Wave]
    """Products, to be computed one wave after the other."""
    extra: Extra
    """Additional positions that the products need."""
    lines: Lines

    def with_extra(self, sizes: Tensor) -> Rays:
        """Return rays that may also begin at extra positions, where this saves exponentials.

        A ray whose lowest multiple is not 1 begins with its unit if the rotation angle of the unit is large enough.

        Args:
            sizes: Norm of each rotation's generator, as a multiple of the largest that needs no squaring, `[tokens]`.
        """
        _, _, low, high, last = self.lines
        large = ALLOWANCE * sizes[last] / high >= 1
        chosen = (large & (low > 1) & (high <= MAX_EXTRA_MULTIPLE)).nonzero().flatten()
        if not len(chosen):
            return self
        # The halves of all integers of a range, rounded up and down, are a range too.
        candidates = torch.arange(1, int(low[chosen].amax()))
        needed = torch.zeros(len(chosen), len(candidates), dtype=torch.bool)
        first, stop = low[chosen, None], high[chosen, None]
        for _ in range(MAX_EXTRA_MULTIPLE.bit_length()):
            first, stop = first // 2, (stop + 1) // 2
            needed |= (candidates >= first) & (candidates <= stop)
        row, column = (needed & (candidates < low[chosen, None])).nonzero(as_tuple=True)
        base = low.index_fill(0, chosen, 1)
        return _build(self.lines, base, chosen[row], candidates[column])

    def for_levels(self, levels: Tensor) -> Rays:
        """Return the rays worth following, given the number of squarings of each position, including extra ones."""
        waves, roots = [], [self.roots]
        for wave in self.waves:
            good = ALLOWANCE * torch.exp2(levels[wave.target]) >= wave.multiple
            waves.append(_choose(wave, good))
            roots.append(wave.target[~good])
        return self._replace(roots=torch.cat(roots), waves=waves)

    def of_extra(self) -> Rays:
        """Return the roots and products of the extra positions alone."""
        given = len(self.lines.ray)
        waves = [_choose(wave, wave.target >= given) for wave in self.waves]
        return self._replace(roots=self.roots[self.roots >= given], waves=waves)


def _choose(wave: Wave, which: Tensor) -> Wave:
    return Wave(*(part[which] for part in wave))


_recent: list[tuple[Tensor, Rays | None]] = []
_lock = threading.Lock()


def find_rays(positions: Tensor) -> Rays | None:
    """Return the rays of positions `[tokens, ndim]` in host memory, or None if there are none.

    A position counts as a multiple if it is one up to the rounding of its coordinates. Recent answers are cached.

    Example:
        >>> rays = find_rays(torch.tensor([[0.0], [1.0], [2.0], [3.0]]))
        >>> rays.roots, rays.waves[0].target, rays.waves[0].left
        (tensor([0, 1]), tensor([2]), tensor([1]))
    """
    with _lock:
        for index, (known, rays) in enumerate(_recent):
            if known.dtype == positions.dtype and torch.equal(known, positions):
                _recent.insert(0, _recent.pop(index))
                return rays
    with torch.inference_mode(False):  # the cached tensors are also used in training
        lines = find_lines(positions)
        nothing = torch.zeros(0, dtype=torch.int64)
        rays = None if lines is None else _build(lines, lines.low, nothing, nothing)
    with _lock:
        _recent.insert(0, (positions.detach().clone(), rays))
        del _recent[RECENT:]
    return rays


def _build(lines: Lines, base: Tensor, extra_ray: Tensor, extra_multiple: Tensor) -> Rays:
    """Return the rays whose roots are the multiples `base` of the units, given all necessary extra positions."""
    ray, multiple = torch.cat([lines.ray, extra_ray]), torch.cat([lines.multiple, extra_multiple])
    on = (ray >= 0).nonzero().flatten()
    stride = int(lines.high.amax()) + 1
    keys, order = (ray[on] * stride + multiple[on]).sort()

    def find(rays: Tensor, multiples: Tensor) -> Tensor:
        return on[order[torch.searchsorted(keys, rays * stride + multiples)]]

    own_base = base[ray[on]]
    quotient = multiple[on] // own_base
    derived = (quotient > 1) & (quotient * own_base == multiple[on])
    target, quotient, own_base = on[derived], quotient[derived], own_base[derived]
    own_ray = ray[target]
    steps = Wave(
        target, find(own_ray, (quotient + 1) // 2 * own_base), find(own_ray, quotient // 2 * own_base), quotient
    )
    # A multiple comes after its halves, and even multiples are separate from odd ones, so that no half occurs twice.
    turn = 2 * torch.frexp((quotient - 1).double()).exponent + quotient % 2
    turns, sequence = turn.sort(stable=True)
    sizes = turns.unique_consecutive(return_counts=True)[1].tolist()
    waves = [Wave(*parts) for parts in zip(*(part[sequence].split(sizes) for part in steps), strict=True)]
    is_root = torch.ones(len(ray), dtype=torch.bool).index_fill(0, target, False)
    last, high = lines.last[extra_ray], lines.high[extra_ray]
    return Rays(is_root.nonzero().flatten(), waves, Extra(last, extra_multiple.double() / high), lines)
