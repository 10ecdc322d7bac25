"""Images of several sizes in one sequence, and the masks that keep their attention apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from liere.devices import send
from liere.errors import InputError, InputTypeError, check_least, whole_number
from liere.positions import Policy, grid_positions
from liere.shapes import Bool, Float, Int

__all__ = ["MaskMod", "PackedPositions", "packed_positions", "segment_mask", "segment_mask_mod"]

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""A `mask_mod` of `torch.nn.attention.flex_attention`: batch, head, query and key indices to a boolean tensor."""


class PackedPositions(NamedTuple):
    """Positions of images in one sequence, and which image each token belongs to.

    Attributes:
        positions: Position of each token, `[tokens, ndim]`.
        segments: Index of the image of each token, `[tokens]`.
        cu_seqlens: Index of the first token of each image, and the total number of tokens: `[images + 1]`, int32, as
            kernels for sequences of variable length need it.
        max_seqlen: Number of tokens of the largest image.
    """

    positions: Float[Tensor, "tokens ndim"]
    segments: Int[Tensor, "tokens"]
    cu_seqlens: Int[Tensor, "boundaries"]
    max_seqlen: int

    def mask(self) -> Bool[Tensor, "1 tokens tokens"]:
        """Return the mask for `scaled_dot_product_attention(attn_mask=...)`; see `segment_mask`."""
        return segment_mask(self.segments)

    def mask_mod(self) -> MaskMod:
        """Return the mask for `flex_attention`; see `segment_mask_mod`."""
        return segment_mask_mod(self.segments)


def packed_positions(
    shapes: Sequence[Sequence[int]],
    *,
    reference_shape: Sequence[int] | None = None,
    policy: Policy = "extend",
    num_prefix_tokens: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> PackedPositions:
    """Return the positions of images of several sizes in one sequence, and what keeps their attention apart.

    The tokens of each image are those of `grid_positions`, one image after the other.

    Args:
        shapes: Number of tokens on each axis, for each image.
        reference_shape: Number of tokens on each axis in training. Without it, every image spans [0, 1], whatever its
            size, as with `policy="rescale"`.
        policy: `"extend"`, `"rescale"` or `"reference"`; see `grid_positions`.
        num_prefix_tokens: Number of tokens (CLS, registers) before those of each image. Their position is 0, which
            rotates nothing.
        device: Device of the result.
        dtype: Floating-point type of the positions; by default torch's default type.

    Raises:
        TypeError: If `shapes` is not a sequence of shapes.
        ValueError: If there are no shapes, they differ in their number of axes, or one is invalid.

    Example:
        >>> packed = packed_positions([(1, 2), (2, 2)], reference_shape=(2, 2))
        >>> packed.positions.tolist()
        [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        >>> packed.segments.tolist(), packed.cu_seqlens.tolist(), packed.max_seqlen
        ([0, 0, 1, 1, 1, 1], [0, 2, 6], 4)
    """
    shapes = _check_shapes(shapes)
    check_least("num_prefix_tokens", whole_number("num_prefix_tokens", num_prefix_tokens), 0)
    parts = []
    for shape in shapes:
        grid = grid_positions(shape, reference_shape=reference_shape, policy=policy, device=device, dtype=dtype)
        parts += [grid.new_zeros(num_prefix_tokens, len(shape)), grid]
    lengths = torch.tensor([num_prefix_tokens + math.prod(shape) for shape in shapes], device="cpu")
    positions = torch.cat(parts)
    cu_seqlens = send(torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]), positions.device, torch.int32)
    segments = send(torch.arange(len(shapes), device="cpu").repeat_interleave(lengths), positions.device)
    return PackedPositions(positions, segments, cu_seqlens, int(lengths.max()))


def segment_mask(
    segments: Int[Tensor, "*batch tokens"], k_segments: Int[Tensor, "*batch keys"] | None = None
) -> Bool[Tensor, "*batch 1 tokens keys"]:
    """Return the mask with which tokens attend to tokens of the same segment only, for all heads.

    Give padded tokens a segment of their own, such as -1: they then attend to each other and to nothing else, which
    avoids rows without any key.

    Args:
        segments: Segment of each query.
        k_segments: Segment of each key; by default that of the queries.

    Example:
        >>> segment_mask(torch.tensor([0, 0, 1])).int()
        tensor([[[1, 1, 0],
                 [1, 1, 0],
                 [0, 0, 1]]], dtype=torch.int32)
    """
    k_segments = segments if k_segments is None else k_segments
    return (segments[..., :, None] == k_segments[..., None, :]).unsqueeze(-3)


def segment_mask_mod(
    segments: Int[Tensor, "*batch tokens"], k_segments: Int[Tensor, "*k_batch keys"] | None = None
) -> MaskMod:
    """Return the mask of `segment_mask` as a `mask_mod` for `torch.nn.attention.flex_attention`.

    Args:
        segments: Segment of each query, `[tokens]` for the whole batch or `[batch, tokens]`.
        k_segments: Segment of each key, in one of these two shapes; by default that of the queries.

    Example:
        >>> from torch.nn.attention.flex_attention import create_mask
        >>> mask_mod = segment_mask_mod(torch.tensor([0, 0, 1]))
        >>> create_mask(mask_mod, B=None, H=None, Q_LEN=3, KV_LEN=3, device="cpu").int()[0, 0]
        tensor([[1, 1, 0],
                [1, 1, 0],
                [0, 0, 1]], dtype=torch.int32)
    """
    keys = segments if k_segments is None else k_segments
    of_query, of_key = _lookup(segments), _lookup(keys)
    return lambda batch, head, query, key: of_query(batch, query) == of_key(batch, key)


def _lookup(segments: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of the example and the token that returns the token's segment."""
    return (lambda batch, token: segments[token]) if segments.ndim == 1 else lambda batch, token: segments[batch, token]


def _check_shapes(shapes: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    try:
        result = list(shapes)
        axes = [len(shape) for shape in result]
    except TypeError:
        raise InputTypeError(
            f"shapes must be a sequence of shapes, got {shapes!r}: write one shape per image, like [(14, 14), (7, 9)]"
        ) from None
    if not result:
        raise InputError("shapes must have at least one shape, got none: pass one per image, like [(14, 14), (7, 9)]")
    if len(set(axes)) > 1:
        other = next(shape for shape in result if len(shape) != axes[0])
        raise InputError(
            f"shapes must all have the same number of axes, got {tuple(result[0])} and {tuple(other)}: give each image "
            "one entry per axis"
        )
    return result
