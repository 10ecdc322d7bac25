"""Two ways to lay out a batch of matrices, so that products run near the speed of the machine.

Libraries multiply batches of large matrices well and batches of tiny ones badly: for each 8x8 product they spend more
time on the call than on the numbers. With the batch as the innermost axis a product is `b` elementwise operations over
the whole batch, which vectorise whatever the size of the matrices.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["COLUMNS_UP_TO", "Columns", "Layout", "Rows", "layout_for"]

# Block sizes up to this one are multiplied elementwise on CPU; measured by `liere bench rotations`.
COLUMNS_UP_TO = 9


class Layout:
    """How `n` matrices are stored, and what can be done with them in place. All results go to given buffers."""

    axis: int
    """Which axis counts the matrices."""

    @staticmethod
    def shape(count: int, size: int) -> tuple[int, int, int]:
        """Return the shape of a buffer."""
        raise NotImplementedError

    @staticmethod
    def view(rows: Tensor) -> Tensor:
        """Return matrices `[n, b, b]` as this layout sees them."""
        raise NotImplementedError

    @staticmethod
    def rows(matrices: Tensor) -> Tensor:
        """Return a view `[n, b, b]` of matrices in this layout."""
        raise NotImplementedError

    @staticmethod
    def transpose(matrices: Tensor) -> Tensor:
        """Return a view of the transposed matrices."""
        raise NotImplementedError

    @staticmethod
    def diagonal(matrices: Tensor) -> Tensor:
        """Return a view of the diagonals."""
        raise NotImplementedError

    @staticmethod
    def product(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        """Write `a @ b`."""
        raise NotImplementedError

    @staticmethod
    def add_product(out: Tensor, a: Tensor, b: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
        """Write `beta out + alpha a @ b`."""
        raise NotImplementedError


class Rows(Layout):
    """`[n, b, b]`, for the library's batched product."""

    axis = 0

    @staticmethod
    def shape(count: int, size: int) -> tuple[int, int, int]:
        """Return `(n, b, b)`."""
        return count, size, size

    @staticmethod
    def view(rows: Tensor) -> Tensor:
        """Return them as they are."""
        return rows

    @staticmethod
    def rows(matrices: Tensor) -> Tensor:
        """Return them as they are."""
        return matrices

    @staticmethod
    def transpose(matrices: Tensor) -> Tensor:
        """Swap the last two axes."""
        return matrices.mT

    @staticmethod
    def diagonal(matrices: Tensor) -> Tensor:
        """Return `[n, b]`."""
        return matrices.diagonal(dim1=1, dim2=2)

    @staticmethod
    def product(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        """One batched product."""
        return torch.bmm(a, b, out=out)

    @staticmethod
    def add_product(out: Tensor, a: Tensor, b: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
        """One batched product that accumulates."""
        return out.baddbmm_(a, b, beta=beta, alpha=alpha)


class Columns(Layout):
    """`[b, b, n]`, multiplied elementwise along the batch."""

    axis = 2

    @staticmethod
    def shape(count: int, size: int) -> tuple[int, int, int]:
        """Return `(b, b, n)`."""
        return size, size, count

    @staticmethod
    def view(rows: Tensor) -> Tensor:
        """Move the batch to the end."""
        return rows.permute(1, 2, 0)

    @staticmethod
    def rows(matrices: Tensor) -> Tensor:
        """Move the batch to the front."""
        return matrices.permute(2, 0, 1)

    @staticmethod
    def transpose(matrices: Tensor) -> Tensor:
        """Swap the first two axes."""
        return matrices.transpose(0, 1)

    @staticmethod
    def diagonal(matrices: Tensor) -> Tensor:
        """Return `[n, b]`."""
        return matrices.diagonal(dim1=0, dim2=1)

    @staticmethod
    def product(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        """Sum over the inner index of elementwise products."""
        terms = zip(a[:, None].unbind(2), b.unbind(0), strict=True)
        torch.mul(*next(terms), out=out)
        for column, row in terms:
            out.addcmul_(column, row)
        return out

    @staticmethod
    def add_product(out: Tensor, a: Tensor, b: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
        """Add the same sum to what is there."""
        if beta != 1:
            out.mul_(beta)
        for column, row in zip(a[:, None].unbind(2), b.unbind(0), strict=True):
            out.addcmul_(column, row, value=alpha)
        return out


def layout_for(size: int, device: torch.device) -> type[Layout]:
    """Return the layout in which products of this size are faster."""
    return Columns if size <= COLUMNS_UP_TO and device.type == "cpu" else Rows
