"""The model of a run, as its configuration has it."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

from liere.config_fields import Few, FewOrZero, Rate, Real, Section, Side, Switch, Width
from liere.encodings import RotaryEncoding, find_encoding
from liere.errors import InputError
from liere.files.reading import shorten
from liere.position_augmentation import GREATEST_AMOUNT
from liere.presets import create_model
from liere.vit import VisionTransformer

from pydantic import Field, model_validator  # isort: skip  (`liere.config_fields` has told what to install)

__all__ = ["COORDINATE_FIELDS", "ModelConfig"]

COORDINATE_FIELDS = ("position_shift", "position_stretch", "position_zoom", "position_noise", "cls_position")
"""Fields of a model that mean something only for encodings with coordinates."""


class ModelConfig(Section):
    """The vision transformer, `liere.create_model`."""

    encoding: str = "liere"
    """position encoding: absolute, visionllama, rope_mixed, liere8, liere (dense), ..."""
    options: dict[str, Any] = {}  # noqa: RUF012  (pydantic copies it)
    """options of the encoding, like {share_heads: true}"""
    size: str | None = None
    """vit_tiny ... vit_huge, or null with all four dimensions"""
    dim: Width | None = None
    """width of a token"""
    depth: Few | None = None
    """layers"""
    heads: Few | None = None
    """attention heads"""
    mlp_dim: Width | None = None
    """width of the MLPs"""
    patch_size: Side | tuple[Side, ...] = 12
    """side of a patch, px; or one number an axis, like [2, 16, 16]"""
    image_size: Side | tuple[Side, ...] | None = None
    """the images that positions are relative to; null: the training images"""
    pool: Literal["cls", "mean"] = "cls"
    """what the classifier looks at"""
    dropout: Rate = 0.0
    """of embedded tokens, attention outputs and MLPs"""
    attn_dropout: Rate = 0.0
    """of attention probabilities"""
    drop_path: Rate = 0.0
    """stochastic depth of the last layer"""
    num_registers: FewOrZero = 0
    """register tokens"""
    qk_norm: Switch = False
    """whether queries and keys are normalized before they are rotated"""
    qkv_bias: Switch = False
    """whether queries, keys and values have biases"""
    position_policy: Literal["extend", "rescale", "reference"] = "extend"
    """positions at other resolutions"""
    position_shift: Annotated[Real, Field(ge=0, le=GREATEST_AMOUNT)] = 0.0
    """random placement: in training, offsets of the grid up to this many times its extent"""
    position_stretch: Annotated[Real, Field(ge=1, le=GREATEST_AMOUNT)] = 1.0
    """in training, greatest factor of each axis of the positions"""
    position_zoom: Annotated[Real, Field(ge=1, le=GREATEST_AMOUNT)] = 1.0
    """in training, greatest factor of all axes of the positions"""
    position_noise: Annotated[Real, Field(ge=0, le=GREATEST_AMOUNT)] = 0.0
    """in training, greatest offset of each token, in token steps"""
    cls_position: Literal["none", "center", "unseen"] = "none"
    """what CLS knows of positions: none, center, or unseen (its query sees keys before rotation)"""
    attention_scale: Literal["constant", "log"] = "constant"
    """log: scores of attention grow with log(tokens) / log(tokens in training)"""

    @model_validator(mode="after")
    def _options_are_finite(self) -> ModelConfig:
        for name, value in self.options.items():
            if not _is_finite(value):
                raise InputError(f"model.options.{shorten(name)} must be finite, got {shorten(repr(value))}")
        return self

    def unsupported_fields(self) -> dict[str, str]:
        """Return defaults, as text, for the fields that the encoding does not support and that are set.

        A recipe for several encodings may move positions; those that have no coordinates are trained without that, and
        those that rotate nothing without keys that CLS sees unrotated.
        """
        encoding = find_encoding(self.encoding)[0]
        unfit = () if encoding.has_coordinates else COORDINATE_FIELDS
        if self.cls_position == "unseen" and not issubclass(encoding, RotaryEncoding):
            unfit = (*unfit, "cls_position")
        defaults = {name: ModelConfig.model_fields[name].default for name in unfit}
        return {f"model.{name}": str(value) for name, value in defaults.items() if getattr(self, name) != value}

    def build(self, *, image_size: int | tuple[int, ...], num_classes: int, in_channels: int = 3) -> VisionTransformer:
        """Make the model; its weights come from torch's global generator."""
        return create_model(
            **self.model_dump(exclude={"options", "image_size"}),
            **self.options,
            image_size=image_size if self.image_size is None else self.image_size,
            num_classes=num_classes,
            in_channels=in_channels,
        )


def _is_finite(value: object) -> bool:
    """Return whether there is no NaN, no infinity and no integer beyond floats in a value of YAML."""
    if isinstance(value, dict | list | tuple):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or -sys.float_info.max <= value <= sys.float_info.max
