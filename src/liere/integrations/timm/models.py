"""timm's models with an encoding: rotations are made once per forward pass, and handed to all blocks."""

from __future__ import annotations

from typing import Any

import torch
from timm.models.eva import Eva
from timm.models.naflexvit import NaFlexVit
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from liere.encodings.liere import LieRE
from liere.integrations.conversion import Converted
from liere.integrations.mixing import Mixed, mix_in
from liere.integrations.position_rules import PositionMemory, PositionRule
from liere.integrations.timm.attention import Positioned
from liere.integrations.timm.description import Described

__all__ = ["FAMILIES", "RotatedModel", "rotate_class"]


class RotatedModel(Converted, Described):
    """What all converted models have in common."""

    encoding: LieRE
    position_rule: PositionRule
    halves: bool
    """Whether the planes of the encoding are made of the two halves of a head."""
    attentions_per_block: int
    num_prefix_tokens: int
    blocks: Any
    _memory: PositionMemory

    def replace_encoding(self, encoding: LieRE) -> None:
        """Rotate by another encoding of the same shape from now on."""
        self.encoding = encoding

    def no_weight_decay(self) -> set[str]:
        """Return the names of the parameters that weight decay would harm: timm's, and the encoding's."""
        original: Any = super()
        return set(original.no_weight_decay()) | {f"encoding.{name}" for name, _ in self.encoding.named_parameters()}

    def _at(self, positions: Tensor, mask: Tensor | None, *, checkpoint: bool = False) -> Positioned:
        """Return what blocks get for tokens at these positions."""
        if self.training:
            positions = self.position_rule.augment(positions)
        depth = len(self.blocks) * self.attentions_per_block
        layers = list(self.encoding.layer_rotations(positions, depth))
        return Positioned(mask, layers, self.num_prefix_tokens, self.halves, checkpoint)

    def _at_grid(self, grid: Any, x: Tensor, mask: Tensor | None, *, checkpoint: bool = False) -> Positioned:
        """Return what blocks get for the patches of images."""
        # Positions keep their digits in half-precision models.
        dtype = torch.promote_types(x.dtype, torch.float32)
        sizes = tuple(int(size) for size in grid)  # constants of what is traced or exported
        positions = self._memory.of_grid(self.position_rule, sizes, x.device, dtype)
        return self._at(positions, mask, checkpoint=checkpoint)


class RotatedImages(RotatedModel):
    """A model whose images have one size within a batch: `VisionTransformer` and `Eva`."""

    patch_embed: Any
    grad_checkpointing: bool
    _own_checkpoints = False
    """Whether blocks of this class have to checkpoint themselves."""

    def forward_features(self, x: Tensor, attn_mask: Tensor | None = None, **options: Any) -> Tensor:
        """Return all tokens after the last block, as timm does."""
        original: Any = super()
        return original.forward_features(x, attn_mask=self._at_images(x, attn_mask), **options)

    def forward_intermediates(self, x: Tensor, *args: Any, attn_mask: Tensor | None = None, **options: Any) -> Any:
        """Return the tokens after chosen blocks, as timm does."""
        original: Any = super()
        return original.forward_intermediates(x, *args, attn_mask=self._at_images(x, attn_mask), **options)

    def _at_images(self, x: Tensor, mask: Tensor | None) -> Positioned:
        grid = self.patch_embed.dynamic_feat_size(tuple(x.shape[-2:]))
        return self._at_grid(grid, x, mask, checkpoint=self._own_checkpoints and self.grad_checkpointing)


class RotatedVisionTransformer(RotatedImages):
    """A `VisionTransformer`, which leaves out its checkpoints where it is given a mask."""

    _own_checkpoints = True


class RotatedNaFlexVit(RotatedModel):
    """A `NaFlexVit`, where each image of a batch may have its own grid."""

    embeds: Any

    def _forward_embeds(
        self, x: Tensor, patch_coord: Tensor | None, patch_valid: Tensor | None, attn_mask: Tensor | None
    ) -> dict[str, Any]:
        original: Any = super()
        found = original._forward_embeds(x, patch_coord, patch_valid, attn_mask)
        mask = found["attn_mask"]
        if patch_coord is None:
            found["attn_mask"] = self._at_grid(self.embeds.dynamic_feat_size(tuple(x.shape[-2:])), x, mask)
        else:
            dtype = torch.promote_types(found["patches"].dtype, torch.float32)
            found["attn_mask"] = self._at(self.position_rule.of_patches(patch_coord, dtype), mask)
        return found


class RecomputedBlock(Mixed, nn.Module):
    """A block that recomputes its activations in the backward pass on request."""

    def forward(self, x: Tensor, attn_mask: Positioned | Tensor | None = None, **options: Any) -> Tensor:
        """Return the tokens after this block."""
        if isinstance(attn_mask, Positioned) and attn_mask.checkpoint:
            return checkpoint(super().forward, x, attn_mask=attn_mask, **options, use_reentrant=False)
        return super().forward(x, attn_mask=attn_mask, **options)


FAMILIES: dict[Any, Any] = {
    VisionTransformer: RotatedVisionTransformer,
    Eva: RotatedImages,
    NaFlexVit: RotatedNaFlexVit,
}
"""Classes of timm that can be converted, and what is mixed into them."""


def rotate_class(model: Any) -> None:
    """Give a model of a known family, and its blocks, the classes that rotate."""
    mixin = next(mixin for family, mixin in FAMILIES.items() if isinstance(model, family))
    _swap_class(model, mixin)
    if issubclass(mixin, RotatedVisionTransformer):
        for block in model.blocks:
            _swap_class(block, RecomputedBlock)


def _swap_class(module: Any, mixin: Any) -> None:
    own: Any = type(module)
    module.__class__ = mix_in(mixin, own)
