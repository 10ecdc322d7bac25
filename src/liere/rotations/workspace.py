"""Reusable buffers for a chunk of matrices, and copies between them and tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.rotations.buffers import take_buffer
from liere.rotations.layouts import Columns, Layout, Rows, layout_for
from liere.rotations.polynomial import Powers
from liere.rotations.squarings import Chunk

__all__ = ["Members", "Workspace"]

# Bytes per buffer; about fifteen are in use at a time. Elementwise products are faster with longer rows.
ROWS_CHUNK = 2**20
COLUMNS_CHUNK = 2**23


class Workspace:
    """The buffers of one call on CPU, in the layout best suited to the matrices.

    Args:
        like: Matrices `[..., b, b]` of the desired size, dtype and device.
        each: Number of matrices per member; a chunk consists of members.
    """

    def __init__(self, like: Tensor, each: int = 1) -> None:
        self.size, self.each, self.device = like.shape[-1], each, like.device
        self.layout: Layout = layout_for(self.size)
        chunk = COLUMNS_CHUNK if self.layout is Columns else ROWS_CHUNK
        self.capacity = max(1, chunk // max(1, each * self.size**2 * like.element_size()))
        self._like = like
        self._buffers: list[Tensor] = []
        self._used = self._matrices = 0

    def begin(self, chunk: Chunk) -> Powers:
        """Release all buffers and return those of the polynomial for a new chunk."""
        self._used, self._matrices = 0, chunk.size * self.each
        return Powers(*(self.buffer() for _ in Powers._fields))

    def buffer(self) -> Tensor:
        """Return a buffer that this chunk does not use already."""
        if self._used == len(self._buffers):  # the first chunk is the largest
            self._buffers.append(take_buffer(self._used, self.layout.shape(self._matrices, self.size), self._like))
        self._used += 1
        return self._buffers[self._used - 1].narrow(self.layout.axis, 0, self._matrices)

    def rows(self, members: int) -> Tensor:
        """Return a buffer for matrices in row layout; the next call reuses it."""
        shape = (members * self.each, self.size, self.size)
        return take_buffer("rows", shape, self._like)

    def part(self, buffer: Tensor, start: int, stop: int | None = None) -> Tensor:
        """Return the matrices of some members of the chunk."""
        stop = self._matrices if stop is None else stop * self.each
        return buffer.narrow(self.layout.axis, start * self.each, stop - start * self.each)


class Members:
    """The matrices of a tensor `[members, ..., b, b]`, in a given order."""

    def __init__(self, work: Workspace, tensor: Tensor, order: Tensor | None) -> None:
        self.work, self.tensor, self.order = work, tensor, order

    def load(self, members: slice, out: Tensor) -> None:
        """Copy members into a buffer."""
        if self.order is None:
            out.copy_(self.work.layout.view(self.tensor[members].reshape(-1, *self.tensor.shape[-2:])))
            return
        rows = out if self.work.layout is Rows else self.work.rows(members.stop - members.start)
        torch.index_select(self.tensor, 0, self.order[members], out=rows.view(-1, *self.tensor.shape[1:]))
        if rows is not out:
            out.copy_(self.work.layout.view(rows))

    def store(self, members: slice, buffer: Tensor) -> None:
        """Copy a buffer to members."""
        rows = self.work.layout.rows(buffer)
        if self.order is None:
            self.tensor[members].view(rows.shape).copy_(rows)
        else:
            self.tensor.index_copy_(0, self.order[members], rows.reshape(-1, *self.tensor.shape[1:]))
