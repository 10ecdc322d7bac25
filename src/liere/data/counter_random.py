"""Random numbers that are functions of their place: any of them can be had without those before it."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.shapes import Int

__all__ = ["combine", "random_below", "random_bits"]


def _signed(bits: int) -> int:
    """Return 64 bits as the int64 that they are."""
    return bits - (1 << 64) if bits >> 63 else bits


# SplitMix64 (Steele, Lea, Flood 2014). int64 products wrap around as those of unsigned ones do.
_STEP = _signed(0x9E3779B97F4A7C15)
_FACTORS = (_signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB))
_SHIFTS = (30, 27, 31)


def _mix(x: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Scramble integers so that every bit depends on every bit."""
    for shift, factor in zip(_SHIFTS, (*_FACTORS, 1), strict=True):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return x


def combine(start: Int[Tensor, "..."], *counters: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Return 64-bit integers that depend on all arguments, elementwise (they broadcast), and look unrelated for others.

    Example:
        >>> one, two = combine(torch.tensor(0), torch.tensor([7, 8]))
        >>> bool(one == combine(torch.tensor(0), torch.tensor(7))), bool(one == two)
        (True, False)
    """
    for counter in counters:
        start = _mix(start + _STEP + _mix(counter + _STEP))
    return start


def random_bits(start: Int[Tensor, "batch"], count: int) -> Int[Tensor, "batch {count}"]:
    """Return `count` times 64 bits for each start: the SplitMix64 sequence that begins there."""
    return _mix(start[:, None] + torch.arange(1, count + 1) * _STEP)


def random_below(bits: Int[Tensor, "..."], bound: int | Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Return whole numbers from 0 to `bound` - 1; 48 bits make the bias too small to be seen for bounds below 2**20."""
    return ((bits >> 16) & ((1 << 48) - 1)) % bound
