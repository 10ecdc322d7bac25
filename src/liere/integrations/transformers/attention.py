"""The attention of transformers' models with rotated queries and keys; rotations arrive as an argument.

Models of transformers pass unknown keyword arguments of `forward` on to their layers and attentions. A converted model
adds one, which holds the rotations of all layers. Nothing is stored in modules or in context variables between two
calls, so that threads, gradient checkpointing (which calls layers again in the backward pass, outside the model's
`forward`) and `torch.compile` (which does not trace context variables) see nothing but functions of their arguments.

Queries and keys are rotated here, and then given to the attention function that the configuration names. A function
registered with `AttentionInterface` could rotate as well, but it would be replaced, and the encoding lost without
notice, by `set_attn_implementation("eager")`; it would need its own mask functions; and it could not know which of the
packed images of Qwen2-VL it is called for. This way, "eager", "sdpa" and other implementations work as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.clip import modeling_clip as clip
from transformers.models.dinov2 import modeling_dinov2 as dinov2
from transformers.models.dinov2_with_registers import modeling_dinov2_with_registers as dinov2_with_registers
from transformers.models.dinov3_vit import modeling_dinov3_vit as dinov3
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as qwen2_5
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2
from transformers.models.siglip import modeling_siglip as siglip
from transformers.models.siglip2 import modeling_siglip2 as siglip2
from transformers.models.videomae import modeling_videomae as videomae
from transformers.models.vit import modeling_vit as vit

from liere.encodings.contract import Rotations
from liere.errors import InputError
from liere.integrations.rotating import turn

__all__ = ["ROTATED", "Positioned", "RotatedAttention"]


class Positioned(NamedTuple):
    """What attentions get as the keyword argument `liere`."""

    layers: list[Rotations]
    """Rotations of each layer."""
    num_prefix_tokens: int
    halves: bool = False
    """Whether planes are made of the two halves of a head, so that these are interleaved before rotating."""


class RotatedAttention(nn.Module):
    """Attention as transformers computes it, with rotations before the model's own RoPE."""

    layer: int
    """Which rotations are this attention's."""
    projections: ClassVar[tuple[str, str, str]] = ("q_proj", "k_proj", "v_proj")
    output: ClassVar[str | None] = "o_proj"
    settings: ClassVar[tuple[str, str, str]] = ("head_dim", "scaling", "attention_dropout")
    """Names of the width of a head, the scale of the scores and the dropout rate."""
    eager: ClassVar[Callable[..., Any]]
    """The attention function of this model without fused kernels."""

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        position_embeddings: tuple[Tensor | None, Tensor | None] | None = None,
        liere: Positioned | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            hidden_states: The tokens `[batch, tokens, dim]`.
            attention_mask: The mask, as the attention function takes it.
            position_embeddings: The model's own RoPE, where it has one and keeps it.
            liere: Rotations.
            **options: For the attention function.
        """
        head_dim, scaling, dropout = (getattr(self, name) for name in self.settings)
        q, k, v = (
            getattr(self, name)(hidden_states).unflatten(-1, (-1, head_dim)).transpose(1, 2)
            for name in self.projections
        )
        q, k = _rotate(q, k, liere, self.layer)
        if position_embeddings is not None and position_embeddings[0] is not None:
            q, k = dinov3.apply_rotary_pos_emb(q, k, *position_embeddings)
        options = {"dropout": dropout if self.training else 0.0, "scaling": scaling, **options}
        attended, weights = _attention_function(self)(self, q, k, v, attention_mask, **options)
        attended = attended.reshape(*hidden_states.shape[:-1], -1).contiguous()
        return attended if self.output is None else getattr(self, self.output)(attended), weights


class RotatedPackedAttention(nn.Module):
    """Attention of Qwen2-VL and Qwen2.5-VL, where the images of a batch follow each other in one sequence."""

    layer: int
    config: Any
    qkv: Any
    proj: Any
    eager: ClassVar[Callable[..., Any]]

    def forward(
        self,
        hidden_states: Tensor,
        cu_seqlens: Tensor,
        position_embeddings: tuple[Tensor | None, Tensor | None] | None = None,
        max_seqlen: int | None = None,
        liere: Positioned | None = None,
        **options: Any,
    ) -> Tensor:
        """Attend.

        Args:
            hidden_states: The tokens `[tokens, dim]`.
            cu_seqlens: Where images, or the windows of Qwen2.5-VL, begin and end.
            position_embeddings: The model's own RoPE, if it keeps it.
            max_seqlen: Tokens of the largest of them.
            liere: Rotations.
            **options: For the attention function.
        """
        qkv = self.qkv(hidden_states).unflatten(-1, (3, self.num_heads, -1)).transpose(0, 2)  # [heads, 3, tokens, ...]
        q, k, v = (part[None] for part in qkv.unbind(1))
        q, k = _rotate(q, k, liere, self.layer)
        if position_embeddings is not None and position_embeddings[0] is not None:
            q, k = (part.transpose(1, 2) for part in (q, k))
            q, k = qwen2.apply_rotary_pos_emb_vision(q, k, *position_embeddings)
            q, k = (part.transpose(1, 2) for part in (q, k))
        options = {"scaling": self.scaling, "is_causal": False, **options}
        options["dropout"] = self.attention_dropout if self.training else 0.0
        attend = _attention_function(self)
        if "flash" in (self.config._attn_implementation or ""):  # it takes all images at once
            longest = int((cu_seqlens[1:] - cu_seqlens[:-1]).max()) if max_seqlen is None else max_seqlen
            ends: dict[str, Any] = {"cu_seq_lens_q": cu_seqlens, "cu_seq_lens_k": cu_seqlens}
            ends |= {"max_length_q": longest, "max_length_k": longest}
            attended = attend(self, q, k, v, attention_mask=None, **ends, **options)[0]
        else:
            lengths = (cu_seqlens[1:] - cu_seqlens[:-1]).tolist()
            images = zip(*(part.split(lengths, dim=2) for part in (q, k, v)), strict=True)
            attended = torch.cat([attend(self, *image, attention_mask=None, **options)[0] for image in images], dim=1)
        return self.proj(attended.reshape(hidden_states.shape[0], -1).contiguous())


def _attention_function(attention: Any) -> Callable[..., Any]:
    return ALL_ATTENTION_FUNCTIONS.get_interface(attention.config._attn_implementation, attention.eager)


def _rotate(q: Tensor, k: Tensor, positioned: Positioned | None, layer: int) -> list[Tensor]:
    if positioned is None:
        raise InputError(
            "this attention needs the positions of its tokens: call the converted model, not its encoder or a layer by "
            "itself"
        )
    return turn(q, k, positioned.layers[layer], positioned.num_prefix_tokens, halves=positioned.halves)


class _ViT(RotatedAttention, vit.ViTAttention):  # type: ignore[misc]
    eager = staticmethod(vit.eager_attention_forward)


class _Dinov2(RotatedAttention, dinov2.Dinov2Attention):  # type: ignore[misc]
    eager = staticmethod(dinov2.eager_attention_forward)


class _Dinov2WithRegisters(RotatedAttention, dinov2_with_registers.Dinov2WithRegistersAttention):  # type: ignore[misc]
    eager = staticmethod(dinov2_with_registers.eager_attention_forward)


class _DINOv3(RotatedAttention, dinov3.DINOv3ViTAttention):  # type: ignore[misc]
    settings = ("head_dim", "scaling", "dropout")
    eager = staticmethod(dinov3.eager_attention_forward)


class _CLIP(RotatedAttention, clip.CLIPAttention):  # type: ignore[misc]
    output = "out_proj"
    settings = ("head_dim", "scale", "dropout")
    eager = staticmethod(clip.eager_attention_forward)


class _Siglip(RotatedAttention, siglip.SiglipAttention):  # type: ignore[misc]
    output = "out_proj"
    settings = ("head_dim", "scale", "dropout")
    eager = staticmethod(siglip.eager_attention_forward)


class _Siglip2(RotatedAttention, siglip2.Siglip2Attention):  # type: ignore[misc]
    output = "out_proj"
    settings = ("head_dim", "scale", "dropout")
    eager = staticmethod(siglip2.eager_attention_forward)


class _VideoMAE(RotatedAttention, videomae.VideoMAESelfAttention):  # type: ignore[misc]
    projections = ("query", "key", "value")
    output = None
    settings = ("attention_head_size", "scaling", "dropout_prob")
    eager = staticmethod(videomae.eager_attention_forward)


class _Qwen2VL(RotatedPackedAttention, qwen2.VisionAttention):  # type: ignore[misc]
    eager = staticmethod(qwen2.eager_attention_forward)


class _Qwen25VL(RotatedPackedAttention, qwen2_5.Qwen2_5_VLVisionAttention):  # type: ignore[misc]
    eager = staticmethod(qwen2_5.eager_attention_forward)


_SINGLE = _ViT, _Dinov2, _Dinov2WithRegisters, _DINOv3, _CLIP, _Siglip, _Siglip2, _VideoMAE
_PACKED = _Qwen2VL, _Qwen25VL
ROTATED: dict[type[nn.Module], type[nn.Module]] = {rotated.__mro__[2]: rotated for rotated in (*_SINGLE, *_PACKED)}
"""The rotated class of each attention that can be converted."""
