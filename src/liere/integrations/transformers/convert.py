"""Converting a model of transformers: a copy with the same weights, whose queries and keys an encoding rotates."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from torch import nn
from transformers import PreTrainedModel

from liere.encodings import TransformerShape
from liere.encodings.liere import LieRE
from liere.errors import InputError, InputTypeError
from liere.integrations.conversion import check_not_converted, check_start, describe, make_encoding
from liere.integrations.transformers.attention import ROTATED
from liere.integrations.transformers.families import FAMILIES, family_of
from liere.integrations.transformers.models import RotatedTower, attach, tower_of
from liere.integrations.transformers.recipe import Recipe, encoding_options
from liere.integrations.transformers.registration import SUPPORTED

__all__ = ["convert"]

Model = TypeVar("Model", bound=nn.Module)


def convert(
    model: Model,
    encoding: str | LieRE = "liere8",
    start: str = "identity",
    keep_absolute: bool = True,
    keep_rope: bool = True,
) -> Model:
    """Return a copy of a Hugging Face model in which a learned encoding rotates queries and keys of its vision tower.

    All other weights are kept, under their names. The new parameters are the `encoding.generators` of the tower, in
    fp32.

    With `start="identity"` the generators are zero and change nothing at first: with `keep_absolute` and `keep_rope`
    the outputs are those of the original. Rotations are applied to the queries and keys before the model's own RoPE, at
    the positions of `liere.grid_positions`: the training grid spans [0, 1] on each axis, and larger ones extend it.
    Qwen2-VL and Qwen2.5-VL have no training grid; there, 16 x 16 patches span [0, 1].

    With `start="rope"` the RoPE of DINOv3, Qwen2-VL or Qwen2.5-VL becomes the generators and is removed; the outputs
    stay the same, at other resolutions too. Positions are those that the RoPE reads. Neighboring planes of the RoPE
    share a block. Training may then fill the rest of the blocks.

    `save_pretrained` and `AutoModel.from_pretrained` work without remote code wherever this package is imported.

    Args:
        model: A ViT, DINOv2 (with or without registers), DINOv3, CLIP, SigLIP, SigLIP 2, VideoMAE, Qwen2-VL or
            Qwen2.5-VL of transformers: the vision tower, or a model with one, such as `ViTForImageClassification`.
        encoding: `"liere8"` or another size of blocks, `"liere"` (dense), `"rope_mixed"`, or a `LieRE` made for the
            model, of which a copy is used.
        start: `"identity"` or `"rope"`.
        keep_absolute: Whether the model keeps its absolute position embedding. Without, it is removed.
        keep_rope: Whether the model keeps its RoPE, after the new rotations. With `start="rope"` it never does.

    Returns:
        The converted copy. It is still an instance of its class, and its encoding is `model.encoding`.

    Raises:
        TypeError: If `model` is not a model of transformers, or is converted already, or if `keep_absolute` or
            `keep_rope` is not a bool.
        ValueError: If its architecture is not supported, on an unknown encoding or start, on encodings without learned
            rotations, or with `start="rope"` and no RoPE to start from.

    Example:
        >>> import torch
        >>> from transformers import ViTConfig, ViTModel
        >>> config = ViTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, image_size=64)
        >>> model = ViTModel(config).eval()
        >>> converted = convert(model, "liere8")
        >>> images = torch.randn(1, 3, 64, 64)
        >>> torch.allclose(converted(images).last_hidden_state, model(images).last_hidden_state, atol=1e-5)
        True
        >>> converted.encoding.generators.shape
        torch.Size([2, 2, 3, 2, 28])
    """
    _check_model(model)
    check_start(start)
    tower = tower_of(model)
    family = family_of(tower)
    assert family is not None
    made = make_encoding(encoding, _shape(tower, family.grid(tower.config)))
    recipe = Recipe(encoding_options(made), start, keep_absolute, keep_rope)
    recipe.check_rope(model, family.rope)
    converted: Any = copy.deepcopy(model)
    # Names of the original checkpoint, to which transformers would translate back when saving.
    vars(converted).pop("_weight_conversions", None)
    attach(converted, recipe, made)
    return converted


def _check_model(model: Any) -> None:
    check_not_converted(model)
    tower = tower_of(model) if isinstance(model, nn.Module) else None
    if isinstance(tower, RotatedTower):
        remedy = (
            "convert the original model as a whole"
            if isinstance(model, SUPPORTED)
            else "use widen on it for larger blocks"
        )
        raise InputTypeError(f"the vision tower of {describe(model)} is converted already: {remedy}")
    if isinstance(model, SUPPORTED):
        return
    if not isinstance(model, PreTrainedModel):
        remedy = "load one with AutoModel.from_pretrained" if tower is None else _advise(model, tower)
        raise InputTypeError(f"model must be a model of transformers, got {describe(model)}: {remedy}")
    if tower is not None:
        raise InputError(f"{describe(model)} cannot be converted as a whole: {_advise(model, tower)}")
    families = ", ".join(family.name for family in FAMILIES)
    names = ", ".join(sorted(cls.__name__ for cls in SUPPORTED))
    raise InputError(f"{describe(model)} cannot be converted: supported are {families}, with the classes {names}")


def _advise(model: nn.Module, tower: Any) -> str:
    """Return how to convert a tower inside a model that cannot be converted, and how to save it."""
    name = next(name for name, module in model.named_modules() if module is tower)
    advice = f"convert its vision tower {name!r} and put it back"
    if not isinstance(model, PreTrainedModel):
        return advice
    entry = next((entry for entry, value in vars(model.config).items() if value is tower.config), None)
    if entry is None:
        return f"{advice}, and save its state_dict, because save_pretrained would lose the encoding"
    return f"{advice}, then set its config.{entry} to the config of the converted tower, without which it is not saved"


def _shape(tower: Any, grid: tuple[int, ...]) -> TransformerShape:
    attentions = [module for module in tower.modules() if type(module) in ROTATED]
    if not attentions:
        names = ", ".join(sorted(cls.__name__ for cls in ROTATED))
        raise InputError(f"{describe(tower)} has none of the attentions that can be converted: {names}")
    heads = tower.config.num_attention_heads
    dim = getattr(tower.config, "embed_dim", tower.config.hidden_size)  # of Qwen2-VL's tower, not of its text
    return TransformerShape(grid, dim, heads, len(attentions))
