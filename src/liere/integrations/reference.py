"""Loading weights of the published LieRE code."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from liere.encodings import PositionEncoding, TransformerShape, create_encoding
from liere.encodings.absolute import Absolute
from liere.encodings.liere import LieRE
from liere.errors import InputError, InputTypeError, suggest
from liere.layers import grid_shape
from liere.presets import image_and_patch
from liere.vit import VisionTransformer

__all__ = ["from_reference", "is_reference"]

HEAD_DIM = 64  # fixed in the published code
ENCODINGS = ("absolute", "visionllama", "rope_mixed", "liere")

# Published name of a parameter -> name here, and shape in terms of the model's dimensions.
NAMES = {
    "cls_token": ("cls_token", (1, 1, "dim")),
    "to_patch_embedding.1.weight": ("patch_embed.projection.weight", ("dim", "patch")),
    "to_patch_embedding.1.bias": ("patch_embed.projection.bias", ("dim",)),
    "mlp_head.0.weight": ("norm.weight", ("dim",)),
    "mlp_head.0.bias": ("norm.bias", ("dim",)),
    "mlp_head.1.weight": ("head.weight", ("classes", "dim")),
    "mlp_head.1.bias": ("head.bias", ("classes",)),
}
LAYER_NAMES = {
    "0.norm.weight": ("norm1.weight", ("dim",)),
    "0.norm.bias": ("norm1.bias", ("dim",)),
    "0.fn.to_qkv.weight": ("attention.qkv.weight", ("qkv", "dim")),
    "0.fn.to_out.0.weight": ("attention.projection.weight", ("dim", "dim")),
    "0.fn.to_out.0.bias": ("attention.projection.bias", ("dim",)),
    "1.norm.weight": ("norm2.weight", ("dim",)),
    "1.norm.bias": ("norm2.bias", ("dim",)),
    "1.fn.net.0.weight": ("mlp.0.weight", ("mlp", "dim")),
    "1.fn.net.0.bias": ("mlp.0.bias", ("mlp",)),
    "1.fn.net.3.weight": ("mlp.3.weight", ("dim", "mlp")),
    "1.fn.net.3.bias": ("mlp.3.bias", ("dim",)),
}
EMBEDDING = "pos_embedding"  # also present in the rotary variants, where it is zero and unused
GENERATORS = "position_encoder.generator_raw_params"


def from_reference(
    state_dict: Mapping[str, Tensor],
    *,
    encoding: str,
    image_size: int | Sequence[int],
    patch_size: int | Sequence[int],
    in_channels: int = 3,
) -> VisionTransformer:
    """Create a model from weights of the published code (StanfordMIMI/LieRE), with the same logits.

    The published code uses the generators of layer 0 in every layer, and positions whose spacing drifts with the
    resolution. The result does the same: its encoding shares layers, and its position policy is `"reference"`.

    Args:
        state_dict: Weights, with or without the `model.` prefix added by Lightning.
        encoding: `"absolute"`, `"visionllama"`, `"rope_mixed"`, `"liere"` (dense) or `"liere<b>"`.
        image_size: Input size in training: an int for square images, or a tuple with one entry per axis.
        patch_size: Patch size, in the same format.
        in_channels: Channels of the input.

    Returns:
        The model, without dropout.

    Raises:
        TypeError: If `state_dict` does not map names to tensors.
        ValueError: If the weights do not match; the message lists missing and unexpected keys and wrong shapes.

    Example:
        >>> weights = {"fc.weight": torch.zeros(3)}
        >>> from_reference(weights, encoding="liere8", image_size=32, patch_size=4)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        liere.errors.InputError: state_dict does not match encoding='liere8', image_size=(32, 32), ...
          missing: cls_token, mlp_head.0.bias, mlp_head.0.weight, mlp_head.1.bias, ...
    """
    _check_encoding(encoding)
    image, patch = image_and_patch(image_size, patch_size)
    grid = grid_shape(image, patch)
    weights = _without_prefix(state_dict)
    depth = _depth(weights)
    context = f"state_dict does not match encoding={encoding!r}, image_size={image}, patch_size={patch}, {in_channels=}"
    dims = _dimensions(weights) | {"patch": in_channels * math.prod(patch), "tokens": 1 + math.prod(grid)}
    probe = create_encoding(encoding, TransformerShape(grid, HEAD_DIM, 1, 1))
    _check(weights, _expected_shapes(dims, depth, probe), context)
    if dims["dim"] % HEAD_DIM:
        raise InputError(f"{context}:\n  cls_token has width {dims['dim']}, which is not a multiple of {HEAD_DIM}")
    shape = TransformerShape(grid, dims["dim"], dims["dim"] // HEAD_DIM, depth, num_prefix_tokens=1)
    model = VisionTransformer(
        create_encoding(encoding, shape, **{"share_layers": True} if isinstance(probe, LieRE) else {}),
        image_size=image,
        patch_size=patch,
        num_classes=dims["classes"],
        dim=dims["dim"],
        depth=depth,
        heads=shape.num_heads,
        mlp_dim=dims["mlp"],
        in_channels=in_channels,
        position_policy="reference",
    )
    model.load_state_dict(_translate(weights, model), strict=True)
    return model


def is_reference(state_dict: Mapping[str, Tensor]) -> bool:
    """Return whether the weights have the names of the published code."""
    return any(name.removeprefix("model.") == "to_patch_embedding.1.weight" for name in state_dict)


def _check_encoding(encoding: Any) -> None:
    if not isinstance(encoding, str) or not encoding.startswith(ENCODINGS):
        hint = suggest(str(encoding), [*ENCODINGS, "liere8", "liere64"])
        raise InputError(f"the published code has no encoding {encoding!r}: {hint}")


def _without_prefix(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    if not isinstance(state_dict, Mapping):
        raise InputTypeError(
            f"state_dict must map names to tensors, got {type(state_dict).__name__}: pass model.state_dict()"
        )
    if isinstance(state_dict.get("state_dict"), Mapping):
        raise InputTypeError("state_dict is a whole checkpoint: pass checkpoint['state_dict']")
    for name, value in state_dict.items():
        if not isinstance(name, str):
            raise InputTypeError(f"state_dict must map names to tensors, got the key {name!r}: pass model.state_dict()")
        if not isinstance(value, Tensor):
            raise InputTypeError(f"state_dict[{name!r}] must be a tensor, got {type(value).__name__}")
        if value.is_complex() or value.is_quantized or value.is_meta or value.layout != torch.strided:
            raise InputTypeError(
                f"state_dict[{name!r}] must be a dense tensor of real numbers, got {value.dtype} with the layout "
                f"{value.layout} on {value.device}: convert it"
            )
    return {name.removeprefix("model."): tensor for name, tensor in state_dict.items()}


def _depth(weights: Mapping[str, Tensor]) -> int:
    """Return the number of layers, limited by the number of weights in case a name has an absurd index."""
    layers = [int(found[1]) for name in weights if (found := re.match(r"transformer\.layers\.(\d{1,9})\.", name))]
    return min(1 + max(layers, default=0), max(len(weights), 1))


def _dimensions(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the dimensions of the weights; None if a weight is missing or malformed."""

    def size(name: str, axes: int, axis: int) -> int | None:
        return weights[name].shape[axis] if name in weights and weights[name].ndim == axes else None

    dim = size("cls_token", 3, -1)
    return {
        "dim": dim,
        "qkv": dim and 3 * dim,
        "mlp": size("transformer.layers.0.1.fn.net.0.weight", 2, 0),
        "classes": size("mlp_head.1.weight", 2, 0),
    }


