"""Preset sizes of the vision transformer, and the function that creates a model."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from liere.encodings import PositionEncoding, TransformerShape, create_encoding
from liere.encodings.absolute import Absolute
from liere.errors import InputError, InputTypeError, UnknownOptionError, check_least, nearest, suggest, whole_number
from liere.layers import grid_shape
from liere.positions import Policy
from liere.vit import AttentionScale, ClsPosition, VisionTransformer

__all__ = ["LARGEST_SIDE", "SIZES", "ViTSize", "create_model", "image_and_patch", "least_parameters", "resolve_size"]

LARGEST_SIDE = 10**4
"""Upper limit for the image sizes in configurations and commands."""


class ViTSize(NamedTuple):
    """Dimensions of a transformer."""

    dim: int
    depth: int
    heads: int
    mlp_dim: int


SIZES = {
    "vit_tiny": ViTSize(384, 12, 6, 768),
    "vit_small": ViTSize(384, 12, 6, 1536),
    "vit_base": ViTSize(768, 12, 12, 3072),
    "vit_large": ViTSize(1024, 24, 16, 4096),
    "vit_huge": ViTSize(1280, 32, 16, 5120),
}


def create_model(
    size: str | None = None,
    *,
    encoding: str | PositionEncoding,
    image_size: int | Sequence[int],
    patch_size: int | Sequence[int],
    num_classes: int,
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
    dim: int | None = None,
    depth: int | None = None,
    heads: int | None = None,
    mlp_dim: int | None = None,
    spacing: Sequence[float] | None = None,
    **encoding_options: Any,
) -> VisionTransformer:
    """Create a vision transformer for inputs with any number of axes.

    Args:
        size: A name from `liere.presets.SIZES` (`"vit_tiny"` ... `"vit_huge"`), or None with all of `dim`, `depth`,
            `heads` and `mlp_dim`; given in addition to a name, these override its dimensions.
        encoding: A name (`liere.list_encodings()`) such as `"absolute"`, `"rope_mixed"`, `"liere"` (dense) or
            `"liere8"`, or an encoding object.
        image_size: An int for square 2-D images, or a tuple with one entry per axis.
        patch_size: Size of a patch: an int for the same size on every axis, or a tuple with one entry per axis.
        num_classes: Number of logits; 0 leaves out the classifier.
        in_channels: Channels of the input.
        pool: `"cls"` (a CLS token) or `"mean"` (no CLS token).
        num_registers: Number of register tokens.
        dropout: Dropout rate of the embedded tokens, attention outputs and MLPs.
        attn_dropout: Dropout rate of the attention probabilities.
        drop_path: Stochastic depth rate of the last layer; it grows linearly from 0 in the first layer.
        qk_norm: Whether to normalize queries and keys before they are rotated.
        qkv_bias: Whether queries, keys and values have biases; in the paper they have none.
        position_policy: How positions behave at other resolutions; see `liere.grid_positions`.
        position_shift: Random placement: in training, each forward pass moves the whole grid by one random offset per
            axis, in whole token steps, up to this many times the extent of the training grid; with n patches per axis
            in training, `(m - n) / (n - 1)` covers all coordinates of a grid with m. See `liere.augment_positions` for
            this and the next three options; they need an encoding with coordinates.
        position_stretch: In training, multiply each axis by its own random factor in [1/stretch, stretch].
        position_zoom: In training, multiply all axes by one random factor in [1/zoom, zoom].
        position_noise: In training, move each token by up to this many token steps on each axis.
        cls_position: Position of CLS and registers: `"none"`, as in the paper, leaves them unrotated, so that their
            attention depends on absolute coordinates; `"center"` puts them at the center of the grid; `"unseen"` lets
            them attend to the keys before rotation.
        attention_scale: `"constant"`, or `"log"` to multiply attention scores by log(tokens) / log(tokens in training),
            which compensates for attention being spread over more tokens on larger inputs.
        dim: Width of a token.
        depth: Number of layers.
        heads: Number of attention heads per layer.
        mlp_dim: Hidden width of the MLPs.
        spacing: Distance between neighboring pixels or voxels in training, one number per axis, in any unit; by default
            1 on each. Inputs with another spacing are given theirs: `model(x, spacing=(2.5, 0.7, 0.7))`.
        **encoding_options: Options of the named encoding, such as `init_std` or `share_heads`.

    Raises:
        TypeError: If an option is unknown, a dimension is missing, or options are given with an encoding object.
        ValueError: If the size or encoding is unknown, or the dimensions are inconsistent.

    Example:
        >>> import torch
        >>> model = create_model("vit_tiny", encoding="liere8", image_size=32, patch_size=4, num_classes=10)
        >>> model(torch.randn(1, 3, 32, 48)).shape
        torch.Size([1, 10])
    """
    chosen = resolve_size(size, {"dim": dim, "depth": depth, "heads": heads, "mlp_dim": mlp_dim})
    image, patch = image_and_patch(image_size, patch_size)
    prefix = whole_number("num_registers", num_registers) + (pool == "cls")
    shape = TransformerShape(grid_shape(image, patch), chosen.dim, chosen.heads, chosen.depth, prefix)
    return VisionTransformer(
        _resolve_encoding(encoding, shape, encoding_options),
        image_size=image,
        patch_size=patch,
        num_classes=num_classes,
        in_channels=in_channels,
        pool=pool,
        num_registers=num_registers,
        dropout=dropout,
        attn_dropout=attn_dropout,
        drop_path=drop_path,
        qk_norm=qk_norm,
        qkv_bias=qkv_bias,
        position_policy=position_policy,
        position_shift=position_shift,
        position_stretch=position_stretch,
        position_zoom=position_zoom,
        position_noise=position_noise,
        cls_position=cls_position,
        attention_scale=attention_scale,
        spacing=spacing,
        **chosen._asdict(),
    )


def least_parameters(arguments: Mapping[str, Any]) -> int:
    """Return how many parameters a model has at least, from arguments of `create_model` but without creating it.

    Some, such as those of most encodings, are not counted.

    Example:
        >>> arguments = {"image_size": 32, "patch_size": 4, "num_classes": 10, "encoding": "liere8"}
        >>> model = create_model("vit_tiny", **arguments)
        >>> counted = sum(parameter.numel() for parameter in model.parameters())
        >>> 0.98 * counted < least_parameters({"size": "vit_tiny", **arguments}) <= counted
        True
    """
    names = ("dim", "depth", "heads", "mlp_dim")
    size = resolve_size(arguments.get("size"), {name: arguments.get(name) for name in names})
    image, patch = image_and_patch(arguments["image_size"], arguments["patch_size"])
    layer = 4 * size.dim**2 + 2 * size.dim * size.mlp_dim
    rows = math.prod(patch) * whole_number("in_channels", arguments.get("in_channels", 3))
    rows += whole_number("num_classes", arguments["num_classes"])
    rows += whole_number("num_registers", arguments.get("num_registers", 0))
    if arguments["encoding"] == Absolute.name:  # one row per token
        rows += math.prod(grid_shape(image, patch))
    return size.depth * layer + rows * size.dim


def image_and_patch(
    image_size: int | Sequence[int], patch_size: int | Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return image and patch sizes with one entry per axis; an int means a square image, or the same on every axis.

    Example:
        >>> image_and_patch(224, 16), image_and_patch((8, 32, 32), 2)
        (((224, 224), (16, 16)), ((8, 32, 32), (2, 2, 2)))
    """
    image = _on_axes("image_size", image_size, axes=2)
    return image, _on_axes("patch_size", patch_size, axes=len(image))


