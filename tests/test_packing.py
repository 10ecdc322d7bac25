"""Images of several sizes in one sequence."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_mask

import liere
from liere import grid_positions, packed_positions
from liere.packing import segment_mask, segment_mask_mod
from tests.models import small_model
from tests.numerics import assert_close

several = st.integers(1, 3).flatmap(
    lambda ndim: st.lists(st.tuples(*[st.integers(1, 5)] * ndim), min_size=1, max_size=5)
)


@given(
    shapes=several,
    policy=st.sampled_from(["extend", "rescale", "reference"]),
    prefix=st.integers(0, 2),
    has_reference=st.booleans(),
)
def test_each_image_has_its_own_grid(shapes, policy, prefix, has_reference):
    reference = (4,) * len(shapes[0]) if has_reference else None
    packed = packed_positions(shapes, reference_shape=reference, policy=policy, num_prefix_tokens=prefix)
    assert packed.cu_seqlens.dtype == torch.int32
    assert packed.cu_seqlens[0] == 0
    assert packed.cu_seqlens[-1] == len(packed.positions) == len(packed.segments)
    assert packed.max_seqlen == max(prefix + math.prod(shape) for shape in shapes)
    assert isinstance(packed.max_seqlen, int)
    for index, (shape, first, last) in enumerate(
        zip(shapes, packed.cu_seqlens[:-1].tolist(), packed.cu_seqlens[1:].tolist(), strict=True)
    ):
        assert packed.segments[first:last].eq(index).all()
        own = packed.positions[first:last]
        assert not own[:prefix].any()
        assert torch.equal(own[prefix:], grid_positions(shape, reference_shape=reference, policy=policy))


@given(shapes=several, prefix=st.integers(0, 1))
def test_the_mask_says_which_tokens_belong_together(shapes, prefix):
    packed = packed_positions(shapes, num_prefix_tokens=prefix)
    blocks = [torch.ones(n, n, dtype=torch.bool) for n in packed.cu_seqlens.diff().tolist()]
    assert torch.equal(packed.mask(), torch.block_diag(*blocks).bool()[None])


def test_device_and_dtype():
    packed = packed_positions([(2, 2), (1, 3)], device="meta", dtype=torch.float64)
    assert packed.positions.dtype == torch.float64
    assert {x.device.type for x in packed[:3]} == {"meta"}


class TestMasks:
    def test_batched_segments_and_other_keys(self):
        segments, keys = torch.randint(0, 3, (2, 5)), torch.randint(0, 3, (2, 7))
        mask = segment_mask(segments, keys)
        assert mask.shape == (2, 1, 5, 7)
        for b in range(2):
            for i in range(5):
                for j in range(7):
                    assert mask[b, 0, i, j] == (segments[b, i] == keys[b, j])

    @pytest.mark.parametrize("batch", [(), (2,)])
    def test_flex_attention_sees_the_same(self, batch):
        flex = pytest.importorskip("torch.nn.attention.flex_attention")
        segments, keys = torch.randint(0, 3, (*batch, 5)), torch.randint(0, 3, (*batch, 7))
        sizes = {"B": 2 if batch else None, "H": None, "device": "cpu"}
        found = flex.create_mask(segment_mask_mod(segments, keys), Q_LEN=5, KV_LEN=7, **sizes)
        assert torch.equal(found, segment_mask(segments, keys).expand_as(found))
        found = flex.create_mask(segment_mask_mod(segments), Q_LEN=5, KV_LEN=5, **sizes)
        assert torch.equal(found, segment_mask(segments).expand_as(found))

    def test_block_masks_skip_blocks_of_other_images(self):
        flex = pytest.importorskip("torch.nn.attention.flex_attention")
        packed = packed_positions([(16, 16), (16, 16)])
        mask = flex.create_block_mask(packed.mask_mod(), None, None, 512, 512, device="cpu")
        assert torch.equal(mask.to_dense()[0, 0], torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)).int())

    @pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
    def test_flex_attention_gives_what_a_dense_mask_gives(self):
        flex = pytest.importorskip("torch.nn.attention.flex_attention")
        packed = packed_positions([(4, 6), (3, 3), (2, 8)])
        q, k, v = torch.randn(3, 1, 2, len(packed.positions), 16).unbind()
        with torch.no_grad():  # flex_attention has no gradients on CPU
            q, k = liere.LieRE(2, 16, num_heads=2)(q, k, packed.positions)
        tokens = q.shape[2]
        mask = flex.create_block_mask(packed.mask_mod(), None, None, tokens, tokens, device="cpu")
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=packed.mask())
        assert_close(flex.flex_attention(q, k, v, block_mask=mask), expected, 1e-5)

    def test_padding_attends_to_itself_only(self):
        segments = torch.tensor([[0, 0, 1, -1], [0, 1, -1, -1]])
        mask = segment_mask(segments)
        assert mask.any(-1).all(), "rows without keys would give NaN"
        assert not mask[0, 0, :3, 3].any()


def features_of_packed(model: torch.nn.Module, images: list[Tensor], attend) -> Tensor:
    """Return the tokens of several images after a model's layers, computed in one sequence."""
    parts, shapes = [], []
    for image in images:
        tokens, grid = model.patch_embed(image[None])
        parts += [model.cls_token[0], tokens[0]]
        shapes.append(grid)
    packed = packed_positions(shapes, reference_shape=model.grid, num_prefix_tokens=1)
    x = torch.cat(parts)[None]
    for layer, block in enumerate(model.blocks):
        qkv = block.attention.qkv(block.norm1(x)).unflatten(-1, (3, block.attention.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = model.encoding(q, k, packed.positions, layer=layer)
        x = x + block.attention.projection(attend(q, k, v, packed).transpose(1, 2).flatten(2))
        x = x + block.mlp(block.norm2(x))
    return x[0, packed.cu_seqlens[:-1].long()]  # the CLS tokens


def masked(q: Tensor, k: Tensor, v: Tensor, packed) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=packed.mask())


def one_by_one(q: Tensor, k: Tensor, v: Tensor, packed) -> Tensor:
    """What kernels for sequences of variable length compute."""
    ends = packed.cu_seqlens.tolist()
    parts = [
        F.scaled_dot_product_attention(*(x[:, :, first:last] for x in (q, k, v)))
        for first, last in itertools.pairwise(ends)
    ]
    assert max(part.shape[2] for part in parts) == packed.max_seqlen
    return torch.cat(parts, dim=2)


@pytest.mark.parametrize("attend", [masked, one_by_one])
@pytest.mark.parametrize("encoding", ["rope_mixed", "liere8", "visionllama"])
def test_packed_images_give_the_outputs_of_the_images_one_by_one(encoding, attend):
    model = small_model(encoding)
    images = [torch.randn(3, *size) for size in ((16, 16), (8, 24), (20, 12))]
    with torch.no_grad():
        found = features_of_packed(model, images, attend)
        for cls, image in zip(found, images, strict=True):
            assert_close(model.head(model.norm(cls)), model(image[None])[0], 1e-5)


@pytest.mark.parametrize("of_queries", [(4,), (3, 4)])
@pytest.mark.parametrize("of_keys", [(5,), (3, 5)])
def test_both_masks_agree_for_queries_and_keys_of_a_batch_and_of_examples(of_queries, of_keys):
    queries, keys = torch.randint(3, of_queries), torch.randint(3, of_keys)
    found = create_mask(segment_mask_mod(queries, keys), B=3, H=1, Q_LEN=4, KV_LEN=5, device="cpu")
    expected = segment_mask(queries.expand(3, 4), keys.expand(3, 5))
    assert torch.equal(found, expected)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shapes": []}, ValueError, "shapes must have at least one shape, got none: pass one per image"),
        ({"shapes": (14, 14)}, TypeError, r"sequence of shapes, got \(14, 14\): write one shape per image"),
        ({"shapes": 14}, TypeError, "sequence of shapes, got 14: write one shape per image"),
        ({"shapes": [(2, 2), (3,)]}, ValueError, r"same number of axes, got \(2, 2\) and \(3,\): give each image"),
        ({"shapes": [(2, 2), (3, 0)]}, ValueError, r"at least one token, got \(3, 0\)"),
        ({"shapes": [(2, 2)], "reference_shape": (2,)}, ValueError, "reference_shape has 1 axes"),
        ({"shapes": [(2, 2)], "policy": "extends"}, ValueError, "did you mean 'extend'"),
        ({"shapes": [(2, 2)], "num_prefix_tokens": -1}, ValueError, "num_prefix_tokens must be at least 0, got -1"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        packed_positions(**arguments)
