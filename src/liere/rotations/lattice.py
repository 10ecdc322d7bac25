"""Positions on rays from the origin: the ray of each position, and its multiple of the ray's unit.

If positions are a window of a lattice through the origin (a grid, possibly moved by whole steps), the answer is integer
arithmetic: a point is the greatest common divisor of its coordinates times a primitive direction. Other positions are
searched, unless a vectorized test shows that none is twice another, which every ray found by the search begins with.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Lines", "find_lines"]

# The search is slow, and larger sets of positions are rarely on rays unless they are a grid.
MAX_SEARCHED = 4096
# Allowed relative error, in eps: coordinates of a moved grid are sums and products of rounded numbers.
GRID_ROUNDING = 2.0


class Lines(NamedTuple):
    """Rays that contain at least two positions."""

    ray: Tensor
    """Index of the ray of each position, `[tokens]`; -1 for none."""
    multiple: Tensor
    """Multiple of the unit of its ray for each position, `[tokens]`."""
    low: Tensor
    """Lowest multiple of each ray, `[rays]`."""
    high: Tensor
    """Highest multiple of each ray, `[rays]`."""
    last: Tensor
    """Index of the position with the highest multiple of each ray, `[rays]`."""


def find_lines(positions: Tensor) -> Lines | None:
    """Return the rays of positions `[tokens, ndim]` in host memory, or None if no two positions share one.

    Each ray either has every multiple between its lowest and highest (a window), or its lowest multiple is 1 and it has
    both halves of each multiple (a search). Identical positions that precede a window, like those of CLS and registers
    in its center, are on no ray.
    """
    if positions.numel() == 0:
        return None
    points, eps = positions.detach().double(), torch.finfo(positions.dtype).eps
    ahead = int((points == points[0]).all(-1).to(torch.int64).cumprod(0).sum())
    for start in (0, ahead):
        integers = _window_integers(points[start:], eps)
        if integers is not None:
            return _window_lines(integers, start)
    if len(points) > MAX_SEARCHED or not _any_doubled(points, eps):
        return None
    return _search(points, eps)


def _window_integers(points: Tensor, eps: float) -> Tensor | None:
    """Return points as integers `[tokens, ndim]` of a lattice through the origin if they fill a window of it."""
    axes = [column.unique(return_inverse=True) for column in points.unbind(-1)]
    if not len(points) or math.prod(len(values) for values, _ in axes) != len(points):
        return None
    place = torch.zeros(len(points), dtype=torch.int64)
    for values, index in axes:
        place = place * len(values) + index
    if bool((place.bincount(minlength=len(points)) != 1).any()):
        return None
    steps = [_steps(values, eps) for values, _ in axes]
    columns = [own[index] for own, (_, index) in zip(steps, axes, strict=True) if own is not None]
    return torch.stack(columns, dim=-1) if len(columns) == len(axes) else None


def _steps(values: Tensor, eps: float) -> Tensor | None:
    """Return ascending coordinates as consecutive multiples of a common spacing, or None if they are not."""
    if len(values) == 1:  # any spacing works, and no two points share a ray unless this is 0
        return (values != 0).to(torch.int64)
    steps = (values / ((values[-1] - values[0]) / (len(values) - 1))).round()
    spacing = (values @ steps) / (steps @ steps)
    consecutive = bool((steps.diff() == 1).all()) and float(steps.abs().amax()) < 2**31
    close = (values - spacing * steps).abs() <= GRID_ROUNDING * eps * values.abs()
    return steps.to(torch.int64) if consecutive and bool(close.all()) else None


def _window_lines(integers: Tensor, start: int) -> Lines | None:
    """Return the rays of a window whose first point is position `start`."""
    multiple = functools.reduce(torch.gcd, integers.unbind(-1)).abs()
    directions = integers // multiple.clamp(min=1)[:, None]
    _, ray = directions.unique(dim=0, return_inverse=True)
    ray = torch.where(multiple > 0, ray, -1)
    before = torch.full((start,), -1)
    return _make_lines(torch.cat([before, ray]), torch.cat([before, multiple]))


def _make_lines(ray: Tensor, multiple: Tensor) -> Lines | None:
    """Return the rays of positions, without those that contain only one."""
    on = (ray >= 0).nonzero().flatten()
    counts = ray[on].bincount()
    shared = counts > 1
    if not bool(shared.any()):
        return None
    number = torch.where(shared, shared.cumsum(0) - 1, -1)
    ray = ray.clone()
    ray[on] = number[ray[on]]
    on = (ray >= 0).nonzero().flatten()
    on = on[multiple[on].argsort(stable=True)]
    on = on[ray[on].argsort(stable=True)]
    ends = counts[shared].cumsum(0)
    first, last = on[ends - counts[shared]], on[ends - 1]
    return Lines(ray, torch.where(ray >= 0, multiple, 0), multiple[first], multiple[last], last)


def _any_doubled(points: Tensor, eps: float) -> bool:
    """Return whether twice some point may be another one, up to rounding: every axis has such a coordinate."""
    possible = (points != 0).any(-1) & points.isfinite().all(-1)
    for column in points.unbind(-1):
        values = column.sort().values
        doubled = 2 * column
        after = torch.searchsorted(values, doubled).clamp(max=len(values) - 1)
        around = torch.stack([values[after], values[(after - 1).clamp(min=0)]])
        possible &= ((around - doubled).abs() <= 2 * eps * doubled.abs()).any(0)
    return bool(possible.any())


def _search(positions: Tensor, eps: float) -> Lines | None:
    """Return the rays of arbitrary points; a multiple counts only if both of its halves do."""
    points: list[list[float]] = positions.tolist()
    lengths = [math.hypot(*p) for p in points]
    directions = defaultdict(list)
    for index, (p, length) in enumerate(zip(points, lengths, strict=True)):
        if length > 0 and math.isfinite(length):
            directions[tuple(round(c / length, 4) for c in p)].append(index)
    rays, multiples = [-1] * len(points), [0] * len(points)
    for number, ray in enumerate(directions.values()):
        ray.sort(key=lengths.__getitem__)
        root, found = ray[0], {1: ray[0]}
        for index in ray[1:]:
            multiple = round(lengths[index] / lengths[root])
            exact = all(
                abs(c - multiple * r) <= 1.5 * eps * abs(c) for c, r in zip(points[index], points[root], strict=True)
            )
            if exact and multiple not in found and (multiple + 1) // 2 in found and multiple // 2 in found:
                found[multiple] = index
        for multiple, index in found.items():
            rays[index], multiples[index] = number, multiple
    return _make_lines(torch.tensor(rays), torch.tensor(multiples))
