"""transformers' models with an encoding: rotations are made once per forward pass, and handed to all layers."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel
from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionModel
from transformers.models.videomae.modeling_videomae import VideoMAEModel
from transformers.utils.output_capturing import _CAN_RECORD_REGISTRY
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from liere.encodings.liere import LieRE
from liere.integrations.conversion import Converted
from liere.integrations.mixing import Mixed, mix_in
from liere.integrations.planes import set_planes
from liere.integrations.position_rules import GridRule, PositionMemory, PositionRule
from liere.integrations.transformers.attention import ROTATED, Positioned
from liere.integrations.transformers.configurations import write_recipe
from liere.integrations.transformers.families import FAMILIES, Family, WithoutAbsolute, family_of, two
from liere.integrations.transformers.recipe import Recipe, encoding_options

__all__ = ["RotatedModel", "RotatedTower", "attach", "rotated_class", "tower_of"]


class RotatedModel(Converted, PreTrainedModel):  # type: ignore[misc]
    """What converted models have in common, the towers and the models around them."""

    _keep_in_fp32_modules_strict = {"encoding"}  # noqa: RUF012

    def __init__(self, config: Any, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        attach(self, Recipe.from_config(config))

    def replace_encoding(self, encoding: LieRE) -> None:
        """Rotate by another encoding of the same shape from now on."""
        tower_of(self).encoding = encoding
        self._write_encoding()

    def save_pretrained(self, save_directory: Any, *args: Any, **options: Any) -> Any:
        """Save the weights and the configuration, from which `AutoModel.from_pretrained` builds the model again."""
        self._write_encoding()
        return super().save_pretrained(save_directory, *args, **options)

    def _write_encoding(self) -> None:
        tower = tower_of(self)
        for config in (self.config, tower.config):  # the same one, or that of the tower is inside the other
            config.liere["encoding"] = encoding_options(tower.encoding)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialize what a checkpoint does not have."""
        if isinstance(module, WithoutAbsolute):
            return  # all its parameters are in the checkpoint, and transformers would fill the missing embedding
        if isinstance(module, LieRE):
            if not getattr(module.generators, "_is_hf_initialized", False):
                start_encoding(module, tower_of(self))
            return
        super()._init_weights(module)


class RotatedWrapper(RotatedModel):
    """A model around a tower, such as a classifier."""

    @property
    def encoding(self) -> LieRE:
        """The encoding of the tower."""
        return tower_of(self).encoding


