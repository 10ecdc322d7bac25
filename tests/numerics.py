"""One tolerance for all numerical tests, and slow, obvious references to compare with."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

# Allowed error of a result in units in the last place, for each unit of (1 + norm).
UNITS = 10

BLOCK_SIZES = [2, 3, 4, 5, 8, 12, 16, 48, 64]
dtypes = st.sampled_from([torch.float32, torch.float64])
block_sizes = st.sampled_from(BLOCK_SIZES)
norms = st.sampled_from([0.0, 1e-6, 1e-3, 0.3, 1.0, 7.0, 30.0, 262.0, 1e3])
seeds = st.integers(0, 2**31 - 1)


def tolerance(dtype: torch.dtype, norm: float = 0.0, units: float = UNITS) -> float:
    """Return `units * eps * (1 + norm)`."""
    return units * torch.finfo(dtype).eps * (1 + norm)


def assert_close(actual: Tensor, expected: Tensor, atol: float) -> None:
    """Compare element by element with an absolute tolerance, in fp64."""
    torch.testing.assert_close(actual.double(), expected.double(), atol=atol, rtol=0)


def random_skew(seed: int, size: int, norm: float, *batch: int) -> Tensor:
    """Return fp64 skew matrices of this spectral norm."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(*batch, size, size, generator=generator, dtype=torch.float64)
    X = X - X.mT
    return X * (norm / torch.linalg.matrix_norm(X, ord=2).clamp(min=1e-300))[..., None, None]


def exp_by_eigenvectors(X: Tensor) -> Tensor:
    """The exponential of skew matrices from the eigenvectors of the Hermitian `iX`, in fp64."""
    values, vectors = torch.linalg.eigh(1j * X.double())
    return ((vectors * torch.exp(-1j * values)[..., None, :]) @ vectors.mH).real


def rotate_slowly(x: Tensor, rotations: Tensor, num_prefix_tokens: int) -> Tensor:
    """Rotate `x` `[batch, heads, tokens, head_dim]` block by block, in Python loops."""
    rotated = x.clone()
    batch, heads, tokens, _ = x.shape
    blocks, size = rotations.shape[-3], rotations.shape[-1]
    rotations = rotations.expand(batch, heads, *rotations.shape[-4:])
    for b in range(batch):
        for h in range(heads):
            for t in range(num_prefix_tokens, tokens):
                for n in range(blocks):
                    part = slice(n * size, (n + 1) * size)
                    rotated[b, h, t, part] = rotations[b, h, t - num_prefix_tokens, n] @ x[b, h, t, part]
    return rotated
