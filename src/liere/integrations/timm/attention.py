"""timm's attention with rotated queries and keys; rotations arrive as an argument, in the place of the mask.

timm hands the `attn_mask` of a forward pass unread to every block and every attention. A converted model puts an
object there that holds the mask and the rotations of all layers. Nothing is stored in modules between two calls, so
that threads, gradient checkpointing and `torch.compile` see nothing but functions of their arguments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from timm.layers import Attention, AttentionRope, apply_rot_embed_cat, maybe_add_mask, resolve_self_attn_mask
from timm.models.eva import EvaAttention
from torch import Tensor, nn
from torch.nn import functional as F

from liere.encodings.contract import Rotations
from liere.errors import InputError
from liere.integrations.rotating import turn

__all__ = ["ROTATED", "Positioned", "RotatedAttention"]


class Positioned(NamedTuple):
    """What blocks and attentions get as `attn_mask`."""

    mask: Tensor | None
    layers: list[Rotations]
    """Rotations of each layer."""
    num_prefix_tokens: int
    halves: bool = False
    """Whether planes are made of the two halves of a head, so that these are interleaved before rotating."""
    checkpoint: bool = False
    """Whether blocks have to be recomputed in the backward pass."""


class RotatedAttention(nn.Module):
    """Attention as timm computes it, with rotations between the normalization of queries and keys and timm's RoPE."""

    layer: int
    """Which rotations are this attention's."""
    # Of timm's classes, which are mixed in.
    q_norm: Any
    k_norm: Any
    norm: Any
    gate: Any
    proj: Any
    proj_drop: Any

    def forward(
        self,
        x: Tensor,
        rope: Tensor | None = None,
        attn_mask: Positioned | Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attend.

        Args:
            x: The tokens `[batch, tokens, dim]`.
            rope: timm's own RoPE, where the model keeps it.
            attn_mask: Rotations, and the mask.
            is_causal: Whether tokens see only those before them.
        """
        if not isinstance(attn_mask, Positioned):
            raise InputError(
                "this attention needs the positions of its tokens: call the converted model, its forward_features or "
                "its forward_intermediates, not a block by itself"
            )
        q, k, v = (part.transpose(1, 2) for part in _project(self, x))
        q, k = self.q_norm(q), self.k_norm(k)
        groups = q.shape[1] // k.shape[1]
        if groups > 1:  # before rotating: each head of the queries has its own rotations
            k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        q, k = turn(q, k, attn_mask.layers[self.layer], attn_mask.num_prefix_tokens, halves=attn_mask.halves)
        if rope is not None:
            q, k = (_apply_rope(part, rope, self).type_as(v) for part in (q, k))
        attended = _attend(self, q, k, v, attn_mask.mask, is_causal)
        attended = self.norm(attended.transpose(1, 2).flatten(2))
        if self.gate is not None:
            attended = attended * self.gate(x).sigmoid()
        return self.proj_drop(self.proj(attended))


def _project(attention: Any, x: Tensor) -> tuple[Tensor, ...]:
    """Return queries, keys and values `[batch, tokens, heads, head_dim]`."""
    if attention.qkv is None:
        projections = attention.q_proj, attention.k_proj, attention.v_proj
        return tuple(project(x).unflatten(-1, (-1, attention.head_dim)) for project in projections)
    if getattr(attention, "q_bias", None) is None:
        qkv = attention.qkv(x)
    else:
        bias = torch.cat([attention.q_bias, attention.k_bias, attention.v_bias])
        separate = attention.qkv_bias_separate
        qkv = attention.qkv(x) + bias if separate else F.linear(x, attention.qkv.weight, bias)
    # Unbinding before transposing lets the gradients of q, k and v meet in the layout of the projection.
    return qkv.unflatten(-1, (3, attention.num_heads, attention.head_dim)).unbind(2)


def _apply_rope(x: Tensor, rope: Tensor, attention: Any) -> Tensor:
    prefix = attention.num_prefix_tokens
    rotated = apply_rot_embed_cat(x[:, :, prefix:], rope, half=attention.rotate_half)
    return torch.cat([x[:, :, :prefix], rotated], dim=2) if prefix else rotated


def _attend(attention: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Return the mean values `[batch, heads, tokens, head_dim]`."""
    if attention.fused_attn:
        dropout_p = attention.attn_drop.p if attention.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal)
    scores = (q * attention.scale) @ k.transpose(-2, -1)
    scores = maybe_add_mask(scores, resolve_self_attn_mask(q.shape[2], scores, mask, is_causal))
    return attention.attn_drop(scores.softmax(dim=-1)) @ v


class _Attention(RotatedAttention, Attention):  # type: ignore[misc]
    """timm's `Attention`, rotated."""


class _AttentionRope(RotatedAttention, AttentionRope):  # type: ignore[misc]
    """timm's `AttentionRope`, rotated."""


class _EvaAttention(RotatedAttention, EvaAttention):  # type: ignore[misc]
    """timm's `EvaAttention`, rotated."""


ROTATED: dict[type[nn.Module], type[RotatedAttention]] = {
    Attention: _Attention,
    AttentionRope: _AttentionRope,
    EvaAttention: _EvaAttention,
}
"""The rotated class of each attention that can be converted."""
