"""The vision transformer over inputs of any number of axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from liere.encodings import PositionEncoding, TransformerShape
from liere.encodings.contract import Rotations
from liere.errors import suggest
from liere.positions import Policy, check_policy, grid_positions
from liere.rotations import rotate_together
from liere.shapes import Float
from liere.tracing import values_are_visible

__all__ = ["VisionTransformer", "grid_shape"]

POOLS = ("cls", "mean")
_NO_POSITIONS: tuple[Any, Tensor, int] = (None, torch.empty(0), 0)


def grid_shape(image_size: tuple[int, ...], patch_size: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of patches on each axis.

    Raises:
        ValueError: If the number of axes differs or a patch does not divide its axis.

    Example:
        >>> grid_shape((8, 224, 160), (2, 16, 16))
        (4, 14, 10)
    """
    if len(image_size) != len(patch_size):
        raise ValueError(
            f"image_size {image_size} has {len(image_size)} axes, but patch_size {patch_size} has {len(patch_size)}: "
            "give both one entry an axis"
        )
    for axis, (n, p) in enumerate(zip(image_size, patch_size, strict=True)):
        if p < 1:
            raise ValueError(f"patch_size must be at least 1 on every axis, got {patch_size}")
        if n < p or n % p:
            fits = max(round(n / p), 1) * p
            raise ValueError(
                f"image_size {image_size} is not divisible by patch_size {patch_size} on axis {axis}: "
                f"{n} is not a multiple of {p}; resize or pad it to {fits}"
            )
    return tuple(n // p for n, p in zip(image_size, patch_size, strict=True))


class PatchEmbed(nn.Module):
    """Cut an input of any number of axes into patches and project each to a token."""

    def __init__(self, patch_size: tuple[int, ...], in_channels: int, dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.in_channels = in_channels
        self.projection = nn.Linear(in_channels * math.prod(patch_size), dim)

    def forward(self, x: Float[Tensor, "batch channels *size"]) -> tuple[Tensor, tuple[int, ...]]:
        """Return the tokens `[batch, tokens, dim]`, in the order of the flattened grid, and the grid."""
        ndim = len(self.patch_size)
        if x.ndim != ndim + 2 or x.shape[1] != self.in_channels:
            raise ValueError(
                f"input has shape {list(x.shape)}, but this model takes [batch, {self.in_channels}, "
                f"{', '.join(['size'] * ndim)}]: it was built with in_channels={self.in_channels} and {ndim} axes"
            )
        grid = grid_shape(tuple(x.shape[2:]), self.patch_size)
        for axis in reversed(range(ndim)):
            x = x.unflatten(2 + axis, (grid[axis], self.patch_size[axis]))
        # [batch, channels, g1, p1, g2, p2, ...] -> [batch, g1, g2, ..., channels, p1, p2, ...]
        x = x.permute(0, *range(2, 2 + 2 * ndim, 2), 1, *range(3, 3 + 2 * ndim, 2))
        return self.projection(x.flatten(1 + ndim).flatten(1, ndim)), grid


class Attention(nn.Module):
    """Multi-head self-attention whose queries and keys may be rotated."""

    def __init__(
        self, dim: int, heads: int, *, qkv_bias: bool, qk_norm: bool, dropout: float, attn_dropout: float
    ) -> None:
        super().__init__()
        self.heads = heads
        self.attn_dropout = attn_dropout
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.q_norm = nn.LayerNorm(dim // heads) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(dim // heads) if qk_norm else nn.Identity()
        self.projection = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch tokens dim"], rotations: Rotations, num_prefix_tokens: int
    ) -> Float[Tensor, "batch tokens dim"]:
        """Attend, after rotating the queries and keys of all but the prefix tokens."""
        q, k, v = self.queries_keys_values(x, rotations, num_prefix_tokens)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.attn_dropout if self.training else 0.0)
        return self.dropout(self.projection(x.transpose(1, 2).flatten(2)))

    def queries_keys_values(
        self, x: Float[Tensor, "batch tokens dim"], rotations: Rotations, num_prefix_tokens: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return rotated queries, rotated keys and values, `[batch, heads, tokens, head_dim]`."""
        # Unbinding before transposing lets the gradients of q, k and v meet in the layout of the projection.
        q, k, v = (part.transpose(1, 2) for part in self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2))
        q, k = self.q_norm(q), self.k_norm(k)
        if callable(rotations):
            q, k = checkpoint(
                _rotate_anew, q, k, rotations, num_prefix_tokens, use_reentrant=False, preserve_rng_state=False
            )
        elif rotations is not None:
            q, k = rotate_together([q, k], rotations, num_prefix_tokens)
        return q, k, v


def _rotate_anew(q: Tensor, k: Tensor, rotations: Callable[[], Tensor], num_prefix_tokens: int) -> list[Tensor]:
    return rotate_together([q, k], rotations(), num_prefix_tokens)


class DropPath(nn.Module):
    """Stochastic depth: leave out a residual branch for random members of the batch."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Float[Tensor, "batch *rest"]) -> Float[Tensor, "batch *rest"]:
        """Zero the branch of some members, and scale it for the others."""
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

    def forward(
        self, x: Float[Tensor, "batch tokens dim"], rotations: Rotations, num_prefix_tokens: int
    ) -> Float[Tensor, "batch tokens dim"]:
        """Attention, then MLP, each on a residual branch."""
        x = x + self.drop_path(self.attention(self.norm1(x), rotations, num_prefix_tokens))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    """A ViT over 1-D, 2-D, 3-D or higher inputs with an exchangeable position encoding.

    Use `liere.create_model`, which knows the sizes and makes the encoding; its documentation describes the
    arguments. Inputs of any resolution that the patch size divides are accepted.
    """

    def __init__(
        self,
        encoding: PositionEncoding,
        *,
        image_size: tuple[int, ...],
        patch_size: tuple[int, ...],
        num_classes: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        in_channels: int = 3,
        pool: str = "cls",
        num_registers: int = 0,
        dropout: float = 0.0,
        attn_dropout: float = 0.0,
        drop_path: float = 0.0,
        qk_norm: bool = False,
        qkv_bias: bool = False,
        position_policy: Policy = "extend",
    ) -> None:
        super().__init__()
        check_policy(position_policy)
        _check_pool(pool)
        for name, rate in {"dropout": dropout, "attn_dropout": attn_dropout, "drop_path": drop_path}.items():
            if not 0 <= rate < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, got {rate}")
        for name, count, least in [("num_registers", num_registers, 0), ("in_channels", in_channels, 1)]:
            if count < least:
                raise ValueError(f"{name} must be at least {least}, got {count}")
        self.image_size = image_size
        self.grid = grid_shape(image_size, patch_size)
        self.num_prefix_tokens = num_registers + (pool == "cls")
        encoding.check_fit(TransformerShape(self.grid, dim, heads, depth, self.num_prefix_tokens))
        self.position_policy = position_policy
        self.dim = self.num_features = dim
        self.head_dim = dim // heads
        self.num_classes = num_classes
        self.pool = pool
        self.grad_checkpointing = False
        self._known_positions = _NO_POSITIONS
        self.patch_embed = PatchEmbed(patch_size, in_channels, dim)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, dim)) if pool == "cls" else None
        self.registers = nn.Parameter(0.02 * torch.randn(1, num_registers, dim)) if num_registers else None
        self.encoding = encoding
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(
                dim,
                mlp_dim,
                Attention(dim, heads, qkv_bias=qkv_bias, qk_norm=qk_norm, dropout=dropout, attn_dropout=attn_dropout),
                dropout=dropout,
                drop_path=drop_path * layer / max(depth - 1, 1),
            )
            for layer in range(depth)
        )
        self.norm = nn.LayerNorm(dim)
        self.head = _head(dim, num_classes)

    def forward_features(self, x: Float[Tensor, "batch channels *size"]) -> Float[Tensor, "batch tokens dim"]:
        """Return all tokens after the last layer, prefix tokens (CLS, registers) first, before the final norm."""
        tokens, grid = self.patch_embed(x)
        # Positions keep their digits in half-precision models.
        dtype = torch.promote_types(self.patch_embed.projection.weight.dtype, torch.float32)
        positions = self._positions(grid, x.device, dtype)
        prefix = [token.expand(x.shape[0], -1, -1) for token in (self.cls_token, self.registers) if token is not None]
        tokens = torch.cat([*prefix, tokens], dim=1) if prefix else tokens
        tokens = self.dropout(self.encoding.embed(tokens, positions, grid))
        layers = self.encoding.layer_rotations(positions, len(self.blocks))
        for block, rotations in zip(self.blocks, layers, strict=True):
            if self.grad_checkpointing and self.training:
                tokens = checkpoint(block, tokens, rotations, self.num_prefix_tokens, use_reentrant=False)
            else:
                tokens = block(tokens, rotations, self.num_prefix_tokens)
        return tokens

    def _positions(self, grid: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
        """Return the positions of a grid: the same tensor as last time, which tells that they have not changed."""
        key = (grid, self.position_policy, device, dtype)
        if not torch.compiler.is_compiling():
            known, positions, version = self._known_positions
            if known == key and positions._version == version:
                return positions
        with torch.inference_mode(False):
            positions = grid_positions(
                grid, reference_shape=self.grid, policy=self.position_policy, device=device, dtype=dtype
            )
        if values_are_visible(positions):
            self._known_positions = (key, positions, positions._version)
        return positions

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is only remembered."""
        return self.__dict__ | {"_known_positions": _NO_POSITIONS}

    def forward_head(self, tokens: Float[Tensor, "batch tokens dim"], pre_logits: bool = False) -> Tensor:
        """Pool (CLS, or the mean over all but prefix tokens), normalise and classify.

        Args:
            tokens: What `forward_features` returned.
            pre_logits: Whether to stop before the classifier.
        """
        pooled = tokens[:, 0] if self.pool == "cls" else tokens[:, self.num_prefix_tokens :].mean(dim=1)
        pooled = self.norm(pooled)
        return pooled if pre_logits else self.head(pooled)

    def forward(self, x: Float[Tensor, "batch channels *size"]) -> Float[Tensor, "batch classes"]:
        """Return the logits."""
        return self.forward_head(self.forward_features(x))

    def get_classifier(self) -> nn.Module:
        """Return the last layer."""
        return self.head

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """Replace the classifier by a new one; 0 classes means none, so that the model returns features.

        Args:
            num_classes: Number of logits.
            global_pool: `"cls"` or `"mean"` to pool differently from now on.
        """
        pool = self.pool if global_pool is None else global_pool
        _check_pool(pool)
        if pool == "cls" and self.cls_token is None:
            raise ValueError("global_pool='cls' needs a CLS token, which this model was built without: use 'mean'")
        weight = self.norm.weight
        self.head = _head(self.dim, num_classes).to(weight.device, weight.dtype)
        self.num_classes, self.pool = num_classes, pool

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute the layers in the backward pass instead of keeping their activations."""
        self.grad_checkpointing = enable

    def no_weight_decay(self) -> set[str]:
        """Return the names of the parameters that weight decay would harm: extra tokens and positions."""
        tokens = {name for name in ("cls_token", "registers") if getattr(self, name) is not None}
        return tokens | {f"encoding.{name}" for name, _ in self.encoding.named_parameters()}


def _head(dim: int, num_classes: int) -> nn.Module:
    if num_classes < 0:
        raise ValueError(f"num_classes must be at least 0, got {num_classes}: use 0 for a model without classifier")
    return nn.Linear(dim, num_classes) if num_classes else nn.Identity()


def _check_pool(pool: str) -> None:
    if pool not in POOLS:
        raise ValueError(f"unknown pool {pool!r}: {suggest(str(pool), POOLS)}")
