"""How a rotation of vectors is cut into steps: `exp(X) v` as `m` steps by `R`, where `R = exp(X / (m 2^k))^(2^k)`.

Squaring a matrix takes as many operations as a step of `b` vectors. Where only a few vectors meet a rotation (a query
and a key), a few more steps are cheaper than another squaring, which costs most in the backward pass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Group", "Steps", "choose_steps", "group_tokens"]

# Tokens of fewer steps are put together with those of up to twice as many, until so many are together.
ENOUGH_TOKENS = 512


class Steps(NamedTuple):
    """How the exponential of a matrix meets vectors."""

    squarings: int
    steps: int

    @property
    def scale(self) -> int:
        """What matrices are divided by."""
        return self.steps * 2**self.squarings


class Group(NamedTuple):
    """Tokens that take the same steps."""

    steps: Steps
    tokens: Tensor


def choose_steps(largest: float, size: int, vectors: int) -> list[Steps]:
    """Return the steps that are worth taking, in ascending order of their scales, which reach at least `largest`.

    Args:
        largest: What the largest matrix has to be divided by.
        size: Size of the matrices.
        vectors: How many vectors meet each matrix.

    Example:
        >>> [steps.scale for steps in choose_steps(20.0, size=8, vectors=2)]
        [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20]
    """
    vectors = max(1, vectors)
    most = max(0, math.ceil(math.log2(max(1.0, largest))))
    longest = max(2, 2 * size // vectors + 1)  # beyond it, half of the steps and a squaring take less
    candidates = [Steps(squarings, steps) for squarings in range(most + 1) for steps in range(1, longest + 1)]
    chosen: list[Steps] = []
    least = math.inf
    for steps in sorted(candidates, key=lambda s: (-s.scale, _cost(s, size, vectors))):
        if _cost(steps, size, vectors) < least:
            chosen.append(steps)
            least = _cost(steps, size, vectors)
    enough = sum(steps.scale >= largest for steps in chosen)  # of these, the first is the smallest that will do
    return chosen[enough - 1 :][::-1]


def _cost(steps: Steps, size: int, vectors: int) -> int:
    """Return the products of a matrix and a vector that steps take."""
    return size * steps.squarings + vectors * steps.steps


def group_tokens(ratios: Tensor, size: int, vectors: int) -> list[Group]:
    """Return which tokens take which steps.

    Args:
        ratios: What the matrices of each token have to be divided by, `[tokens]`, in host memory.
        size: Size of the matrices.
        vectors: How many vectors meet each matrix.
    """
    if not len(ratios):
        return []
    choice = choose_steps(ratios.max().item(), size, vectors)
    scales = torch.tensor([steps.scale for steps in choice], dtype=ratios.dtype)
    own = torch.bucketize(ratios, scales)  # the first scale that is large enough
    order = own.argsort(stable=True)
    parts = list(zip(choice, order.split(torch.bincount(own, minlength=len(choice)).tolist()), strict=True))
    groups: list[tuple[Steps, list[Tensor]]] = []
    for steps, tokens in reversed(parts):
        if not len(tokens):
            continue
        if groups and 2 * steps.scale >= groups[-1][0].scale and sum(map(len, groups[-1][1])) < ENOUGH_TOKENS:
            groups[-1][1].append(tokens)
        else:
            groups.append((steps, [tokens]))
    # In ascending order, tokens are read and written from the front of memory to its end.
    return [Group(steps, torch.cat(tokens).sort().values) for steps, tokens in groups]
