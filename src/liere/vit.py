"""The vision transformer for inputs with any number of axes."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from liere.devices import send
from liere.encodings import PositionEncoding, RotaryEncoding, TransformerShape
from liere.errors import InputError, check_least, suggest, whole_number
from liere.layers import Attention, Block, PatchEmbed, check_rates, grid_shape, reset_modules
from liere.position_augmentation import augment_positions
from liere.positions import Policy, check_policy
from liere.shapes import Float, Real
from liere.tracing import known_sizes, values_are_visible
from liere.vit_positions import (
    NO_POSITIONS,
    GridKey,
    KnownPositions,
    check_coordinates,
    check_given,
    check_spacing,
    make_positions,
    model_augmentation,
    prepare_given,
    spacing_scale,
)

__all__ = ["AttentionScale", "ClsPosition", "VisionTransformer"]

AttentionScale = Literal["constant", "log"]
ClsPosition = Literal["none", "center", "unseen"]
Spacing = Sequence[float] | Tensor | None
GRID_TYPES = (torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)
CHOICES = {"pool": ("cls", "mean"), "cls_position": get_args(ClsPosition), "attention_scale": get_args(AttentionScale)}


class VisionTransformer(nn.Module):
    """A ViT for 1-D, 2-D, 3-D or higher-dimensional inputs with a configurable position encoding.

    Use `liere.create_model`, which knows the preset sizes and creates the encoding; its documentation describes the
    arguments. The model accepts inputs of any resolution divisible by the patch size.
    """

    # Defaults that are not constructor arguments.
    grad_checkpointing = False
    placement: tuple[float, ...] | None = None  # offset of the grid in token steps, for evaluation
    _known_positions = NO_POSITIONS

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
        position_shift: float = 0.0,
        position_stretch: float = 1.0,
        position_zoom: float = 1.0,
        position_noise: float = 0.0,
        cls_position: ClsPosition = "none",
        attention_scale: AttentionScale = "constant",
        spacing: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        check_policy(position_policy)
        _check_choices(pool=pool, cls_position=cls_position, attention_scale=attention_scale)
        check_rates(dropout=dropout, attn_dropout=attn_dropout, drop_path=drop_path)
        check_least("num_registers", num_registers, 0)
        self.image_size, self.grid = image_size, grid_shape(image_size, patch_size)
        self.num_prefix_tokens = num_registers + (pool == "cls")
        encoding.check_fit(TransformerShape(self.grid, dim, heads, depth, self.num_prefix_tokens))
        self.position_policy = position_policy
        self.position_augmentation = model_augmentation(position_shift, position_stretch, position_zoom, position_noise)
        self.cls_position, self.attention_scale = cls_position, attention_scale
        self.spacing = (1.0,) * len(self.grid) if spacing is None else check_spacing(spacing, len(self.grid))
        changes = {f"position_{name}": value for name, value in self.position_augmentation.active.items()}
        check_coordinates(encoding, changes, cls_position, self.spacing, self.num_prefix_tokens)
        self.dim = self.num_features = dim
        self.num_classes, self.pool, self.head_dim = num_classes, pool, dim // heads
        self.patch_embed = PatchEmbed(patch_size, in_channels, dim)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, dim)) if pool == "cls" else None
        self.registers = nn.Parameter(0.02 * torch.randn(1, num_registers, dim)) if num_registers else None
        self.encoding = encoding
        self.dropout = nn.Dropout(dropout)
        attention = partial(
            Attention, dim, heads, qkv_bias=qkv_bias, qk_norm=qk_norm, dropout=dropout, attn_dropout=attn_dropout
        )
        sees_rotated = cls_position != "unseen"
        rates = [drop_path * layer / max(depth - 1, 1) for layer in range(depth)]
        self.blocks = nn.ModuleList(
            Block(dim, mlp_dim, attention(prefix_sees_rotated=sees_rotated), dropout=dropout, drop_path=rate)
            for rate in rates
        )
        self.norm = nn.LayerNorm(dim)
        self.head = _head(dim, num_classes)

    def reset_parameters(self) -> None:
        """Initialize all parameters as the constructor does, for example after `to_empty` of a model on `meta`."""
        self.encoding.reset_parameters()
        self.patch_embed.reset_parameters()
        with torch.no_grad():
            for token in (self.cls_token, self.registers):
                if token is not None:
                    token.normal_().mul_(0.02)
        reset_modules([self.blocks, self.norm, self.head])

    def forward_features(
        self,
        x: Float[Tensor, "batch channels *size"],
        *,
        positions: Real[Tensor, "*examples patches ndim"] | None = None,
        spacing: Spacing = None,
    ) -> Float[Tensor, "batch tokens dim"]:
        """Return all tokens after the last layer, prefix tokens (CLS, registers) first, before the final norm.

        The arguments are those of `forward`.
        """
        tokens, grid = self.patch_embed(x)
        positions = self._token_positions(x, grid, positions, spacing)
        prefix = [token.expand(x.shape[0], -1, -1) for token in (self.cls_token, self.registers) if token is not None]
        tokens = torch.cat([*prefix, tokens], dim=1) if prefix else tokens
        tokens = self.dropout(self.encoding.embed(tokens, positions, grid))
        layers = self.encoding.layer_rotations(positions, len(self.blocks))
        without_position = self.num_prefix_tokens - self._num_central
        scale = self._score_scale(grid)
        for block, rotations in zip(self.blocks, layers, strict=True):
            if self.grad_checkpointing and self.training:
                tokens = checkpoint(block, tokens, rotations, without_position, scale, use_reentrant=False)
            else:
                tokens = block(tokens, rotations, without_position, scale)
        return tokens

    def _token_positions(self, x: Tensor, grid: tuple[int, ...], given: Tensor | None, spacing: Spacing) -> Tensor:
        """Return the positions of one forward pass; those of prefix tokens come first if these have any."""
        # Half precision is too coarse for positions.
        dtype = torch.promote_types(self.patch_embed.projection.weight.dtype, torch.float32)
        if given is not None or spacing is not None:
            check_given(self.encoding, self.position_policy, given, spacing)
        scale = None if spacing is None else spacing_scale(spacing, self.spacing, len(x))
        fixed, per_example = (None, scale) if isinstance(scale, Tensor) else (scale, None)
        known = self._know_positions(grid, x.device, dtype, fixed)
        positions = known.positions
        if given is not None:
            positions = prepare_given(given, grid, len(x), self._num_central, x.device, dtype)
        if self.training and self.position_augmentation:
            amounts = asdict(self.position_augmentation)
            positions = augment_positions(positions, **amounts, step=known.spacing, extent=known.extent)
        return positions if per_example is None else positions * send(per_example, positions.device, positions.dtype)

    def _know_positions(
        self, grid: tuple[int, ...], device: torch.device, dtype: torch.dtype, scale: tuple[float, ...] | None = None
    ) -> KnownPositions:
        """Return the positions of a grid; while nothing changes it is the same tensor, so that caches recognize it."""
        key = GridKey(grid, self.grid, self.position_policy, self.placement, self._num_central, scale, device, dtype)
        if not torch.compiler.is_compiling():
            known = self._known_positions
            if known.key == key and known.positions._version == known.version:
                return known
        known = make_positions(key)
        if values_are_visible(known.positions):
            self._known_positions = known
        return known

    @property
    def _num_central(self) -> int:
        """Number of prefix tokens that have a position."""
        return self.num_prefix_tokens if self.cls_position == "center" else 0

    def _score_scale(self, grid: tuple[int, ...]) -> float | None:
        """Return the factor for the attention scores, or None for the default."""
        if self.attention_scale == "constant" or grid == self.grid:
            return None
        tokens, trained = (self.num_prefix_tokens + math.prod(shape) for shape in (grid, self.grid))
        return self.head_dim**-0.5 * math.log(tokens) / math.log(max(trained, 2))

    def get_extra_state(self) -> Tensor:
        """Return the training grid for the state dict, since positions, and thus the weights, are relative to it."""
        return torch.tensor(self.grid, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        """Warn if the weights of a state dict were trained with a grid that implies different positions."""
        is_real = isinstance(state, Tensor) and not state.is_meta and state.dtype in GRID_TYPES
        is_grid = is_real and state.numel() == len(self.grid)
        trained = tuple(map(int, state.flatten().tolist())) if is_grid and state.isfinite().all() else self.grid
        spans_same = isinstance(self.encoding, RotaryEncoding) and self.position_policy == "rescale"
        is_free = not self.encoding.has_coordinates or (spans_same and self.attention_scale == "constant")
        if is_free or trained == self.grid:
            return
        size = tuple(n * p for n, p in zip(trained, self.patch_embed.patch_size, strict=True))
        warnings.warn(
            f"these weights were trained with a grid of {trained} tokens, but positions of this model are relative to "
            f"{self.grid}, so its logits may differ from those in training: create it with image_size={size}, which "
            "still accepts images of any size",
            stacklevel=2,
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        missing_keys = rest[2]
        with contextlib.suppress(ValueError):
            missing_keys.remove(f"{prefix}_extra_state")  # absent from weights of earlier versions

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached positions."""
        return self.__dict__ | {"_known_positions": NO_POSITIONS}

    def forward_head(self, tokens: Float[Tensor, "batch tokens dim"], pre_logits: bool = False) -> Tensor:
        """Pool (CLS, or the mean over all but prefix tokens), normalize and classify the tokens.

        Args:
            tokens: Output of `forward_features`.
            pre_logits: Whether to return the features before the classifier.
        """
        pooled = tokens[:, 0] if self.pool == "cls" else tokens[:, self.num_prefix_tokens :].mean(dim=1)
        pooled = self.norm(pooled)
        return pooled if pre_logits else self.head(pooled)

    def forward(
        self,
        x: Float[Tensor, "batch channels *size"],
        *,
        positions: Real[Tensor, "*examples patches ndim"] | None = None,
        spacing: Spacing = None,
    ) -> Float[Tensor, "batch classes"]:
        """Return the logits.

        Args:
            x: The images, clips or volumes.
            positions: Positions of the patches, in the order of the flattened grid, instead of those of the grid: one
                set `[patches, ndim]`, or one per example `[batch, patches, ndim]`. The training grid spans [0, 1].
            spacing: Distance between neighboring pixels or voxels on each axis, in the unit of the `spacing` of
                `create_model`: one for all, or a tensor `[batch, ndim]`. Positions are scaled accordingly.
        """
        with known_sizes():
            return self.forward_head(self.forward_features(x, positions=positions, spacing=spacing))

    def get_classifier(self) -> nn.Module:
        """Return the last layer."""
        return self.head

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """Replace the classifier; with 0 classes there is none, and the model returns features.

        Args:
            num_classes: Number of logits.
            global_pool: `"cls"` or `"mean"` to change the pooling.
        """
        pool = self.pool if global_pool is None else global_pool
        _check_choices(pool=pool)
        if pool == "cls" and self.cls_token is None:
            raise InputError("global_pool='cls' needs a CLS token, which this model was built without: use 'mean'")
        weight = self.norm.weight
        self.head = _head(self.dim, num_classes).to(weight.device, weight.dtype)
        self.num_classes, self.pool = num_classes, pool

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute the layers in the backward pass instead of storing their activations."""
        self.grad_checkpointing = enable

    def no_weight_decay(self) -> set[str]:
        """Return the names of the parameters to exclude from weight decay: extra tokens and positions."""
        tokens = {name for name in ("cls_token", "registers") if getattr(self, name) is not None}
        return tokens | {f"encoding.{name}" for name, _ in self.encoding.named_parameters()}


def _head(dim: int, num_classes: int) -> nn.Module:
    if whole_number("num_classes", num_classes) < 0:
        raise InputError(f"num_classes must be at least 0, got {num_classes}: use 0 for a model without a classifier")
    return nn.Linear(dim, num_classes) if num_classes else nn.Identity()


def _check_choices(**given: str) -> None:
    for argument, name in given.items():
        if name not in CHOICES[argument]:
            raise InputError(f"unknown {argument} {name!r}: {suggest(str(name), CHOICES[argument])}")
