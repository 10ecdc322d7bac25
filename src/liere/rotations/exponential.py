"""The exponential of skew-symmetric matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from liere.errors import InputError, InputTypeError
from liere.generators import skew_at_positions
from liere.rotations.operators import exp_skew_operator, positions_operator
from liere.rotations.plain import exp_plainly
from liere.rotations.polynomial import POLYNOMIALS, PRODUCTS
from liere.rotations.position_kernels import position_norms
from liere.rotations.squarings import LargeNormError, check_norms, level, skew_norm
from liere.shapes import Float, Real
from liere.tracing import kernels_may_run, values_are_at_hand, without_autocast

__all__ = ["exp_products", "exp_skew", "norm_error_of_positions", "position_rotations"]

# Layers are computed together as long as their rotations take at most this many bytes.
TOGETHER = 2**24
OTHER_DEVICE_TOGETHER = 2**26


def exp_skew(X: Float[Tensor, "*batch b b"]) -> Float[Tensor, "*batch b b"]:
    """Return the rotations `exp(X)` of skew-symmetric matrices.

    2x2 matrices (cosine and sine) and 3x3 matrices (Rodrigues) use closed forms; larger ones use a polynomial, followed
    by as many squarings as the norm of each matrix requires. The computation runs in fp32, or in fp64 for fp64 input,
    regardless of autocast; half-precision results are cast back. The result is twice differentiable. The function is
    defined on skew matrices, so gradients are meaningful on that space only.

    In fp64, the error of each entry of `exp(X)` and of `exp(X) exp(X)^T` is at most `4 eps (1 + norm)`, where `norm` is
    the spectral norm of `X`; in fp32 it is at most `(4 + b / 16) eps (1 + norm)` and `(4 + b / 8) eps (1 + norm)`.
    These bounds were measured for b up to 128 and norms up to 1e4. Structured matrices whose entries have only a
    few magnitudes can exceed them: see `docs/explanation/mathematics.md`.

    Args:
        X: Skew-symmetric matrices.

    Returns:
        Rotation matrices of the shape and dtype of `X`.

    Raises:
        TypeError: If `X` is not a floating-point tensor.
        ValueError: If `X` is not a batch of square matrices, or if a spectral norm exceeds `2**20` (checked for b > 2
            on CPU, except while tracing; elsewhere such matrices may become NaN).

    Example:
        >>> import math
        >>> exp_skew(torch.tensor([[0.0, math.pi / 2], [-math.pi / 2, 0.0]])).round(decimals=3)
        tensor([[-0.,  1.],
                [-1., -0.]])
    """
    if not isinstance(X, Tensor) or not X.is_floating_point():
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise InputTypeError(
            f"X must be a floating-point tensor of skew matrices, got {kind}: convert it with .float()"
        )
    if X.ndim < 2 or X.shape[-1] != X.shape[-2]:
        raise InputError(f"X has shape {list(X.shape)}: give skew-symmetric matrices [..., b, b]")
    with without_autocast(X.device):
        wide = X if X.dtype in POLYNOMIALS else X.float()
        return CLOSED_FORMS.get(X.shape[-1], _exp_squaring)(wide).to(X.dtype)


def position_rotations(
    positions: Real[Tensor, "*batch tokens ndim"],
    generators: Float[Tensor, "layers ndim heads blocks b b"],
) -> Iterator[Float[Tensor, "*batch heads tokens blocks b b"]]:
    """Yield the rotations `exp(sum_d p_d A_d)` of each layer, in the dtype of the generators (fp32 or fp64).

    Equivalent to `exp_skew(skew_at_positions(positions, A))`, but does not store the sums and exploits the structure of
    the positions. On devices other than the CPU it reads no values, so it never waits for the device.

    The rotation of a position that is a multiple of another may be computed as a product, which accumulates rounding
    errors: in fp64, the error of each entry is at most `(4 + b / 4) eps (1 + norm)` for `R` and at most
    `(4 + b / 2) eps (1 + norm)` for `R R^T`, with the exception that `exp_skew` names.
    """
    try:
        yield from _rotations_by_layer(positions.to(generators.dtype), generators)
    except LargeNormError as error:
        raise norm_error_of_positions(error, positions) from None


def norm_error_of_positions(error: LargeNormError, positions: Tensor) -> LargeNormError:
    """Return an error that says what to change where matrices are sums of generators."""
    return LargeNormError(
        error.norm,
        f"positions of up to {positions.abs().max().item():.3g}, times generators, have",
        "use smaller positions or generators (init_scale)",
    )


def _rotations_by_layer(positions: Tensor, generators: Tensor) -> Iterator[Tensor]:
    if generators.shape[-1] in CLOSED_FORMS or positions.requires_grad or not kernels_may_run(positions, generators):
        for layer in generators:
            yield exp_skew(skew_at_positions(positions, layer))
        return
    flat = positions.reshape(-1, positions.shape[-1])
    matrices = generators.flatten(2, 3)
    with without_autocast(generators.device):
        norms = position_norms(flat, matrices) if values_are_at_hand(generators) else None
    layer_bytes = len(flat) * matrices[0, 0].numel() * matrices.element_size()
    most = TOGETHER if generators.device.type == "cpu" else OTHER_DEVICE_TOGETHER
    together = max(1, most // max(1, layer_bytes))
    for first in range(0, len(matrices), together):
        count = min(together, len(matrices) - first)
        own = None if norms is None else norms[first : first + count].amax(0)
        rotations = positions_operator(flat, matrices[first : first + count].transpose(0, 1).flatten(1, 2), own)
        rotations = rotations.reshape(*positions.shape[:-1], count, *generators.shape[2:])
        for layer in rotations.unbind(positions.ndim - 1):
            yield layer.movedim(positions.ndim - 2, -4)


def exp_products(norm: float, size: int, dtype: torch.dtype = torch.float32) -> int:
    """Return the number of matrix products that `exp_skew` needs for a `size` x `size` matrix of this norm.

    The norm is the one by which `exp_skew` scales: the Frobenius norm divided by sqrt(2).

    Example:
        >>> exp_products(262.0, 64), exp_products(262.0, 3), exp_products(262.0, 2)
        (11, 1, 0)
    """
    if size <= 3:
        return 1 if size == 3 else 0
    return PRODUCTS + level(norm, POLYNOMIALS[dtype])


def _exp_2x2(X: Tensor) -> Tensor:
    angle = X[..., 0, 1]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos, sin, -sin, cos], dim=-1).unflatten(-1, (2, 2))


def _exp_3x3(X: Tensor) -> Tensor:
    if values_are_at_hand(X):
        check_norms(skew_norm(X), lambda large: X[large])
    # exp(X) = I + sin(t)/t X + (1 - cos t)/t^2 X^2. Both factors are smooth functions of t^2; near 0, use their series.
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


def _exp_squaring(X: Tensor) -> Tensor:
    if not kernels_may_run(X):
        return exp_plainly(X)
    return exp_skew_operator(X.reshape(-1, *X.shape[-2:])).reshape(X.shape)


CLOSED_FORMS: dict[int, Callable[[Tensor], Tensor]] = {
    0: torch.exp,
    1: lambda X: 0 * X + 1,
    2: _exp_2x2,
    3: _exp_3x3,
}
