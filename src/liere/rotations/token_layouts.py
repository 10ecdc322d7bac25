"""The matrices and vectors of a chunk of tokens, in two layouts.

Products are those of `layouts`. This adds how the parts of the polynomial are made from monomials, and where the
vectors of queries and keys have their places.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from liere.rotations.layouts import COLUMNS_UP_TO, Columns, Rows

__all__ = ["TokenColumns", "TokenLayout", "TokenRows", "VectorShape", "token_layout_for"]


class VectorShape(NamedTuple):
    """The vectors of a chunk."""

    tensors: int
    """Queries and keys, say."""
    columns: int
    """Members of the batch that share positions."""
    heads: int
    """Heads that share generators."""
    blocks: int
    """Blocks of all heads that have their own."""
    size: int
    """Entries of a vector."""
    tokens: int

    @property
    def vectors(self) -> int:
        """How many vectors meet each matrix."""
        return self.tensors * self.columns * self.heads


class TokenColumns(Columns):
    """Matrices `[b, b, blocks, tokens]` and vectors `[b, vectors, blocks, tokens]`, multiplied elementwise."""

    CHUNK = 2**20
    """Bytes of a buffer."""
    TOKENS = 1024
    """Tokens of a chunk; the blocks of a group fill it up."""

    @classmethod
    def chunk(cls, size: int, item: int, blocks: int) -> tuple[int, int]:
        """Return how many tokens, and how many blocks of each, are computed together."""
        matrices = max(1, cls.CHUNK // (size**2 * item))
        tokens = min(cls.TOKENS, matrices)
        return tokens, min(blocks, max(1, matrices // tokens))

    @staticmethod
    def matrices(tokens: int, blocks: int, size: int) -> tuple[int, ...]:
        """Return the shape of matrices."""
        return size, size, blocks, tokens

    @staticmethod
    def lay_out(coefficients: Tensor) -> Tensor:
        """Return coefficients `[parts, monomials, blocks, b, b]` as `write_parts` takes them."""
        return coefficients.permute(0, 3, 4, 2, 1).flatten(0, 3).contiguous()

    @staticmethod
    def take_back(laid_out: Tensor, shape: torch.Size) -> Tensor:
        """Return coefficients from what `lay_out` returned, given their shape."""
        parts, monomials, blocks, size, _ = shape
        return laid_out.view(parts, size, size, blocks, monomials).permute(0, 4, 3, 1, 2)

    @staticmethod
    def write_parts(coefficients: Tensor, monomials: Tensor, out: Tensor) -> None:
        """Write the parts `[parts, *matrices]` of the polynomial."""
        torch.mm(coefficients, monomials, out=out.view(len(coefficients), -1))

    @staticmethod
    def add_gradients(out: Tensor, gradients: Tensor, monomials: Tensor) -> None:
        """Add the gradient of coefficients, given those of the parts."""
        out.addmm_(gradients.view(len(out), -1), monomials.T)

    @staticmethod
    def monomial_gradients(coefficients: Tensor, gradients: Tensor) -> Tensor:
        """Return the gradient `[monomials, tokens]`, given those of the parts."""
        return coefficients.T @ gradients.view(len(coefficients), -1)

    @staticmethod
    def vector_memory(shape: VectorShape) -> tuple[int, ...]:
        """Return the shape of memory for vectors."""
        return shape.tensors, shape.columns, shape.heads, shape.blocks, shape.size, shape.tokens

    @staticmethod
    def vectors(memory: Tensor, blocks: slice) -> Tensor:
        """Return the vectors of some blocks in memory."""
        return memory.flatten(0, 2)[:, blocks].permute(2, 0, 1, 3)

    @staticmethod
    def place(memory: Tensor, tensor: int, column: int) -> Tensor:
        """Return the memory for `[tokens, heads * blocks * b]` of one tensor and column."""
        return memory[tensor, column].flatten(0, 2).T


class TokenRows(Rows):
    """Matrices `[tokens * blocks, b, b]` and vectors `[tokens * blocks, b, vectors]`, for batched products."""

    CHUNK = 2**20
    """Bytes of a buffer."""

    @classmethod
    def chunk(cls, size: int, item: int, blocks: int) -> tuple[int, int]:
        """Return how many tokens, and how many blocks of each, are computed together."""
        return max(1, cls.CHUNK // (size**2 * item * blocks)), blocks

    @staticmethod
    def matrices(tokens: int, blocks: int, size: int) -> tuple[int, ...]:
        """Return the shape of matrices."""
        return tokens * blocks, size, size

    @staticmethod
    def lay_out(coefficients: Tensor) -> Tensor:
        """Return coefficients `[parts, monomials, blocks, b, b]` as `write_parts` takes them."""
        return coefficients.flatten(2).contiguous()

    @staticmethod
    def take_back(laid_out: Tensor, shape: torch.Size) -> Tensor:
        """Return coefficients from what `lay_out` returned, given their shape."""
        return laid_out.view(shape)

    @staticmethod
    def write_parts(coefficients: Tensor, monomials: Tensor, out: Tensor) -> None:
        """Write the parts `[parts, *matrices]` of the polynomial."""
        for part, own in zip(out.unbind(), coefficients.unbind(), strict=True):
            torch.mm(monomials.T, own, out=part.view(monomials.shape[1], -1))

    @staticmethod
    def add_gradients(out: Tensor, gradients: Tensor, monomials: Tensor) -> None:
        """Add the gradient of coefficients, given those of the parts."""
        for own, part in zip(out.unbind(), gradients.unbind(), strict=True):
            own.addmm_(monomials, part.view(monomials.shape[1], -1))

    @staticmethod
    def monomial_gradients(coefficients: Tensor, gradients: Tensor) -> Tensor:
        """Return the gradient `[monomials, tokens]`, given those of the parts."""
        entries = coefficients.shape[-1]
        return (coefficients @ gradients.view(len(gradients), -1, entries).mT).sum(0)

    @staticmethod
    def vector_memory(shape: VectorShape) -> tuple[int, ...]:
        """Return the shape of memory for vectors."""
        return shape.tokens, shape.blocks, shape.size, shape.tensors, shape.columns, shape.heads

    @staticmethod
    def vectors(memory: Tensor, blocks: slice) -> Tensor:
        """Return the vectors in memory; of all blocks, for a chunk has no fewer."""
        return memory.flatten(3).flatten(0, 1)

    @staticmethod
    def place(memory: Tensor, tensor: int, column: int) -> Tensor:
        """Return the memory for `[tokens, heads, blocks, b]` of one tensor and column."""
        return memory[:, :, :, tensor, column].permute(0, 3, 1, 2)


TokenLayout = type[TokenColumns] | type[TokenRows]
"""How the matrices and vectors of tokens are stored."""


def token_layout_for(size: int) -> TokenLayout:
    """Return the layout in which products of this size are faster on CPU."""
    return TokenColumns if size <= COLUMNS_UP_TO else TokenRows
