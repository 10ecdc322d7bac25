"""The model section of a configuration."""

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

from pydantic import Field, model_validator  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["COORDINATE_FIELDS", "ModelConfig"]

COORDINATE_FIELDS = ("position_shift", "position_stretch", "position_zoom", "position_noise", "cls_position")
"""Model fields that apply only to encodings with coordinates."""


class ModelConfig(Section):
    """The vision transformer, created by `liere.create_model`."""

    encoding: str = "liere"
    """position encoding: absolute, visionllama, rope_mixed, liere8, liere (dense), ..."""
    options: dict[str, Any] = {}  # noqa: RUF012  (pydantic copies it)
    """options of the encoding, for example {share_heads: true}"""
    size: str | None = None
    """vit_tiny, vit_small, vit_base, vit_large or vit_huge; null: set dim, depth, heads and mlp_dim instead"""
    dim: Width | None = None
    """token width"""
    depth: Few | None = None
    """number of layers"""
    heads: Few | None = None
    """number of attention heads"""
    mlp_dim: Width | None = None
    """hidden width of the MLPs"""
    patch_size: Side | tuple[Side, ...] = 12
    """side of a patch in pixels, or one number per axis, for example [2, 16, 16]"""
    image_size: Side | tuple[Side, ...] | None = None
    """image size that positions are relative to; null: the size of the training images"""
    pool: Literal["cls", "mean"] = "cls"
    """input of the classifier: cls (the CLS token) or mean (the mean of the patch tokens)"""
    dropout: Rate = 0.0
    """dropout of embedded tokens, attention outputs and MLPs"""
    attn_dropout: Rate = 0.0
    """dropout of attention probabilities"""
    drop_path: Rate = 0.0
    """stochastic depth rate of the last layer"""
    num_registers: FewOrZero = 0
    """number of register tokens"""
    qk_norm: Switch = False
    """whether to normalize queries and keys before they are rotated"""
    qkv_bias: Switch = False
    """whether queries, keys and values have biases"""
    position_policy: Literal["extend", "rescale", "reference"] = "extend"
    """positions at other resolutions: extend (same spacing), rescale (same range) or reference (published code)"""
    position_shift: Annotated[Real, Field(ge=0, le=GREATEST_AMOUNT)] = 0.0
    """random placement in training: maximum offset of the grid, as a multiple of its extent"""
    position_stretch: Annotated[Real, Field(ge=1, le=GREATEST_AMOUNT)] = 1.0
    """random stretch in training: maximum scale factor, drawn per axis"""
    position_zoom: Annotated[Real, Field(ge=1, le=GREATEST_AMOUNT)] = 1.0
    """random zoom in training: maximum scale factor, the same for all axes"""
    position_noise: Annotated[Real, Field(ge=0, le=GREATEST_AMOUNT)] = 0.0
    """random noise in training: maximum offset of each token, in token steps"""
    cls_position: Literal["none", "center", "unseen"] = "none"
    """position of the CLS token: none, center, or unseen (its query sees unrotated keys)"""
    attention_scale: Literal["constant", "log"] = "constant"
    """constant, or log: scale attention scores by log(tokens) / log(tokens in training)"""

    @model_validator(mode="after")
    def _options_are_finite(self) -> ModelConfig:
        for name, value in self.options.items():
            if not _is_finite(value):
                raise InputError(f"model.options.{shorten(name)} must be finite, got {shorten(repr(value))}")
        return self

    def unsupported_fields(self) -> dict[str, str]:
        """Return defaults, as text, for fields that are set but not supported by the encoding.

        A recipe for several encodings may move positions; encodings without coordinates are trained without that, and
        encodings without rotations are trained without `cls_position` "unseen".
        """
        encoding = find_encoding(self.encoding)[0]
        unfit = () if encoding.has_coordinates else COORDINATE_FIELDS
        if self.cls_position == "unseen" and not issubclass(encoding, RotaryEncoding):
            unfit = (*unfit, "cls_position")
        defaults = {name: ModelConfig.model_fields[name].default for name in unfit}
        return {f"model.{name}": str(value) for name, value in defaults.items() if getattr(self, name) != value}

    def build(self, *, image_size: int | tuple[int, ...], num_classes: int, in_channels: int = 3) -> VisionTransformer:
        """Return the model, initialized with torch's global generator."""
        arguments = self.arguments(image_size=image_size, num_classes=num_classes, in_channels=in_channels)
        for name in self.options:
            if name in arguments:
                raise InputError(
                    f"model.options.{name} is not an option of an encoding: {name} belongs to the model itself"
                )
        return create_model(**arguments, **self.options)

    def arguments(self, *, image_size: int | tuple[int, ...], num_classes: int, in_channels: int = 3) -> dict[str, Any]:
        """Return the arguments of `liere.create_model`, except for the options of the encoding."""
        return self.model_dump(exclude={"options"}) | {
            "image_size": image_size if self.image_size is None else self.image_size,
            "num_classes": num_classes,
            "in_channels": in_channels,
        }


def _is_finite(value: object) -> bool:
    """Return whether a YAML value contains no NaN, no infinity and no integer beyond floats."""
    if isinstance(value, dict | list | tuple):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or -sys.float_info.max <= value <= sys.float_info.max
