"""How often a matrix has to be halved before the polynomial is accurate, and its exponential squared afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from liere.errors import InputError
from liere.rotations.polynomial import POLYNOMIALS, Polynomial

__all__ = [
    "MAX_NORM",
    "Chunk",
    "LargeNormError",
    "Segment",
    "check_norms",
    "cut_chunks",
    "level",
    "levels",
    "max_level",
    "skew_norm",
    "small_squarings",
    "sort_by_level",
]

MAX_NORM = 2.0**20
"""Largest supported spectral norm; larger ones raise an error where norms can be read: on CPU, except while tracing."""


def skew_norm(X: Tensor) -> Tensor:
    """Return a bound on the spectral norms of skew matrices `[..., b, b]`, whose singular values come in pairs."""
    return torch.linalg.matrix_norm(X.detach()) / math.sqrt(2)


def level(norm: float, p: Polynomial) -> int:
    """Return the number of squarings required by one norm."""
    return max(0, math.ceil(math.log2(norm / p.radius))) if norm > 0 else 0


def levels(norms: Tensor, p: Polynomial) -> Tensor:
    """Return the number of squarings required by each norm, as floating-point numbers; 0 for NaN."""
    return torch.log2(norms / p.radius).ceil().nan_to_num(nan=0.0).clamp(min=0)


def max_level(size: int, dtype: torch.dtype) -> int:
    """Return the number of squarings at `MAX_NORM` for matrices of this size whose planes all rotate by one angle."""
    return level(MAX_NORM * max(1.0, math.sqrt(size / 2)), POLYNOMIALS[dtype])


def small_squarings(size: int, dtype: torch.dtype) -> int:
    """Return how many of the first squarings are computed on `R - I`, since `R` may be close to the identity.

    The bound used for scaling exceeds the spectral norm by up to a factor of `sqrt(size / 2)`, if all planes rotate by
    the same angle: then a matrix is halved more often than necessary, and `R` starts close to the identity. There a
    product rounds a diagonal near 1, and every later squaring doubles that error. The entries of `R - I` are small, and
    so are their rounding errors.

    In fp32 the radius of the polynomial is five times as large, so the gain would not justify the cost: always 0.
    """
    return level(math.sqrt(size / 2), POLYNOMIALS[dtype]) if dtype == torch.float64 else 0


class LargeNormError(InputError):
    """Matrices are so large that rounding errors dominate their exponentials.

    Args:
        norm: The largest spectral norm.
        what: What has this norm, as the beginning of the message.
        remedy: How to make it smaller, as the end of the message.
    """

    def __init__(self, norm: float, what: str = "X has", remedy: str = "scale X down") -> None:
        super().__init__(f"{what} norm {norm:.3g}, but beyond {MAX_NORM:.3g} rotations lose all precision: {remedy}")
        self.norm = norm


def check_norms(bounds: Tensor, matrices: Callable[[Tensor], Tensor]) -> None:
    """Raise `LargeNormError` if a spectral norm exceeds `MAX_NORM`.

    Args:
        bounds: Upper bounds on the norms. The norms themselves are computed only where these are too large.
        matrices: Function that returns the skew matrices selected by a mask.
    """
    large = bounds > MAX_NORM
    if not large.any():
        return
    norm = torch.linalg.matrix_norm(matrices(large).detach().double().nan_to_num(posinf=1e300, neginf=-1e300), ord=2)
    if norm.max() > MAX_NORM:
        raise LargeNormError(norm.max().item())


class Segment(NamedTuple):
    """Members `start` to `stop` of a chunk, all squared `level` times."""

    level: int
    start: int
    stop: int


class Chunk(NamedTuple):
    """Members that are computed together, and their numbers of squarings in ascending order."""

    members: slice
    segments: list[Segment]

    @property
    def size(self) -> int:
        """Number of members."""
        return self.members.stop - self.members.start


def sort_by_level(levels: Tensor) -> Tensor | None:
    """Return the order that sorts levels, or None if all are the same."""
    return None if not levels.numel() or bool((levels == levels[0]).all()) else levels.argsort(stable=True)


def cut_chunks(levels: Tensor, size: int) -> list[Chunk]:
    """Cut members into chunks of at most `size`, with a segment for each level, so that none is squared too often.

    Example:
        >>> cut_chunks(torch.tensor([3, 0, 3]), 2)[0].segments
        [Segment(level=0, start=0, stop=1), Segment(level=3, start=1, stop=2)]
    """
    counts = torch.bincount(levels.to(torch.int64)).tolist()
    chunks = [Chunk(slice(start, min(start + size, len(levels))), []) for start in range(0, len(levels), size)]
    first = 0
    for this_level, count in enumerate(counts):
        last = first + count
        for chunk in chunks[first // size : -(-last // size)] if count else ():
            start, stop = max(first, chunk.members.start), min(last, chunk.members.stop)
            chunk.segments.append(Segment(this_level, start - chunk.members.start, stop - chunk.members.start))
        first = last
    return chunks
