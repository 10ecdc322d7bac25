"""Converting a timm model: a copy with the same weights, whose queries and keys an encoding rotates."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch
from timm.models.deit import VisionTransformerDistilled
from torch import Tensor, nn

from liere.encodings import TransformerShape
from liere.encodings.liere import LieRE
from liere.errors import InputError, InputTypeError
from liere.integrations.conversion import check_not_converted, check_start, describe, make_encoding
from liere.integrations.planes import set_planes
from liere.integrations.position_rules import GridRule, PositionMemory
from liere.integrations.timm.attention import ROTATED, Positioned
from liere.integrations.timm.models import FAMILIES, rotate_class
from liere.integrations.timm.rope import RopeStart, read_rope

__all__ = ["attach", "convert"]

SUPPORTED = "VisionTransformer (ViT, DeiT, CLIP, SigLIP, DINOv2), Eva (EVA-02, RoPE-ViT, DINOv3) and NaFlexVit"
Model = TypeVar("Model", bound=nn.Module)


def convert(
    model: Model,
    encoding: str | LieRE = "liere8",
    start: str = "identity",
    keep_absolute: bool = True,
    keep_rope: bool = True,
) -> Model:
    """Return a copy of a timm model in which a learned encoding rotates queries and keys.

    All other weights are kept, under their names. The new parameters are `encoding.generators`, in fp32: a checkpoint
    of the original loads with `strict=False`, and they are all that is missing.

    With `start="identity"` the generators are zero and change nothing at first: with `keep_absolute` and `keep_rope`
    the logits are those of the original. Rotations are applied to the queries and keys before the model's own RoPE, at
    the positions of `liere.grid_positions`: the grid of the model spans [0, 1] on each axis, and larger ones extend it.

    With `start="rope"` the model's own RoPE, whatever its kind, becomes the generators and is removed; the logits stay
    the same, at other resolutions too. Positions are those that the RoPE reads. Neighboring planes of the RoPE, which
    have neighboring frequencies, share a block. Training may then fill the rest of the blocks.

    Args:
        model: A `VisionTransformer`, `Eva` or `NaFlexVit` of timm.
        encoding: `"liere8"` or another size of blocks, `"liere"` (dense), `"rope_mixed"`, or a `LieRE` made for the
            model, of which a copy is used.
        start: `"identity"` or `"rope"`.
        keep_absolute: Whether the model keeps its absolute position embedding. Without, it is removed.
        keep_rope: Whether the model keeps its own RoPE besides. `start="rope"` always replaces it.

    Returns:
        The converted copy. It is still an instance of its class of timm, and its encoding is `model.encoding`.

    Raises:
        TypeError: If `model` is not a timm model.
        ValueError: If its architecture is not supported, on an unknown encoding or start, on encodings without learned
            rotations, or with `start="rope"` and no RoPE to start from, or one on the `meta` device.

    Example:
        >>> import timm
        >>> model = timm.create_model("vit_tiny_patch16_224", depth=2).eval()
        >>> converted = convert(model, "liere8")
        >>> images = torch.randn(1, 3, 224, 224)
        >>> torch.allclose(converted(images), model(images), atol=1e-5)
        True
        >>> converted.encoding.generators.shape
        torch.Size([2, 2, 3, 8, 28])
    """
    _check_model(model)
    check_start(start)
    rope = getattr(model, "rope", None)
    if start == "rope" and rope is None:
        raise InputError(f"start='rope' needs a model with RoPE, but {describe(model)} has none: use start='identity'")
    if start == "rope":
        _check_has_numbers(rope)
    found = read_rope(rope) if start == "rope" else None
    made = make_encoding(encoding, _shape(model))
    with torch.no_grad():
        if found is None:
            made.init_scale = 0.0  # so that reset_parameters, after building on meta, starts there as well
            made.reset_parameters()
        else:
            set_planes(made, found.frequencies[: made.depth])  # blocks may have been pruned
    converted = copy.deepcopy(model)
    if not keep_absolute:
        _drop_absolute(converted)
    if not keep_rope or found is not None:
        _drop_rope(converted)
    attach(converted, made, found)
    return converted


def attach(model: Any, encoding: LieRE, rope: RopeStart | None = None) -> None:
    """Make a model of timm rotate queries and keys by an encoding, in place.

    Args:
        model: The model.
        encoding: Its encoding.
        rope: What the encoding stands for, if it was made from a RoPE.
    """
    attentions = _attentions(model)
    for layer, attention in enumerate(attentions):
        _rotate_attention(attention, layer)
    device = next(model.parameters()).device
    rotate_class(model)
    model.encoding = encoding.to(device).train(model.training)
    model.position_rule = GridRule(_training_grid(model)) if rope is None else rope.rule
    model.halves = rope is not None and rope.halves
    model.attentions_per_block = len(attentions) // len(model.blocks)
    model._memory = PositionMemory()


def _check_model(model: Any) -> None:
    check_not_converted(model)
    if isinstance(model, tuple(FAMILIES)):
        return
    if not isinstance(model, nn.Module) or not type(model).__module__.startswith("timm."):
        raise InputTypeError(
            f"model must be a timm model, got {describe(model)}: make one with timm.create_model, such as "
            "'vit_small_patch16_224'"
        )
    if isinstance(getattr(model, "model", None), tuple(FAMILIES)):  # a FeatureGetterNet
        raise InputError(
            f"{describe(model)} cannot be converted, but the model inside can: convert its `.model`, as in "
            "features.model = convert(features.model)"
        )
    raise InputError(f"{describe(model)} cannot be converted: timm's classes that can are {SUPPORTED}")


def _check_has_numbers(rope: Any) -> None:
    """Raise `ValueError` if a RoPE is on the `meta` device, where it has no frequencies to read."""
    if any(value.is_meta for value in (*rope.parameters(), *rope.buffers())):
        raise InputError(
            "start='rope' reads the frequencies of the model's RoPE, but the model is on the meta device, which has "
            "none: create and convert it on the CPU"
        )


def _shape(model: Any) -> TransformerShape:
    attentions = _attentions(model)
    heads, head_dim = attentions[0].num_heads, attentions[0].head_dim
    return TransformerShape(_training_grid(model), heads * head_dim, heads, len(attentions), model.num_prefix_tokens)


def _training_grid(model: Any) -> tuple[int, int]:
    grid = model.patch_embed.grid_size if hasattr(model, "patch_embed") else model.embeds.pos_embed_grid_size
    return tuple(grid or (16, 16))  # a NaFlexVit may have been built without any; 16 x 16 is timm's default


def _attentions(model: Any) -> list[Any]:
    """Return the attentions of all blocks, in order."""
    _check_patch_dropout(model)
    found: list[Any] = []
    for block in model.blocks:
        own = [module for module in block.modules() if type(module) in ROTATED]
        other = [type(m).__name__ for m in block.modules() if hasattr(m, "q_norm") and type(m) not in ROTATED]
        if other or not own:
            names = ", ".join(sorted(cls.__name__ for cls in ROTATED))
            raise InputError(
                f"{describe(model)} has blocks of type {type(block).__name__} with the attention "
                f"{other[0] if other else 'of another kind'}, which cannot be converted: timm's classes that can are "
                f"{names}"
            )
        found += own
    return found


def _check_patch_dropout(model: Any) -> None:
    if getattr(model.patch_drop, "prob", 0):
        raise InputError(
            f"the model drops patches in training (patch_drop_rate={model.patch_drop.prob}), and their positions would "
            "be lost: create it with patch_drop_rate=0"
        )


def _rotate_attention(attention: Any, layer: int) -> None:
    """Give an attention the class that rotates, and make sure that it computes what timm's class computes."""
    weight = attention.proj.weight
    probe, expected = None, None
    if weight.device.type != "meta":
        generator = torch.Generator().manual_seed(layer)
        probe = torch.randn(1, 3, attention.proj.out_features, generator=generator).to(weight)
        expected = _evaluate(attention, probe)
    attention.__class__ = ROTATED[type(attention)]
    attention.layer = layer
    if probe is None or expected is None:
        return
    nothing = Positioned(None, [None] * (layer + 1), num_prefix_tokens=0)
    found = _evaluate(attention, probe, attn_mask=nothing)
    tolerance = 64 * torch.finfo(probe.dtype).eps
    if not torch.allclose(found, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max())):
        raise InputError(
            f"this version of timm computes {type(attention).__mro__[2].__name__} in a way that liere does not know: "
            "install timm 1.0.31"
        )


def _evaluate(attention: nn.Module, x: Tensor, **options: Any) -> Tensor:
    training = attention.training
    attention.eval()
    with torch.no_grad():
        found = attention(x, **options)
    attention.train(training)
    return found


def _drop_absolute(model: Any) -> None:
    if isinstance(model, VisionTransformerDistilled):  # always adds one
        zeros = torch.zeros_like(model.pos_embed)
        del model.pos_embed
        model.register_buffer("pos_embed", zeros, persistent=False)
        return
    holder = getattr(model, "embeds", model)
    for name in ("pos_embed", "pos_embed_y", "pos_embed_x"):
        if getattr(holder, name, None) is not None:
            setattr(holder, name, None)
    if hasattr(holder, "pos_embed_type"):
        holder.pos_embed_type = "none"


def _drop_rope(model: Any) -> None:
    for name, value in [("rope", None), ("rope_mixed", False), ("rope_is_mixed", False)]:
        if hasattr(model, name):
            setattr(model, name, value)
