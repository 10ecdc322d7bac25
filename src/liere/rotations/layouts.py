"""Two memory layouts for a batch of matrices, so that products run close to the peak speed of the machine.

Libraries are fast for batches of large matrices and slow for batches of tiny ones: each 8x8 product takes less time
than the call around it. With the batch as the innermost axis, a product is `b` elementwise operations over the whole
batch, which vectorize for any matrix size.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["COLUMNS_UP_TO", "Columns", "Layout", "Rows", "layout_for"]

COLUMNS_UP_TO = 9
"""Largest block that is multiplied elementwise on CPU; for larger ones `torch.bmm` is faster."""


class Rows:
    """`[n, b, b]`, multiplied with torch's batched product."""

    axis = 0
    """The axis along which the matrices are stacked."""

    @staticmethod
    def shape(count: int, size: int) -> tuple[int, int, int]:
        """Return `(n, b, b)`."""
        return count, size, size

    @staticmethod
    def view(rows: Tensor) -> Tensor:
        """Return matrices `[n, b, b]` in this layout, unchanged."""
        return rows

    @staticmethod
    def rows(matrices: Tensor) -> Tensor:
        """Return matrices of this layout as `[n, b, b]`."""
        return matrices

    @staticmethod
    def transpose(matrices: Tensor) -> Tensor:
        """Swap the last two axes."""
        return matrices.mT

    @staticmethod
    def diagonal(matrices: Tensor) -> Tensor:
        """Return the diagonals, `[n, b]`."""
        return matrices.diagonal(dim1=1, dim2=2)

    @staticmethod
    def product(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        """Write `a @ b` to `out` as one batched product."""
        return torch.bmm(a, b, out=out)

    @staticmethod
    def add_product(out: Tensor, a: Tensor, b: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
        """Write `beta out + alpha a @ b` to `out` as one batched product."""
        return out.baddbmm_(a, b, beta=beta, alpha=alpha)


class Columns:
    """`[b, b, n]`, multiplied elementwise along the batch."""

    axis = 2
    """The axis along which the matrices are stacked."""

    @staticmethod
    def shape(count: int, size: int) -> tuple[int, int, int]:
        """Return `(b, b, n)`."""
        return size, size, count

    @staticmethod
    def view(rows: Tensor) -> Tensor:
        """Return matrices `[n, b, b]` in this layout, with the batch as the last axis."""
        return rows.permute(1, 2, 0)

    @staticmethod
    def rows(matrices: Tensor) -> Tensor:
        """Return matrices of this layout as `[n, b, b]`."""
        return matrices.permute(2, 0, 1)

    @staticmethod
    def transpose(matrices: Tensor) -> Tensor:
        """Swap the first two axes."""
        return matrices.transpose(0, 1)

    @staticmethod
    def diagonal(matrices: Tensor) -> Tensor:
        """Return the diagonals, `[n, b]`."""
        return matrices.diagonal(dim1=0, dim2=1)

    @staticmethod
    def product(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        """Write `a @ b` to `out` as a sum of elementwise products."""
        terms = zip(a[:, None].unbind(2), b.unbind(0), strict=True)
        torch.mul(*next(terms), out=out)
        for column, row in terms:
            out.addcmul_(column, row)
        return out

    @staticmethod
    def add_product(out: Tensor, a: Tensor, b: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
        """Write `beta out + alpha a @ b` to `out` as a sum of elementwise products."""
        if beta != 1:
            out.mul_(beta)
        for column, row in zip(a[:, None].unbind(2), b.unbind(0), strict=True):
            out.addcmul_(column, row, value=alpha)
        return out


Layout = type[Rows] | type[Columns]
"""How a batch of matrices is stored, and the operations on it; all results are written to given buffers."""


def layout_for(size: int) -> Layout:
    """Return the layout in which products of this size are faster on CPU."""
    return Columns if size <= COLUMNS_UP_TO else Rows