def _names(depth: int) -> dict[str, tuple[str, tuple[int | str, ...]]]:
    layers = {
        f"transformer.layers.{layer}.{theirs}": (f"blocks.{layer}.{ours}", shape)
        for layer in range(depth)
        for theirs, (ours, shape) in LAYER_NAMES.items()
    }
    return NAMES | layers


def _expected_shapes(
    dims: Mapping[str, int | None], depth: int, head_encoding: PositionEncoding
) -> dict[str, tuple[int | None, ...]]:
    """Return the expected shape of each weight; a size is None if it is unknown because another weight is missing.

    Args:
        dims: The dimensions used in `NAMES`.
        depth: Number of layers.
        head_encoding: The encoding, for a single head.
    """
    shapes = {theirs: shape for theirs, (_, shape) in _names(depth).items()} | {EMBEDDING: (1, "tokens", "dim")}
    expected = {name: tuple(dims[n] if isinstance(n, str) else n for n in shape) for name, shape in shapes.items()}
    if isinstance(head_encoding, LieRE):
        dim, b = dims["dim"], head_encoding.block_size
        blocks = dim and dim // HEAD_DIM * head_encoding.num_blocks
        expected[GENERATORS] = (head_encoding.ndim, depth, blocks, b, b)
    return expected


def _check(weights: Mapping[str, Tensor], expected: Mapping[str, tuple[int | None, ...]], context: str) -> None:
    problems = {
        "missing": sorted(set(expected) - set(weights)),
        "unexpected": sorted(set(weights) - set(expected)),
        "wrong shape": [
            f"{name} is {list(weights[name].shape)}, expected {_readable(shape)}"
            for name, shape in expected.items()
            if name in weights and not _fits(weights[name], shape)
        ],
    }
    lines = [f"  {problem}: {', '.join(keys)}" for problem, keys in problems.items() if keys]
    if lines:
        raise InputError("\n".join([f"{context}:", *lines]))


def _fits(weight: Tensor, shape: tuple[int | None, ...]) -> bool:
    sizes = zip(weight.shape, shape, strict=False)
    return weight.ndim == len(shape) and all(needed is None or size == needed for size, needed in sizes)


def _readable(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('any' if n is None else str(n) for n in shape)}]"


def _translate(weights: Mapping[str, Tensor], model: VisionTransformer) -> dict[str, Tensor]:
    translated = {ours: weights[theirs] for theirs, (ours, _) in _names(len(model.blocks)).items()}
    # Published patches are flattened with the channels last, ours with the channels first.
    patch = model.patch_embed
    projection = translated["patch_embed.projection.weight"].unflatten(1, (*patch.patch_size, patch.in_channels))
    translated["patch_embed.projection.weight"] = projection.movedim(-1, 1).flatten(1)
    rope = model.encoding
    if isinstance(rope, Absolute):
        translated["encoding.embedding"] = weights[EMBEDDING]
    if isinstance(rope, LieRE):
        row, column = torch.triu_indices(rope.block_size, rope.block_size, offset=1)
        upper = weights[GENERATORS][:, 0, :, row, column]  # only layer 0 has an effect
        translated["encoding.generators"] = upper.unflatten(1, (rope.num_heads, rope.num_blocks))[None]
    return translated
