"""Rotation of queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.errors import InputError, InputTypeError
from liere.rotations.operators import rotate_each_operator, rotate_operator, rotate_planes_operator
from liere.rotations.plain import rotate_plainly
from liere.shapes import Float
from liere.tracing import kernels_may_run

__all__ = ["apply_rotations", "check_shapes", "rotate_together"]


# On a GPU, a compiler fuses the closed forms of these blocks with what comes before and after. By the count of `liere
# bench gpu`, blocks of 2 then take less than half of the time. For larger blocks nothing is gained: the products are
# kernels of their own in any case, and a compiler would store every squaring for the backward pass.
FUSED_UP_TO = 3


def apply_rotations(
    x: Float[Tensor, "*batch heads tokens head_dim"],
    rotations: Float[Tensor, "*#batch #heads positions blocks b b"],
    *,
    num_prefix_tokens: int = 0,
) -> Float[Tensor, "*batch heads tokens head_dim"]:
    """Rotate queries or keys: block `n` of token `t` of head `h` becomes `rotations[h, t, n] @ block`.

    Args:
        x: Queries or keys.
        rotations: One rotation per head, token and block. Batch dimensions are optional, and a single head is
            broadcast to all heads.
        num_prefix_tokens: Number of leading tokens without a position (CLS, registers), which are not rotated.

    Returns:
        A tensor of the shape and dtype of `x`. Dimensions beyond `blocks * b` are not rotated.

    Raises:
        TypeError: If `x` is not a floating-point tensor.
        ValueError: If the shapes do not match.

    Example:
        >>> q = torch.randn(2, 4, 1 + 9, 16)
        >>> quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).expand(4, 9, 8, 2, 2)
        >>> rotated = apply_rotations(q, quarter_turn, num_prefix_tokens=1)
        >>> torch.equal(rotated[..., 1:, 0], q[..., 1:, 1])
        True
    """
    check_shapes(x, rotations, num_prefix_tokens)
    rotations = rotations.to(x.dtype)
    return _rotate([x], rotations, num_prefix_tokens)[0]


def rotate_together(
    xs: list[Float[Tensor, "*batch heads tokens head_dim"]],
    rotations: Float[Tensor, "*#batch #heads positions blocks b b"],
    num_prefix_tokens: int = 0,
) -> list[Float[Tensor, "*batch heads tokens head_dim"]]:
    """Rotate several tensors of the same shape, such as queries and keys, together.

    The matrices are assumed to be rotations: only the first column of 2x2 matrices is read and receives a gradient.
    """
    check_shapes(xs[0], rotations, num_prefix_tokens)
    x, rotations = xs[0], rotations.to(xs[0].dtype)
    if rotations.shape[-1] <= FUSED_UP_TO and x.device.type != "cpu" and torch.compiler.is_compiling():
        return [rotate_plainly(x, rotations, num_prefix_tokens) for x in xs]
    planes = rotations.shape[-1] == 2 and x.shape[-1] % 2 == 0 and x.dtype in (torch.float32, torch.float64)
    if planes and kernels_may_run(*xs, rotations):
        return rotate_planes_operator(xs, rotations, num_prefix_tokens)
    return _rotate(xs, rotations, num_prefix_tokens)


def _rotate(xs: list[Tensor], rotations: Tensor, num_prefix_tokens: int) -> list[Tensor]:
    if kernels_may_run(*xs, rotations):
        if _is_shared(rotations):
            return rotate_operator(xs, _drop_batch(rotations), num_prefix_tokens)
        if rotations.device.type == "cpu":
            batch = xs[0].ndim - 3
            rotations = rotations[(None,) * (batch - (rotations.ndim - 5))]
            return rotate_each_operator(xs, rotations, num_prefix_tokens)
    return [rotate_plainly(x, rotations, num_prefix_tokens) for x in xs]


def _is_shared(rotations: Tensor) -> bool:
    """Return whether the whole batch shares one set of rotations."""
    return all(size == 1 for size in rotations.shape[:-5])


def _drop_batch(rotations: Tensor) -> Tensor:
    return rotations.reshape(rotations.shape[-5:])


def _fits(own: list[int], batch: list[int]) -> bool:
    """Return whether a batch shape can be broadcast to another one; a loop, because torch 2.7 cannot trace `any`."""
    if len(own) > len(batch):
        return False
    for mine, theirs in zip(own, batch[len(batch) - len(own) :], strict=True):
        if mine != 1 and mine != theirs:
            return False
    return True


def check_shapes(
    x: Tensor,
    rotations: Tensor,
    num_prefix_tokens: int,
    *,
    name: str = "x",
    prefix_name: str = "num_prefix_tokens",
    positions_name: str = "positions",
) -> None:
    """Raise `TypeError` or `ValueError` unless the rotations fit the queries or keys.

    Args:
        x: Queries or keys.
        rotations: Their rotations.
        num_prefix_tokens: Number of leading tokens without a rotation.
        name: Name of `x` in error messages.
        prefix_name: Name of `num_prefix_tokens` in error messages.
        positions_name: Name of the positions in error messages.
    """
    if x.is_nested or rotations.is_nested:
        raise InputTypeError(
            f"{name if x.is_nested else 'rotations'} is a nested tensor, which only rope(q, k, positions) takes: use "
            "that, or pass the .values() of all sequences one after another"
        )
    if not x.is_floating_point():
        raise InputTypeError(f"{name} must hold floating-point numbers, got {x.dtype}: convert it with .float()")
    if x.ndim < 3 or rotations.ndim < 5 or rotations.shape[-1] != rotations.shape[-2]:
        raise InputError(
            f"{name} has shape {list(x.shape)} and rotations {list(rotations.shape)}: "
            "give [*batch, heads, tokens, head_dim] and [*batch, heads, tokens, blocks, b, b]"
        )
    *batch, heads, tokens, head_dim = x.shape
    *rotation_batch, rotation_heads, positions, blocks, size, _ = rotations.shape
    if not 0 <= num_prefix_tokens <= tokens:
        raise InputError(f"{prefix_name} must be between 0 and the {tokens} tokens of {name}, got {num_prefix_tokens}")
    if positions != tokens - num_prefix_tokens:
        raise InputError(
            f"{name} has {tokens} tokens, {prefix_name}={num_prefix_tokens} of them without a position, but there "
            f"are {positions} positions: pass {tokens - num_prefix_tokens} as {positions_name}, or another "
            f"{prefix_name}, and {name} as [batch, heads, tokens, head_dim]"
        )
    if rotation_heads != 1 and rotation_heads != heads:  # `in` does not work for symbolic sizes
        raise InputError(
            f"rotations are for {rotation_heads} heads, but {name} has {heads}: build the encoding with "
            f"num_heads={heads}, or with share_heads=True if queries and keys have different numbers of heads"
        )
    if blocks * size > head_dim:
        raise InputError(f"{blocks} blocks of size {size} need head_dim {blocks * size}, but {name} has {head_dim}")
    if not _fits(rotation_batch, batch):
        raise InputError(
            f"{positions_name} have batch shape {rotation_batch}, but {name} has {batch}: "
            "give one set of positions for the whole batch, or one per example"
        )
