"""The RoPE of a timm model as commuting generators: which positions it reads, and how fast each plane turns."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from timm.layers.pos_embed_sincos import (
    RotaryEmbeddingCat,
    RotaryEmbeddingDinoV3,
    RotaryEmbeddingMixed,
    RotaryEmbeddingMRope,
)
from torch import Tensor

from liere.errors import InputError
from liere.integrations.position_rules import RopeRule

__all__ = ["RopeStart", "read_rope"]


class RopeStart(NamedTuple):
    """What takes the place of a RoPE."""

    rule: RopeRule
    frequencies: Tensor
    """Radians per unit of position `[layers, 2, heads, head_dim / 2]`, rows before columns; layers or heads may be 1.

    Plane `i` turns by `[[cos, -sin], [sin, cos]]` of the sum over both axes.
    """
    halves: bool
    """Whether plane `i` is made of dimensions `i` and `i + head_dim / 2` of a head, instead of `2i` and `2i + 1`."""


def read_rope(rope: Any) -> RopeStart:
    """Return the rule and the frequencies of a rotary embedding of timm.

    Raises:
        ValueError: If it is of a kind that this library does not know.
    """
    read = READERS.get(type(rope))
    if read is None:
        known = ", ".join(sorted(cls.__name__ for cls in READERS))
        raise InputError(
            f"start='rope' cannot read a RoPE of type {type(rope).__name__}, only {known}: use start='identity'"
        )
    return read(rope)


def _augmentation(rope: Any) -> dict[str, Any]:
    return {
        "shift": rope.shift_coords,
        "jitter": rope.jitter_coords,
        "rescale": rope.rescale_coords,
        "columns_first": rope.grid_indexing == "xy",
    }


def _axial(bands: Tensor, rope: Any) -> Tensor:
    """Return frequencies of planes of which the first half turns with one axis and the second with the other."""
    nothing = torch.zeros_like(bands)
    first, second = torch.cat([bands, nothing]), torch.cat([nothing, bands])
    return _in_order(torch.stack([first, second]), rope)[None, :, None]


def _in_order(axes: Tensor, rope: Any) -> Tensor:
    """Return what is given by coordinate, in the order of the RoPE, as rows before columns."""
    return axes.flip(0) if rope.grid_indexing == "xy" else axes


def _read_cat(rope: Any) -> RopeStart:
    reference = rope.ref_feat_shape
    rule = RopeRule(
        kind=rope.grid_type,
        offset=0.0 if rope.grid_type == "pixel" else float(rope.grid_offset),
        reference=None if reference is None else (int(reference[0]), int(reference[1])),
        normalize=rope.normalize_coords,
        **_augmentation(rope),
    )
    return RopeStart(rule, _axial(rope.bands, rope), rope.rotate_half)


def _read_dinov3(rope: Any) -> RopeStart:
    rule = RopeRule("centered", float(rope.grid_offset), normalize=rope.normalize_coords, **_augmentation(rope))
    return RopeStart(rule, _axial(2 * math.pi / rope.periods, rope), rope.rotate_half)


def _read_mixed(rope: Any) -> RopeStart:
    frequencies = _in_order(rope.freqs.detach(), rope).transpose(0, 1)  # [depth, 2, heads, planes]
    return RopeStart(RopeRule(**_augmentation(rope)), frequencies, halves=False)


def _read_mrope(rope: Any) -> RopeStart:
    rows, columns = (torch.where(rope.axis == axis, rope.inv_freq, 0) for axis in (1, 2))
    return RopeStart(RopeRule(**_augmentation(rope)), torch.stack([rows, columns])[None, :, None], halves=True)


READERS = {
    RotaryEmbeddingCat: _read_cat,
    RotaryEmbeddingDinoV3: _read_dinov3,
    RotaryEmbeddingMixed: _read_mixed,
    RotaryEmbeddingMRope: _read_mrope,
}