def _on_axes(name: str, size: int | Sequence[int], axes: int) -> tuple[int, ...]:
    sizes = tuple(size) if isinstance(size, list | tuple) else (size,) * axes
    if not sizes:
        raise InputError(f"{name} must have at least one axis, got {size!r}")
    return tuple(whole_number(name, n) for n in sizes)


def resolve_size(size: str | None, given: Mapping[str, int | None]) -> ViTSize:
    """Return the dimensions of a preset size, overridden by the `given` ones that are not None.

    Raises:
        TypeError: If there is no size and a dimension is missing.
        ValueError: If the size is unknown or a dimension is not positive.
    """
    named: dict[str, int] = {}
    if size is not None:
        if size not in SIZES:
            raise InputError(f"unknown size {size!r}: {suggest(str(size), SIZES)}")
        named = SIZES[size]._asdict()
    dimensions = named | {name: value for name, value in given.items() if value is not None}
    missing = [name for name in ViTSize._fields if name not in dimensions]
    if missing:
        raise InputTypeError(
            f"without a size, create_model needs {_names(missing)}: pass them, or a size from {_names(SIZES)}"
        )
    for name, value in dimensions.items():
        check_least(name, whole_number(name, value), 1)
    return ViTSize(**dimensions)


def _names(names: Any) -> str:
    return ", ".join(map(repr, names))


def _resolve_encoding(
    encoding: str | PositionEncoding, shape: TransformerShape, options: dict[str, Any]
) -> PositionEncoding:
    if not isinstance(encoding, PositionEncoding):
        return _create_encoding(encoding, shape, options)
    if options:
        raise InputTypeError(
            f"{_names(options)} cannot be combined with an encoding object: pass them to its constructor"
        )
    return encoding


def _create_encoding(name: str, shape: TransformerShape, options: dict[str, Any]) -> PositionEncoding:
    """Create the encoding; if an option looks like a misspelled argument of `create_model`, suggest that argument."""
    try:
        return create_encoding(name, shape, **options)
    except UnknownOptionError as error:
        own = [name for name in inspect.signature(create_model).parameters if name != "encoding_options"]
        hints = [f"create_model itself has {near!r}" for name in options if (near := nearest(name, own))]
        raise UnknownOptionError("; ".join([str(error), *hints])) from None
