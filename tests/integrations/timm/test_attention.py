"""Rotated attention against a slow reference in fp64: timm's own modules, whose q and k norms rotate token by token."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from timm.layers import AttentionRope, set_fused_attn
from torch import Tensor, nn

from liere.integrations.rotating import interleave
from liere.integrations.timm import convert
from liere.integrations.timm.attention import ROTATED, Positioned
from tests.integrations.timm.families import FAMILIES, STARTS, assert_same, images, make, with_random_generators

PLAIN = FAMILIES[0]


class Turning(nn.Module):
    """A norm of queries or keys that also rotates each token by a matrix exponential of its own."""

    def __init__(self, norm: nn.Module, generators: Tensor, positions: Tensor, prefix: int, halves: bool) -> None:
        super().__init__()
        self.norm, self.generators, self.positions = norm, generators, positions
        self.prefix, self.halves = prefix, halves

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x).clone()
        _, heads, tokens, head_dim = x.shape
        order = torch.arange(head_dim)
        if self.halves:  # dimension i of the first half, then of the second, and so on
            order = torch.tensor([half * head_dim // 2 + i for i in range(head_dim // 2) for half in (0, 1)])
        _, _, blocks, b, _ = self.generators.shape
        for head in range(heads):
            for token in range(self.prefix, tokens):
                row, column = self.positions[token - self.prefix]
                for block in range(blocks):
                    skew = row * self.generators[0, head, block] + column * self.generators[1, head, block]
                    where = order[block * b : (block + 1) * b]
                    x[:, head, token, where] = x[:, head, token, where] @ torch.matrix_exp(skew).T
        return x


def slow_logits(model: nn.Module, rotated: nn.Module, positions: Tensor, x: Tensor) -> Tensor:
    """Return the logits of an original model whose norms rotate as the encoding says, in fp64."""
    slow = copy.deepcopy(model).double()
    if not rotated_keeps_rope(rotated):
        slow.rope = None
        slow.rope_mixed = slow.rope_is_mixed = False
    attentions = [module for module in slow.blocks.modules() if hasattr(module, "q_norm")]
    upper = rotated.encoding.generators.detach().double()
    b = rotated.encoding.block_size
    for layer, attention in enumerate(attentions):
        skew = torch.zeros(*upper.shape[1:-1], b, b, dtype=torch.float64)
        entries = iter(range(b * (b - 1) // 2))
        for row in range(b):
            for column in range(row + 1, b):
                entry = upper[layer, ..., next(entries)]
                skew[..., row, column], skew[..., column, row] = entry, -entry
        for name in ("q_norm", "k_norm"):
            norm = getattr(attention, name)
            setattr(attention, name, Turning(norm, skew, positions, model.num_prefix_tokens, rotated.halves))
    with torch.no_grad():
        return slow(x.double())


def rotated_keeps_rope(rotated: nn.Module) -> bool:
    return getattr(rotated, "rope", None) is not None


def slow_positions(family, rotated: nn.Module, start: str, grid: tuple[int, int]) -> Tensor:
    """Return positions cell by cell; those of a RoPE are tested against timm elsewhere."""
    if start == "rope":
        return rotated.position_rule.of_grid(grid, torch.device("cpu"), torch.float64)
    reference = (16, 16) if family.is_flexible else (3, 3)
    steps = reference[0] - 1, reference[1] - 1
    cells = [[row / steps[0], column / steps[1]] for row in range(grid[0]) for column in range(grid[1])]
    return torch.tensor(cells, dtype=torch.float64)


@pytest.mark.parametrize(
    ("family", "start"),
    [case for case in STARTS if "num_kv_heads" not in case[0].options],
    ids=lambda value: getattr(value, "id", value),
)
def test_random_generators_rotate_as_the_slow_reference_does(family, start):
    model = make(family)
    rotated = with_random_generators(convert(model, "liere8", start))
    grid = (2, 3) if family.is_flexible else (3, 3)
    x = images(family, grid)
    expected = slow_logits(model, rotated, slow_positions(family, rotated, start, grid), x)
    with torch.no_grad():
        assert_same(rotated.double()(x.double()), expected, 1e-10)
        assert_same(rotated.float()(x).double(), expected)


def test_shared_keys_meet_queries_rotated_by_head():
    torch.manual_seed(0)
    heads, groups, tokens, head_dim, prefix = 4, 2, 5, 8, 1
    original = AttentionRope(32, heads, num_kv_heads=heads // groups, qkv_fused=False, num_prefix_tokens=prefix)
    original = original.double().eval()
    x = torch.randn(2, tokens, 32, dtype=torch.float64)
    turns = torch.linalg.qr(torch.randn(heads, tokens - prefix, 1, head_dim, head_dim, dtype=torch.float64)).Q
    rotated = copy.deepcopy(original)
    rotated.__class__, rotated.layer = ROTATED[type(original)], 0
    found = rotated(x, attn_mask=Positioned(None, [turns], prefix))

    projections = original.q_proj, original.k_proj, original.v_proj
    q, k, v = (project(x).unflatten(-1, (-1, head_dim)) for project in projections)
    outputs = []
    for head in range(heads):
        matrices = [torch.eye(head_dim, dtype=torch.float64)] * prefix + list(turns[head, :, 0])
        queries = torch.stack([q[:, t, head] @ matrices[t].T for t in range(tokens)], dim=1)
        keys = torch.stack([k[:, t, head // groups] @ matrices[t].T for t in range(tokens)], dim=1)
        weights = (queries @ keys.mT / math.sqrt(head_dim)).softmax(dim=-1)
        outputs.append(weights @ v[:, :, head // groups])
    assert_same(found, original.proj(torch.cat(outputs, dim=-1)), 1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
def test_masks_and_unfused_attention(is_causal):
    model = make(PLAIN)
    rotated = convert(model)
    x = images(PLAIN)
    mask = None if is_causal else torch.rand(10, 10).round().bool() | torch.eye(10, dtype=torch.bool)
    with torch.no_grad():
        expected = model(x, attn_mask=mask, is_causal=is_causal)
        assert_same(rotated(x, attn_mask=mask, is_causal=is_causal), expected)
        set_fused_attn(False)
        try:
            unfused = make(PLAIN)
        finally:
            set_fused_attn(True)
        rotated = convert(unfused)
        assert not rotated.blocks[0].attn.fused_attn
        assert_same(rotated(x, attn_mask=mask, is_causal=is_causal), expected)


def test_half_precision():
    model = make(PLAIN).bfloat16()
    rotated = with_random_generators(convert(model))
    assert rotated.encoding.generators.dtype == torch.float32
    x = images(PLAIN).bfloat16()
    full = copy.deepcopy(rotated).float()
    with torch.no_grad():
        found = rotated(x)
        assert found.dtype == torch.bfloat16
        assert_same(found.float(), full(x.float()), 0.05)
        with torch.autocast("cpu", torch.bfloat16):
            found = full(x.float())
        assert found.dtype == torch.bfloat16
        assert_same(found.float(), full(x.float()), 0.05)


def test_a_block_by_itself_says_what_it_needs():
    rotated = convert(make(PLAIN))
    with pytest.raises(ValueError, match="needs the positions of its tokens: call the converted model"):
        rotated.blocks[0](torch.zeros(1, 10, 32))


def test_interleaving_keeps_products():
    q, k = torch.randn(2, 3, 8, dtype=torch.float64)
    assert_same(interleave(q) @ interleave(k).mT, q @ k.mT, 1e-14)
