"""Rotated attention against a slow reference in fp64: the original, whose projections rotate token by token."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from liere.integrations.transformers import convert
from tests.integrations.transformers.families import (
    FAMILIES,
    FLEXIBLE_GRIDS,
    GRID,
    QWEN_GRIDS,
    TOWERS,
    assert_same,
    difference,
    inputs,
    make,
    run,
    with_random_generators,
)

HEADS, HEAD_DIM = 2, 16
ViT = FAMILIES[0]


def plain_attention(module, q, k, v, attention_mask, scaling, **options):
    """Attend in the given precision; transformers' own eager functions compute softmax in fp32."""
    scores = q @ k.transpose(-1, -2) * scaling
    scores = scores if attention_mask is None else scores.masked_fill(~attention_mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).contiguous(), weights


AttentionInterface.register("slow_reference", plain_attention)
AttentionMaskInterface.register("slow_reference", sdpa_mask)


class Turning(nn.Module):
    """A projection that also rotates each token of queries and keys by a matrix exponential of its own."""

    def __init__(self, project: nn.Module, skew: Tensor, positions: Tensor, prefix: int, halves: bool) -> None:
        super().__init__()
        self.project, self.skew, self.positions, self.prefix = project, skew, positions, prefix
        self.order = torch.arange(HEAD_DIM)
        if halves:  # dimension i of the first half, then of the second, and so on
            self.order = torch.tensor([half * HEAD_DIM // 2 + i for i in range(HEAD_DIM // 2) for half in (0, 1)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.project(x).clone()
        if self.positions.ndim == 3:  # each image has its own
            for image, positions in zip(x, self.positions, strict=True):
                self.turn(image, positions)
        else:
            self.turn(x, self.positions)
        return x

    def turn(self, x: Tensor, positions: Tensor) -> None:
        _, _, blocks, b, _ = self.skew.shape
        parts = 2 if x.shape[-1] == 3 * HEADS * HEAD_DIM else 1  # queries, keys and values at once in Qwen2-VL
        for part in range(parts):
            for head in range(HEADS):
                for token, position in enumerate(positions, start=self.prefix):
                    for block in range(blocks):
                        generator = sum(p * axis[head, block] for p, axis in zip(position, self.skew, strict=True))
                        where = (part * HEADS + head) * HEAD_DIM + self.order[block * b : (block + 1) * b]
                        x[..., token, where] = x[..., token, where] @ torch.matrix_exp(generator).T


class Still(nn.Module):
    """A RoPE that turns nothing."""

    def forward(self, x: Tensor, *args: Tensor) -> tuple[Tensor, Tensor]:
        tokens = x.shape[0] if args else GRID[0] * GRID[1]
        return torch.ones(tokens, HEAD_DIM).double(), torch.zeros(tokens, HEAD_DIM).double()


def slow_positions(label: str, start: str) -> Tensor:
    cells = [[row, column] for row in range(GRID[0]) for column in range(GRID[1])]
    if label == "VideoMAE":
        cells = [[frame, row / 2, column / 2] for frame in range(2) for row, column in cells]
    elif label.startswith("Qwen"):
        steps = 1 if start == "rope" else 15
        cells = [[row / steps, column / steps] for row, column in packed_cells(in_windows=label == "Qwen2.5-VL")]
    elif label == "SigLIP 2":
        images = [[[row / 2, column / 2] for row in range(h) for column in range(w)] for h, w in FLEXIBLE_GRIDS]
        longest = max(map(len, images)) + 1
        cells = [image + [[0, 0]] * (longest - len(image)) for image in images]
    elif start == "rope":
        cells = [[2 * (row + 0.5) / 3 - 1, 2 * (column + 0.5) / 3 - 1] for row, column in cells]
    else:
        cells = [[row / 2, column / 2] for row, column in cells]
    return torch.tensor(cells, dtype=torch.float64)


def packed_cells(in_windows: bool) -> list[tuple[int, int]]:
    """Return the rows and columns of patches in the order of the layers: squares of 2 x 2, in windows of 4 x 4."""
    order = []
    for image, (frames, rows, columns) in enumerate(QWEN_GRIDS):
        for frame in range(frames):
            for row in range(0, rows, 2):
                for column in range(0, columns, 2):
                    window = (row // 4, column // 4) if in_windows else (0, 0)
                    order.append(((image, frame, *window), row, column))
    if in_windows:
        assert sorted(order, key=lambda square: square[0]) != order
    order.sort(key=lambda square: square[0])  # keeps the order within a window
    return [(row + i, column + j) for _, row, column in order for i in (0, 1) for j in (0, 1)]


def slow_output(family, model: nn.Module, rotated: nn.Module, start: str) -> Tensor:
    slow = copy.deepcopy(model).double()
    slow.config._attn_implementation = "slow_reference"
    if start == "rope":
        setattr(slow, "rope_embeddings" if family.label == "DINOv3" else "rotary_pos_emb", Still())
    upper, b = rotated.encoding.generators.detach().double(), rotated.encoding.block_size
    positions = slow_positions(family.label, start)
    prefix = {"ViT": 1, "DINOv2": 1, "DINOv2 with registers": 3, "DINOv3": 3, "CLIP": 1}.get(family.label, 0)
    attentions = [m for m in slow.modules() if any(hasattr(m, name) for name in ("q_proj", "query", "qkv"))]
    assert len(attentions) == len(upper)
    for layer, attention in enumerate(attentions):
        skew = torch.zeros(*upper.shape[1:-1], b, b, dtype=torch.float64)
        entries = iter(range(b * (b - 1) // 2))
        for row in range(b):
            for column in range(row + 1, b):
                entry = upper[layer, ..., next(entries)]
                skew[..., row, column], skew[..., column, row] = entry, -entry
        for name in ("q_proj", "k_proj", "query", "key", "qkv"):
            if hasattr(attention, name):
                turning = Turning(getattr(attention, name), skew, positions, prefix, halves=start == "rope")
                setattr(attention, name, turning)
    with torch.no_grad():
        return run(slow, {k: v.double() if v.is_floating_point() else v for k, v in inputs(family).items()})


@pytest.mark.parametrize(("family", "start"), TOWERS, ids=lambda value: getattr(value, "id", value))
def test_random_generators_rotate_as_the_slow_reference_does(family, start):
    model = make(family)
    rotated = with_random_generators(convert(model, "liere8", start))
    expected = slow_output(family, model, rotated, start)
    given = inputs(family)
    doubled = {name: value.double() if value.is_floating_point() else value for name, value in given.items()}
    with torch.no_grad():
        assert_same(run(rotated, given).double(), expected)
        # Qwen2-VL applies its RoPE in fp32 to all queries and keys.
        assert_same(run(rotated.double(), doubled), expected, 2e-6 if family.is_packed else 1e-10)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(("family", "start"), TOWERS, ids=lambda value: getattr(value, "id", value))
def test_attention_implementations_agree(family, start, implementation):
    expected = with_random_generators(convert(make(family, "sdpa"), "liere8", start))
    rotated = with_random_generators(convert(make(family, implementation), "liere8", start))
    switched = with_random_generators(convert(make(family, "sdpa"), "liere8", start))
    switched.set_attn_implementation(implementation)
    given = inputs(family)
    with torch.no_grad():
        for model in (rotated, switched):
            assert model.config._attn_implementation == implementation
            assert_same(run(model, given), run(expected, given))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", [f for f in FAMILIES[:4] if f.auto == "AutoModel"], ids=lambda family: family.id)
def test_masks_are_not_dropped(family, implementation):
    model = make(family, implementation)
    rotated = convert(model)
    given, mask = inputs(family), torch.ones(2, 10, dtype=torch.long)
    mask[0, 4:7] = 0
    with torch.no_grad():
        expected = run(model, given | {"attention_mask": mask})
        assert difference(expected, run(model, given)) > 1e-2
        assert_same(run(rotated, given | {"attention_mask": mask}), expected)


def test_attention_weights_are_returned():
    model = make(ViT, "eager")
    with torch.no_grad():
        expected = model(**inputs(ViT), output_attentions=True, output_hidden_states=True)
        found = convert(model)(**inputs(ViT), output_attentions=True, output_hidden_states=True)
    assert len(found.attentions) == 2
    assert len(found.hidden_states) == len(expected.hidden_states)
    theirs = expected.attentions + expected.hidden_states
    for ours, other in zip(found.attentions + found.hidden_states, theirs, strict=True):
        assert_same(ours, other)
