"""The queries and keys of a chunk of tokens: from their tensors to buffers, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from liere.rotations.buffers import take_buffer
from liere.rotations.token_layouts import TokenLayout, VectorShape

__all__ = ["TokenVectors"]


class TokenVectors:
    """Where the vectors of tokens are.

    Tokens are counted over the batch if every member has its own positions, and else within a member, whose vectors
    then are further columns.

    Args:
        xs: Tensors `[batch, tokens, heads, head_dim]` of one shape.
        positions: `[batch or 1, positions, ndim]`.
        powers: `[monomials, heads or 1, blocks, b, b]`.
        prefix: How many leading tokens have no position.
    """

    def __init__(self, xs: list[Tensor], positions: Tensor, powers: Tensor, prefix: int) -> None:
        self.batch, self.tokens, heads, self.head_dim = xs[0].shape
        own_heads, blocks, size = powers.shape[1:4]
        self.prefix, self.heads, self.width = prefix, heads, blocks * size
        self.shared = positions.shape[0] == 1 and self.batch != 1
        self.positions = positions.shape[1]
        self.like = positions
        columns, sharing = self.batch if self.shared else 1, heads if own_heads == 1 else 1
        self.shape = VectorShape(len(xs), columns, sharing, own_heads * blocks, size, 0)

    def unrotated(self, x: Tensor) -> Tensor:
        """Return a contiguous tensor like `x` that holds what is not rotated, and room for the rest."""
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        out[:, : self.prefix] = x[:, : self.prefix]
        out[..., self.width :] = x[..., self.width :]
        return out

    def memory(self, layout: TokenLayout, name: str, tokens: Tensor) -> Tensor:
        """Return memory for the vectors of some tokens."""
        shape = layout.vector_memory(self.shape._replace(tokens=len(tokens)))
        return take_buffer(f"token vectors {name}", shape, self.like)

    def load(self, layout: TokenLayout, name: str, xs: list[Tensor], tokens: Tensor) -> Tensor:
        """Return the vectors of some tokens in memory."""
        memory = self.memory(layout, name, tokens)
        for index, x in enumerate(xs):
            rotated = x[..., : self.width]
            for column in range(self.shape.columns):
                if self.shared:
                    rows = rotated[column].index_select(0, tokens + self.prefix)
                else:
                    rows = rotated[self._members(tokens), self._within(tokens)]
                place = layout.place(memory, index, column)
                place.copy_(rows.reshape(place.shape))
        return memory

    def store(self, layout: TokenLayout, memory: Tensor, outs: list[Tensor], tokens: Tensor) -> None:
        """Copy the vectors of some tokens from memory to their tensors."""
        shape = len(tokens), self.heads, self.width
        for index, out in enumerate(outs):
            for column in range(self.shape.columns):
                rows = take_buffer("token rows", shape, self.like)
                place = layout.place(memory, index, column)
                rows.view(place.shape).copy_(place)
                if self.shared:
                    out[column, ..., : self.width].index_copy_(0, tokens + self.prefix, rows.to(out.dtype))
                else:
                    within = self._members(tokens) * self.tokens + self._within(tokens)
                    out.flatten(0, 1)[..., : self.width].index_copy_(0, within, rows.to(out.dtype))

    def _members(self, tokens: Tensor) -> Tensor:
        return tokens // self.positions

    def _within(self, tokens: Tensor) -> Tensor:
        return tokens % self.positions + self.prefix
