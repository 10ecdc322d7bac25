"""The layers of a vision transformer: patch embedding, attention, blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from liere.encodings.contract import Rotations
from liere.encodings.layer_rotation import rotate_layer
from liere.errors import InputError, check_least, check_number, whole_number
from liere.shapes import Float

__all__ = ["Attention", "Block", "DropPath", "PatchEmbed", "check_rates", "grid_shape", "reset_modules"]


def grid_shape(image_size: tuple[int, ...], patch_size: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of patches on each axis.

    Raises:
        ValueError: If the number of axes differs or a patch does not divide its axis.

    Example:
        >>> grid_shape((8, 224, 160), (2, 16, 16))
        (4, 14, 10)
    """
    if len(image_size) != len(patch_size):
        raise InputError(
            f"image_size {image_size} has {len(image_size)} axes, but patch_size {patch_size} has {len(patch_size)}: "
            "give both one entry per axis"
        )
    for axis, (n, p) in enumerate(zip(image_size, patch_size, strict=True)):
        if p < 1:
            raise InputError(f"patch_size must be at least 1 on every axis, got {patch_size}")
        if n < p or n % p:
            fits = max(round(n / p), 1) * p
            raise InputError(
                f"image_size {image_size} is not divisible by patch_size {patch_size} on axis {axis}: "
                f"{n} is not a multiple of {p}; resize or pad it to {fits}"
            )
    return tuple(n // p for n, p in zip(image_size, patch_size, strict=True))


def check_rates(**given: float) -> None:
    """Raise a `ValueError` that names the argument if a dropout rate is not in [0, 1)."""
    for argument, rate in given.items():
        check_number(argument, rate)
        if not 0 <= rate < 1:
            raise InputError(f"{argument} must be at least 0 and below 1, got {rate}")


def reset_modules(modules: Iterable[nn.Module]) -> None:
    """Initialize the parameters of modules and their submodules in this order, as constructors do."""
    for module in modules:
        reset = getattr(module, "reset_parameters", None)
        if reset is None:
            reset_modules(module.children())
        else:
            reset()


class PatchEmbed(nn.Module):
    """Cut an input with any number of axes into patches and project each patch to a token."""

    def __init__(self, patch_size: tuple[int, ...], in_channels: int, dim: int) -> None:
        super().__init__()
        check_least("in_channels", whole_number("in_channels", in_channels), 1)
        self.patch_size = patch_size
        self.in_channels = in_channels
        self.projection = nn.Linear(in_channels * math.prod(patch_size), dim)

    def reset_parameters(self) -> None:
        """Initialize the parameters as the constructor does."""
        reset_modules(self.children())

    def forward(self, x: Float[Tensor, "batch channels *size"]) -> tuple[Tensor, tuple[int, ...]]:
        """Return the tokens `[batch, tokens, dim]`, in the order of the flattened grid, and the shape of the grid."""
        ndim = len(self.patch_size)
        if x.ndim != ndim + 2 or x.shape[1] != self.in_channels:
            raise InputError(
                f"input has shape {list(x.shape)}, but this model expects [batch, {self.in_channels}, "
                f"{', '.join(['size'] * ndim)}]: it was built with in_channels={self.in_channels} and {ndim} axes"
            )
        grid = grid_shape(tuple(x.shape[2:]), self.patch_size)
        for axis in reversed(range(ndim)):
            x = x.unflatten(2 + axis, (grid[axis], self.patch_size[axis]))
        # [batch, channels, g1, p1, g2, p2, ...] -> [batch, g1, g2, ..., channels, p1, p2, ...]
        x = x.permute(0, *range(2, 2 + 2 * ndim, 2), 1, *range(3, 3 + 2 * ndim, 2))
        return self.projection(x.flatten(1 + ndim).flatten(1, ndim)), grid


class Attention(nn.Module):
    """Multi-head self-attention with optional rotation of queries and keys.

    With `prefix_sees_rotated=False`, prefix tokens attend to the keys before rotation.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        qkv_bias: bool,
        qk_norm: bool,
        dropout: float,
        attn_dropout: float,
        prefix_sees_rotated: bool = True,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.prefix_sees_rotated = prefix_sees_rotated
        self.attn_dropout = attn_dropout
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.q_norm = nn.LayerNorm(dim // heads) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(dim // heads) if qk_norm else nn.Identity()
        self.projection = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Initialize the parameters as the constructor does."""
        reset_modules(self.children())

    def forward(
        self,
        x: Float[Tensor, "batch tokens dim"],
        rotations: Rotations,
        num_prefix_tokens: int,
        scale: float | None = None,
    ) -> Float[Tensor, "batch tokens dim"]:
        """Return the attention output, after rotating the queries and keys of all but the prefix tokens.

        Args:
            x: The tokens.
            rotations: Rotations of this layer.
            num_prefix_tokens: Number of leading tokens that are not rotated.
            scale: Factor for the attention scores; None for `head_dim ** -0.5`.
        """
        q, k, v, plain_k = self.queries_keys_values(x, rotations, num_prefix_tokens)
        dropout_p = self.attn_dropout if self.training else 0.0
        if plain_k is k or not num_prefix_tokens:
            x = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, scale=scale)
        else:
            prefix, patches = q.split([num_prefix_tokens, q.shape[2] - num_prefix_tokens], dim=2)
            parts = [
                F.scaled_dot_product_attention(queries, keys, v, dropout_p=dropout_p, scale=scale)
                for queries, keys in ((prefix, plain_k), (patches, k))
            ]
            x = torch.cat(parts, dim=2)
        return self.dropout(self.projection(x.transpose(1, 2).flatten(2)))

    def queries_keys_values(
        self, x: Float[Tensor, "batch tokens dim"], rotations: Rotations, num_prefix_tokens: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return rotated queries, rotated keys, values, and the keys that prefix tokens see.

        All are `[batch, heads, tokens, head_dim]`.
        """
        # Unbinding before transposing lets the gradients of q, k and v accumulate in the layout of the projection.
        q, k, v = (part.transpose(1, 2) for part in self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2))
        q, k = self.q_norm(q), self.k_norm(k)
        plain_k = k
        q, k = rotate_layer(q, k, rotations, num_prefix_tokens)
        return q, k, v, k if self.prefix_sees_rotated else plain_k


class DropPath(nn.Module):
    """Drop a residual branch for random examples of the batch (stochastic depth)."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Float[Tensor, "batch *rest"]) -> Float[Tensor, "batch *rest"]:
        """Zero the branch for some examples and rescale it for the others."""
        if not self.training or self.probability == 0:
            return x
        keep = x.new_full((x.shape[0],) + (1,) * (x.ndim - 1), 1 - self.probability)
        return x * keep.bernoulli() / (1 - self.probability)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"{self.probability:.3g}"


class Block(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, dim: int, mlp_dim: int, attention: Attention, *, dropout: float, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = attention
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, dim),
            nn.Dropout(dropout),
        )
        self.drop_path = DropPath(drop_path)

    def reset_parameters(self) -> None:
        """Initialize the parameters as the constructor does."""
        reset_modules(self.children())

    def forward(
        self,
        x: Float[Tensor, "batch tokens dim"],
        rotations: Rotations,
        num_prefix_tokens: int,
        scale: float | None = None,
    ) -> Float[Tensor, "batch tokens dim"]:
        """Apply attention, then the MLP, each on a residual branch."""
        x = x + self.drop_path(self.attention(self.norm1(x), rotations, num_prefix_tokens, scale))
        return x + self.drop_path(self.mlp(self.norm2(x)))
