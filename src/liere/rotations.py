"""Rotations: the exponential of skew-symmetric matrices, and rotating queries and keys by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor

from liere.shapes import Float
from liere.tracing import values_are_visible

__all__ = ["apply_rotations", "check_shapes", "exp_products", "exp_skew"]

# The Taylor polynomial is used up to this norm, where the degree below makes its remainder less than an eps.
TAYLOR_RADIUS = 0.5
TAYLOR_DEGREE = {torch.float32: 8, torch.float64: 14}
# Larger matrices are refused. Where norms cannot be looked at (tracing), all are taken to be that large.
MAX_NORM = 2.0**20


def exp_skew(X: Float[Tensor, "*batch b b"]) -> Float[Tensor, "*batch b b"]:
    """Return the rotations `exp(X)` of skew-symmetric matrices.

    Closed forms for 2x2 (cosine and sine) and 3x3 (Rodrigues), scaling and squaring of `exp(X) - I` for larger
    ones. Computed in fp32, or fp64 for fp64 input, whatever the autocast state; half precision is cast back.
    Differentiable, also twice; defined on skew matrices, so gradients are meaningful on that space only.

    Args:
        X: Skew-symmetric matrices.

    Returns:
        Rotation matrices of the shape and dtype of `X`.

    Raises:
        TypeError: If `X` is not a floating-point tensor.
        ValueError: If `X` is not a batch of square matrices, or (b > 2, not while tracing) of a norm beyond `2**20`.

    Example:
        >>> exp_skew(torch.tensor([[0.0, math.pi / 2], [-math.pi / 2, 0.0]])).round(decimals=3)
        tensor([[-0.,  1.],
                [-1., -0.]])
    """
    if not isinstance(X, Tensor) or not X.is_floating_point():
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise TypeError(f"X must be a floating-point tensor of skew matrices, got {kind}: convert it with .float()")
    if X.ndim < 2 or X.shape[-1] != X.shape[-2]:
        raise ValueError(f"X has shape {list(X.shape)}: give skew-symmetric matrices [..., b, b]")
    size = X.shape[-1]
    with torch.autocast(X.device.type, enabled=False) if X.device.type != "meta" else nullcontext():
        wide = X if X.dtype in TAYLOR_DEGREE else X.float()
        closed_form: dict[int, Callable[[Tensor], Tensor]] = {
            0: torch.ones_like,
            1: torch.ones_like,
            2: _exp_2x2,
            3: _exp_3x3,
        }
        return closed_form.get(size, _exp_taylor)(wide).to(X.dtype)


def exp_products(norm: float, size: int, dtype: torch.dtype = torch.float32) -> int:
    """Return how many matrix products `exp_skew` makes for `size` x `size` matrices of this norm at most.

    The norm is the one that `exp_skew` scales by: Frobenius, divided by sqrt(2).

    Example:
        >>> exp_products(262.0, 64), exp_products(262.0, 3), exp_products(262.0, 2)
        (17, 1, 0)
    """
    if size <= 3:
        return 1 if size == 3 else 0
    return TAYLOR_DEGREE[dtype] - 1 + _squarings(norm)


def _exp_2x2(X: Tensor) -> Tensor:
    angle = X[..., 0, 1]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))


def _exp_3x3(X: Tensor) -> Tensor:
    if values_are_visible(X):
        _largest_norm(X)  # refuses what is too large
    # exp(X) = I + sin(t)/t X + (1 - cos t)/t^2 X^2. Both factors are smooth functions of t^2, by their series near 0.
    square = X[..., 0, 1] ** 2 + X[..., 0, 2] ** 2 + X[..., 1, 2] ** 2
    near = square < 1
    angle = torch.where(near, 1, square).sqrt()
    series = torch.where(near, square, 0)
    first, second = torch.ones_like(series), torch.full_like(series, 0.5)
    sine, cosine = first, second
    for k in range(1, 10):
        first = -first * series / (2 * k * (2 * k + 1))
        second = -second * series / ((2 * k + 1) * (2 * k + 2))
        sine, cosine = sine + first, cosine + second
    sine = torch.where(near, sine, angle.sin() / angle)
    cosine = torch.where(near, cosine, 2 * ((angle / 2).sin() / angle) ** 2)
    identity = torch.eye(3, dtype=X.dtype, device=X.device)
    return identity + sine[..., None, None] * X + cosine[..., None, None] * (X @ X)


def _exp_taylor(X: Tensor) -> Tensor:
    """Scale to norm 1/2, take the Taylor polynomial, square back.

    All on `E = exp(X) - I`, which keeps the digits of small rotations: `(I + E)^2 - I = 2E + E^2`. So it does no harm
    that all matrices are squared as often as the largest one asks for.
    """
    batch, size, degree = X.shape[:-2], X.shape[-1], TAYLOR_DEGREE[X.dtype]
    squarings = _squarings(_largest_norm(X)) if values_are_visible(X) else _squarings(MAX_NORM)
    X = X.reshape(-1, size, size) * 2.0**-squarings
    E = X / degree
    for k in range(degree - 1, 0, -1):
        E = torch.baddbmm(X, X, E, beta=1 / k, alpha=1 / k)  # (X + X E) / k
    for _ in range(squarings):
        E = torch.baddbmm(E, E, E, beta=2)
    return (E + torch.eye(size, dtype=X.dtype, device=X.device)).reshape(*batch, size, size)


def _largest_norm(X: Tensor) -> float:
    """Return a bound of the spectral norms: singular values of a skew matrix come in pairs. NaN counts as 0."""
    if not X.numel():
        return 0.0
    norm = (torch.linalg.matrix_norm(X.detach()).nan_to_num(nan=0.0).amax() / math.sqrt(2)).item()
    if norm > MAX_NORM:
        raise ValueError(
            f"X has norm {norm:.3g}, but beyond {MAX_NORM:.3g} a rotation has no digits left: "
            "use smaller positions or generators (init_scale)"
        )
    return norm


def _squarings(norm: float) -> int:
    return max(0, math.ceil(math.log2(norm / TAYLOR_RADIUS))) if norm > 0 else 0


def apply_rotations(
    x: Float[Tensor, "*batch heads tokens head_dim"],
    rotations: Float[Tensor, "*#batch #heads positions blocks b b"],
    *,
    num_prefix_tokens: int = 0,
) -> Float[Tensor, "*batch heads tokens head_dim"]:
    """Rotate queries or keys: block `n` of token `t` of head `h` becomes `rotations[h, t, n] @ block`.

    Args:
        x: Queries or keys.
        rotations: One rotation a head, token and block. A batch dimension is optional, and one head serves all.
        num_prefix_tokens: Leading tokens without a position (CLS, registers), left as they are.

    Returns:
        A tensor of the shape and dtype of `x`. Dimensions beyond `blocks * b` are left as they are.

    Raises:
        TypeError: If `x` is not a floating-point tensor.
        ValueError: If the shapes do not fit together.

    Example:
        >>> q = torch.randn(2, 4, 1 + 9, 16)
        >>> quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).expand(4, 9, 8, 2, 2)
        >>> rotated = apply_rotations(q, quarter_turn, num_prefix_tokens=1)
        >>> torch.equal(rotated[..., 1:, 0], q[..., 1:, 1])
        True
    """
    check_shapes(x, rotations, num_prefix_tokens)
    blocks, size = rotations.shape[-3], rotations.shape[-1]
    prefix, body = x[..., :num_prefix_tokens, :], x[..., num_prefix_tokens:, :]
    vectors, rest = body[..., : blocks * size].unflatten(-1, (blocks, size)), body[..., blocks * size :]
    # Where rotations have no batch dimension, einsum makes the batch the columns of one product.
    rotated = torch.einsum("...htnij,...htnj->...htni", rotations.to(x.dtype), vectors).flatten(-2).to(x.dtype)
    if rest.shape[-1]:
        rotated = torch.cat([rotated, rest], dim=-1)
    return torch.cat([prefix, rotated], dim=-2) if num_prefix_tokens else rotated


def check_shapes(x: Tensor, rotations: Tensor, num_prefix_tokens: int, *, name: str = "x") -> None:
    """Raise `TypeError` or `ValueError` unless the rotations fit the queries or keys that are called `name`."""
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}: convert it with .float()")
    if x.ndim < 3 or rotations.ndim < 5 or rotations.shape[-1] != rotations.shape[-2]:
        raise ValueError(
            f"{name} has shape {list(x.shape)} and rotations {list(rotations.shape)}: "
            "give [*batch, heads, tokens, head_dim] and [*batch, heads, tokens, blocks, b, b]"
        )
    *batch, heads, tokens, head_dim = x.shape
    *rotation_batch, rotation_heads, positions, blocks, size, _ = rotations.shape
    if not 0 <= num_prefix_tokens <= tokens:
        raise ValueError(
            f"num_prefix_tokens must be between 0 and the {tokens} tokens of {name}, got {num_prefix_tokens}"
        )
    if positions != tokens - num_prefix_tokens:
        raise ValueError(
            f"{name} has {tokens} tokens, num_prefix_tokens={num_prefix_tokens} of them without a position, but there "
            f"are {positions} positions: give {tokens - num_prefix_tokens}, or another number of prefix tokens, "
            f"and {name} as [batch, heads, tokens, head_dim]"
        )
    if rotation_heads != 1 and rotation_heads != heads:  # `in` would not do for symbolic sizes
        raise ValueError(
            f"rotations are for {rotation_heads} heads, but {name} has {heads}: build the encoding with "
            f"num_heads={heads}, or with share_heads=True where queries and keys have different numbers of heads"
        )
    if blocks * size > head_dim:
        raise ValueError(f"{blocks} blocks of {size} need a head of {blocks * size}, but {name} has {head_dim}")
    aligned = zip(reversed(rotation_batch), reversed(batch), strict=False)
    if len(rotation_batch) > len(batch) or any(mine != 1 and mine != theirs for mine, theirs in aligned):
        raise ValueError(
            f"positions have batch shape {rotation_batch}, but {name} has {batch}: "
            "give one set of positions for the whole batch, or one for each member"
        )
