"""Weights of the published LieRE code."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from liere.encodings import TransformerShape, create_encoding
from liere.encodings.absolute import Absolute
from liere.encodings.liere import LieRE
from liere.errors import suggest
from liere.presets import image_and_patch
from liere.vit import VisionTransformer, grid_shape

__all__ = ["from_reference", "is_reference"]

HEAD_DIM = 64  # fixed in the published code
ENCODINGS = ("absolute", "visionllama", "rope_mixed", "liere")

# Published name of a layer's parameter -> ours.
LAYER_NAMES = {
    "0.norm.weight": "norm1.weight",
    "0.norm.bias": "norm1.bias",
    "0.fn.to_qkv.weight": "attention.qkv.weight",
    "0.fn.to_out.0.weight": "attention.projection.weight",
    "0.fn.to_out.0.bias": "attention.projection.bias",
    "1.norm.weight": "norm2.weight",
    "1.norm.bias": "norm2.bias",
    "1.fn.net.0.weight": "mlp.0.weight",
    "1.fn.net.0.bias": "mlp.0.bias",
    "1.fn.net.3.weight": "mlp.3.weight",
    "1.fn.net.3.bias": "mlp.3.bias",
}
NAMES = {
    "cls_token": "cls_token",
    "to_patch_embedding.1.weight": "patch_embed.projection.weight",
    "to_patch_embedding.1.bias": "patch_embed.projection.bias",
    "mlp_head.0.weight": "norm.weight",
    "mlp_head.0.bias": "norm.bias",
    "mlp_head.1.weight": "head.weight",
    "mlp_head.1.bias": "head.bias",
}
GENERATORS = "position_encoder.generator_raw_params"
EMBEDDING = "pos_embedding"
# What the dimensions are read from; without these there is no model to compare with.
ESSENTIAL = (
    "cls_token",
    "to_patch_embedding.1.weight",
    "mlp_head.1.weight",
    "transformer.layers.0.1.fn.net.0.weight",
)


def from_reference(
    state_dict: Mapping[str, Tensor],
    *,
    encoding: str,
    image_size: int | Sequence[int],
    patch_size: int | Sequence[int],
) -> VisionTransformer:
    """Make a model from weights of the published code (StanfordMIMI/LieRE), with the same logits.

    The published code uses the generators of layer 0 in every layer, and positions whose spacing drifts with the
    resolution; so does the result: its encoding shares layers, and its position policy is `"reference"`.

    Args:
        state_dict: Weights, with or without the `model.` prefix that Lightning gives them.
        encoding: `"absolute"`, `"visionllama"`, `"rope_mixed"`, `"liere"` (dense) or `"liere<b>"`.
        image_size: Input size in training: an int for square images, or a tuple with one entry an axis.
        patch_size: The same for a patch.

    Returns:
        The model, without dropout.

    Raises:
        ValueError: If the weights do not fit; the message lists the missing, unexpected and misshapen keys.

    Example:
        >>> weights = {"cls_token": torch.zeros(1, 1, 128)}
        >>> from_reference(weights, encoding="liere8", image_size=32, patch_size=4)
        Traceback (most recent call last):
            ...
        ValueError: state_dict does not fit encoding='liere8', image_size=(32, 32), patch_size=(4, 4):
          missing: mlp_head.1.weight, to_patch_embedding.1.weight, transformer.layers.0.1.fn.net.0.weight
    """
    if not isinstance(encoding, str) or not encoding.startswith(ENCODINGS):
        raise ValueError(f"the published code has no encoding {encoding!r}: {suggest(str(encoding), ENCODINGS)}")
    image, patch = image_and_patch(image_size, patch_size)
    grid = grid_shape(image, patch)
    weights = {name.removeprefix("model."): tensor for name, tensor in state_dict.items()}
    context = f"state_dict does not fit encoding={encoding!r}, image_size={image}, patch_size={patch}"
    missing = sorted(set(ESSENTIAL) - set(weights))
    if missing:
        hint = ["  pass checkpoint['state_dict'], not the checkpoint"] if "state_dict" in weights else []
        raise ValueError("\n".join([f"{context}:", f"  missing: {', '.join(missing)}", *hint]))

    dim = weights["cls_token"].shape[-1]
    if dim % HEAD_DIM:
        raise ValueError(f"{context}:\n  cls_token is {dim} wide, but the published heads are {HEAD_DIM} wide")
    depth = 1 + max(int(found[1]) for name in weights if (found := re.match(r"transformer\.layers\.(\d+)\.", name)))
    shape = TransformerShape(grid, dim, dim // HEAD_DIM, depth, num_prefix_tokens=1)
    options = {"share_layers": True} if encoding.startswith(("liere", "rope_mixed")) else {}
    model = VisionTransformer(
        create_encoding(encoding, shape, **options),
        image_size=image,
        patch_size=patch,
        num_classes=weights["mlp_head.1.weight"].shape[0],
        dim=dim,
        depth=depth,
        heads=shape.num_heads,
        mlp_dim=weights["transformer.layers.0.1.fn.net.0.weight"].shape[0],
        in_channels=max(weights["to_patch_embedding.1.weight"].shape[-1] // math.prod(patch), 1),
        position_policy="reference",
    )
    names = _names(depth)
    _check_keys(weights, _expected_shapes(model, names, shape), context)
    model.load_state_dict(_translate(weights, names, model), strict=True)
    return model


def is_reference(state_dict: Mapping[str, Tensor]) -> bool:
    """Return whether the weights are named as in the published code."""
    return any(name.removeprefix("model.") == "to_patch_embedding.1.weight" for name in state_dict)


def _names(depth: int) -> dict[str, str]:
    layers = {
        f"transformer.layers.{layer}.{theirs}": f"blocks.{layer}.{ours}"
        for layer in range(depth)
        for theirs, ours in LAYER_NAMES.items()
    }
    return NAMES | layers


def _expected_shapes(
    model: VisionTransformer, names: Mapping[str, str], shape: TransformerShape
) -> dict[str, tuple[int, ...]]:
    ours = model.state_dict()
    shapes = {theirs: tuple(ours[name].shape) for theirs, name in names.items()}
    # Kept by the rotary variants too, where it is zero and unused.
    shapes[EMBEDDING] = (1, shape.num_tokens, shape.dim)
    rope = model.encoding
    if isinstance(rope, LieRE):
        blocks = rope.num_heads * rope.num_blocks
        shapes[GENERATORS] = (rope.ndim, shape.depth, blocks, rope.block_size, rope.block_size)
    return shapes


def _check_keys(weights: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]], context: str) -> None:
    problems = {
        "missing": sorted(set(expected) - set(weights)),
        "unexpected": sorted(set(weights) - set(expected)),
        "misshapen": [
            f"{name} is {list(weights[name].shape)}, needs {list(shape)}"
            for name, shape in expected.items()
            if name in weights and tuple(weights[name].shape) != shape
        ],
    }
    lines = [f"  {problem}: {', '.join(keys)}" for problem, keys in problems.items() if keys]
    if lines:
        raise ValueError("\n".join([f"{context}:", *lines]))


def _translate(weights: Mapping[str, Tensor], names: Mapping[str, str], model: VisionTransformer) -> dict[str, Tensor]:
    translated = {ours: weights[theirs] for theirs, ours in names.items()}
    # Published patches are flattened with the channels last, ours with the channels first.
    patch = model.patch_embed
    projection = translated["patch_embed.projection.weight"].unflatten(1, (*patch.patch_size, patch.in_channels))
    translated["patch_embed.projection.weight"] = projection.movedim(-1, 1).flatten(1)
    rope = model.encoding
    if isinstance(rope, Absolute):
        translated["encoding.embedding"] = weights[EMBEDDING]
    if isinstance(rope, LieRE):
        row, column = torch.triu_indices(rope.block_size, rope.block_size, offset=1)
        upper = weights[GENERATORS][:, 0, :, row, column]  # layer 0 is the one that takes effect
        translated["encoding.generators"] = upper.unflatten(1, (rope.num_heads, rope.num_blocks))[None]
    return translated
