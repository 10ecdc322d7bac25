"""The arguments of `liere.create_model` that build a model again, and whether its weights fit what they build."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from liere.encodings import PositionEncoding
from liere.encodings.registry import encoding_name, find_encoding, is_built_in
from liere.errors import InputError, InputTypeError
from liere.presets import create_model
from liere.vit import VisionTransformer

__all__ = ["check_described", "describe"]


def describe(model: VisionTransformer) -> dict[str, Any]:
    """Return arguments of `create_model` that build the model.

    Args:
        model: The model.

    Returns:
        The arguments, in terms that JSON keeps. The number of classes is that of the classifier that the model has.

    Raises:
        TypeError: If it is not a model of `liere.create_model`.
        ValueError: If its encoding is not part of this library.
    """
    if type(model) is not VisionTransformer:
        raise InputTypeError(f"model must come from liere.create_model, got {type(model).__name__}")
    blocks: list[Any] = list(model.blocks)
    block = blocks[0]
    return {
        "encoding": encoding_name(type(model.encoding)),
        "encoding_options": _encoding_options(model.encoding),
        "image_size": list(model.image_size),
        "patch_size": list(model.patch_embed.patch_size),
        "num_classes": _num_classes(model),
        "in_channels": model.patch_embed.in_channels,
        "pool": model.pool,
        "num_registers": 0 if model.registers is None else model.registers.shape[1],
        "dropout": model.dropout.p,
        "attn_dropout": block.attention.attn_dropout,
        "drop_path": blocks[-1].drop_path.probability,
        "qk_norm": hasattr(block.attention.q_norm, "weight"),
        "qkv_bias": block.attention.qkv.bias is not None,
        "position_policy": model.position_policy,
        **{f"position_{name}": value for name, value in asdict(model.position_augmentation).items()},
        "cls_position": model.cls_position,
        "attention_scale": model.attention_scale,
        "dim": model.dim,
        "depth": len(model.blocks),
        "heads": block.attention.heads,
        "mlp_dim": block.mlp[0].out_features,
        "spacing": list(model.spacing),
    }


def _encoding_options(encoding: PositionEncoding) -> dict[str, Any]:
    cls = type(encoding)
    if not is_built_in(cls):
        raise InputError(
            f"encoding {cls.__name__} is not part of this library, so a file cannot describe it: share its code and "
            "model.state_dict() instead"
        )
    implied = find_encoding(encoding_name(cls))[1]
    names = list(inspect.signature(cls.build).parameters)[1:]
    return {name: getattr(encoding, name) for name in names if name not in implied}


def check_described(model: VisionTransformer, arguments: dict[str, Any]) -> None:
    """Check that arguments build a model that has the weights of this one.

    Args:
        model: The model.
        arguments: What `describe` returned for it.

    Raises:
        ValueError: If a weight is missing, is new, or has another shape, because a part of the model was replaced.
    """
    arguments = dict(arguments)
    options = arguments.pop("encoding_options")
    with torch.device("meta"):
        built = create_model(**arguments, **options)
    expected, found = _shapes(built), _shapes(model)
    for name in sorted({**expected, **found}, key=lambda name: (name.startswith("head."), name)):
        if found.get(name) == expected.get(name):
            continue
        given, usual = (f"shape {each[name]}" if name in each else "no such weight" for each in (found, expected))
        remedy = f"call model.reset_classifier({_num_classes(model)}) and train again, or " if "head." in name else ""
        raise InputError(
            f"model has {given} for {name}, where liere.create_model makes {usual}, so a file cannot describe it: "
            f"{remedy}share its code and model.state_dict() instead"
        )


def _shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in model.state_dict().items() if name != "_extra_state"}


def _num_classes(model: VisionTransformer) -> int:
    """Return the number of logits, also where the classifier was replaced."""
    if isinstance(model.head, nn.Linear):
        return model.head.out_features
    return 0 if isinstance(model.head, nn.Identity) else model.num_classes