class RotatedTower(RotatedModel):
    """A tower for images of one size within a batch."""

    encoding: LieRE
    position_rule: PositionRule
    starts_from_rope: bool
    _memory: PositionMemory

    def forward(self, pixel_values: Tensor | None = None, *args: Any, **options: Any) -> Any:
        """Return what the original returns."""
        if pixel_values is None:
            return super().forward(pixel_values, *args, **options)  # which says what is missing
        return super().forward(pixel_values, *args, liere=self._at_grid(pixel_values), **options)

    def _at_grid(self, pixel_values: Tensor) -> Positioned:
        return self._at(self._grid_positions(pixel_values))

    def _grid_positions(self, pixel_values: Tensor) -> Tensor:
        """Return the positions of the patches of images, or of videos `[batch, frames, channels, rows, columns]`."""
        patch = two(self.config.patch_size)
        grid = [int(side) // size for side, size in zip(pixel_values.shape[-2:], patch, strict=True)]
        if pixel_values.ndim == 5:
            grid.insert(0, int(pixel_values.shape[1]) // self.config.tubelet_size)
        # Positions keep their digits in half-precision models.
        dtype = torch.promote_types(pixel_values.dtype, torch.float32)
        return self._memory.of_grid(self.position_rule, tuple(grid), pixel_values.device, dtype)

    def _at(self, positions: Tensor) -> Positioned:
        """Return what attentions get for tokens at these positions."""
        if self.training:
            positions = self.position_rule.augment(positions)
        layers = list(self.encoding.layer_rotations(positions, self.encoding.depth))
        prefix = _known_family(self).num_prefix_tokens(self.config)
        return Positioned(layers, prefix, halves=self.starts_from_rope)


class RotatedVideoTower(RotatedTower):
    """VideoMAE, which passes no arguments on to its layers: its pixels and tokens carry the rotations."""

    def forward(  # type: ignore[override]
        self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None, **options: Any
    ) -> Any:
        """Return what the original returns; with a mask, of the patches that are not masked."""
        positions = self._grid_positions(pixel_values)
        if bool_masked_pos is not None:
            batch = bool_masked_pos.shape[0]
            visible = positions.expand(batch, *positions.shape)[~bool_masked_pos]
            positions = visible.reshape(batch, -1, positions.shape[-1])
        carried = _Carried(pixel_values, self._at(positions))
        return super(RotatedTower, self).forward(carried, bool_masked_pos, **options)


class _Carried(NamedTuple):
    tensor: Tensor
    positioned: Positioned


class _CarryingEmbeddings(Mixed, nn.Module):
    def forward(self, pixel_values: _Carried, bool_masked_pos: Tensor | None) -> _Carried:
        return _Carried(super().forward(pixel_values.tensor, bool_masked_pos), pixel_values.positioned)


class _ReceivingEncoder(Mixed, nn.Module):
    def forward(self, hidden_states: _Carried, **options: Any) -> Any:
        return super().forward(hidden_states.tensor, liere=hidden_states.positioned, **options)


class RotatedPackedTower(RotatedTower):
    """The tower of Qwen2-VL: the patches of all images in one sequence."""

    def forward(  # type: ignore[override]
        self, hidden_states: Tensor, grid_thw: Tensor, **options: Any
    ) -> Any:
        """Return what the original returns."""
        if options.get("position_ids") is None:
            options["position_ids"] = get_vision_position_ids(grid_thw, self.spatial_merge_size)
        dtype = torch.promote_types(hidden_states.dtype, torch.float32)
        positions = self.position_rule.of_patches(options["position_ids"][None], dtype)[0]
        positions = self._in_order(positions, grid_thw, options)
        return super(RotatedTower, self).forward(hidden_states, grid_thw, liere=self._at(positions), **options)

    def _in_order(self, positions: Tensor, grid_thw: Tensor, options: dict[str, Any]) -> Tensor:
        """Return positions in the order in which layers get their tokens."""
        return positions


class RotatedWindowTower(RotatedPackedTower):
    """The tower of Qwen2.5-VL, which moves the patches of a window next to each other."""

    def permute_input_for_window_attn(self, input_tensor: Tensor | None, *args: Any, **options: Any) -> Tensor | None:
        """Return tokens in the order of windows, and nothing for a RoPE that was removed."""
        original: Any = super()
        return None if input_tensor is None else original.permute_input_for_window_attn(input_tensor, *args, **options)

    def _in_order(self, positions: Tensor, grid_thw: Tensor, options: dict[str, Any]) -> Tensor:
        if options.get("window_index") is None or options.get("cu_window_seqlens") is None:
            sizes = {"window_size": self.window_size, "patch_size": self.patch_size}
            found = get_vision_window_index(grid_thw, spatial_merge_size=self.spatial_merge_size, **sizes)
            options["window_index"], options["cu_window_seqlens"] = found
        ordered = self.permute_input_for_window_attn(positions, options["window_index"], seq_len=len(positions))
        assert ordered is not None
        return ordered


class RotatedFlexibleTower(RotatedTower):
    """The tower of SigLIP 2: the patches of each image of a batch, row by row, then padding."""

    def forward(  # type: ignore[override]
        self, pixel_values: Tensor, pixel_attention_mask: Tensor, spatial_shapes: Tensor, **options: Any
    ) -> Any:
        """Return what the original returns."""
        cells = torch.arange(pixel_values.shape[1], device=pixel_values.device)
        rows, columns = spatial_shapes.to(pixel_values.device)[:, :, None].unbind(1)
        coordinates = torch.stack([cells // columns, cells % columns], dim=-1)
        coordinates = coordinates * (cells < rows * columns)[..., None]  # padding is nowhere: nobody attends to it
        dtype = torch.promote_types(pixel_values.dtype, torch.float32)
        options["liere"] = self._at(self.position_rule.of_patches(coordinates, dtype))
        return super(RotatedTower, self).forward(pixel_values, pixel_attention_mask, spatial_shapes, **options)


class NoRope(nn.Module):
    """Takes the place of a RoPE that was removed."""

    def forward(self, *args: Any) -> tuple[None, None]:
        """Return no cosines and no sines."""
        return None, None


MIXINS: dict[type[nn.Module], type[RotatedTower]] = {
    VideoMAEModel: RotatedVideoTower,
    Siglip2VisionModel: RotatedFlexibleTower,
    Qwen2VisionTransformerPretrainedModel: RotatedPackedTower,
    Qwen2_5_VisionTransformerPretrainedModel: RotatedWindowTower,
}
"""What is mixed into towers for anything but images of one size."""


def rotated_class(cls: type[nn.Module]) -> type[RotatedModel]:
    """Return the class of conversions of a tower, or of a model around one."""
    family = next((family for family in FAMILIES if issubclass(cls, family.tower)), None)
    return mix_in(RotatedWrapper if family is None else MIXINS.get(family.tower, RotatedTower), cls)


def tower_of(model: nn.Module) -> Any:
    """Return the tower in a model, or None if it has none of a known family."""
    return next((module for module in model.modules() if family_of(module) is not None), None)


def attach(model: Any, recipe: Recipe, encoding: LieRE | None = None) -> None:
    """Make a model of transformers rotate queries and keys, in place.

    Args:
        model: A tower, or a model with one.
        recipe: What to build.
        encoding: The encoding, if it was made already.

    Raises:
        ValueError: If the recipe starts from a RoPE, but the tower has none.
    """
    tower = tower_of(model)
    family = _known_family(tower)
    recipe.check_rope(model, family.rope)
    for module in (model, tower):
        if not isinstance(module, RotatedModel):
            _change_class(module, rotated_class(type(module)))
        write_recipe(module.config, recipe)
    made = LieRE(**recipe.encoding, device=next(tower.parameters()).device) if encoding is None else encoding
    tower.starts_from_rope = recipe.start == "rope"
    rule = family.rope_rule(tower.config) if tower.starts_from_rope else GridRule(family.grid(tower.config))
    tower.position_rule, tower._memory = rule, PositionMemory()
    if not made.generators.is_meta:
        start_encoding(made, tower)
    tower.encoding = made.to(next(tower.parameters()).device).train(tower.training)
    if not recipe.keep_absolute:
        family.drop_absolute(tower)
    if family.rope is not None and (tower.starts_from_rope or not recipe.keep_rope):
        setattr(tower, family.rope, NoRope())
    if isinstance(tower, RotatedVideoTower):
        _change_class(tower.embeddings, mix_in(_CarryingEmbeddings, type(tower.embeddings)))
        _change_class(tower.encoder, mix_in(_ReceivingEncoder, type(tower.encoder)))
    for layer, attention in enumerate([module for module in tower.modules() if type(module) in ROTATED]):
        _change_class(attention, ROTATED[type(attention)])
        attention.layer = layer


def start_encoding(encoding: LieRE, tower: Any) -> None:
    """Set the generators to zero, or to the RoPE of the tower."""
    if tower.starts_from_rope:
        set_planes(encoding, _known_family(tower).frequencies(tower))
    else:
        nn.init.zeros_(encoding.generators)


def _change_class(module: nn.Module, cls: type[nn.Module]) -> None:
    module.__class__ = cls
    if isinstance(module, PreTrainedModel):  # transformers looks up by class which outputs can be recorded
        _CAN_RECORD_REGISTRY[module] = module._can_record_outputs


def _known_family(tower: nn.Module) -> Family:
    family = family_of(tower)
    assert family is not None
    return family
