"""Nested queries, keys and positions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import liere
from liere import LieRE
from liere.encodings.nested import has_nested
from tests.numerics import assert_close

pytestmark = [
    pytest.mark.usefixtures("no_shape_checks"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage"),
]
LENGTHS = [3, 5, 2]


def jagged(*shape: int, lengths: list[int] = LENGTHS) -> Tensor:
    return torch.nested.nested_tensor([torch.randn(n, *shape) for n in lengths], layout=torch.jagged)


def heads_first(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


def test_each_sequence_is_rotated_as_if_alone():
    rope = LieRE(2, 8, num_heads=2, depth=2)
    q, k, positions = jagged(2, 8), jagged(2, 8), jagged(2)
    rotated = rope(heads_first(q), heads_first(k), positions, layer=1)
    assert all(has_nested(x) for x in rotated)
    for n in range(3):
        alone = rope(*(x[n].transpose(0, 1)[None] for x in (q, k)), positions[n], layer=1)
        for found, expected in zip(rotated, alone, strict=True):
            assert_close(found.transpose(1, 2)[n], expected[0].transpose(0, 1), 1e-6)


def test_attention_and_gradients():
    rope, positions = LieRE(2, 8, num_heads=2), jagged(2).requires_grad_()
    q, k, v = (heads_first(jagged(2, 8)) for _ in range(3))
    out = F.scaled_dot_product_attention(*rope(q, k, positions), v)
    out.transpose(1, 2).values().square().sum().backward()
    nested = rope.generators.grad.clone(), positions.grad.values()
    rope.generators.grad = None
    points = [part.detach().requires_grad_() for part in positions.unbind()]
    for n, point in enumerate(points):
        alone = (x.transpose(1, 2)[n].transpose(0, 1)[None] for x in (q, k))
        F.scaled_dot_product_attention(
            *rope(*alone, point), v.transpose(1, 2)[n].transpose(0, 1)[None]
        ).square().sum().backward()
    assert_close(nested[0], rope.generators.grad, 1e-4)
    assert_close(nested[1], torch.cat([point.grad for point in points]), 1e-4)


def test_cross_attention():
    rope = LieRE(2, 8, num_heads=2)
    q, k = heads_first(jagged(2, 8)), heads_first(jagged(2, 8, lengths=[4, 1, 6]))
    q_positions, k_positions = jagged(2), jagged(2, lengths=[4, 1, 6])
    _, both = rope(q, k, q_positions, k_positions)
    same, alone = rope(q, k, None, k_positions)
    assert torch.equal(same.values(), q.values())
    assert torch.equal(alone.values(), both.values())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"positions": torch.rand(5, 2)},
            TypeError,
            "positions is an ordinary tensor, but others are nested: make all",
        ),
        (
            {"k": torch.rand(3, 2, 5, 8)},
            TypeError,
            r"k is an ordinary tensor, .*k as \[batch, heads, ragged, head_dim\]",
        ),
        (
            {"positions": jagged(2, lengths=[3, 4, 3])},
            ValueError,
            r"q has .* \[3, 5, 2\], but positions of \[3, 4, 3\]",
        ),
        ({"q": jagged(2, 8)}, ValueError, "q is nested with shape .*: transpose it"),
        ({"num_prefix_tokens": 1}, ValueError, "num_prefix_tokens=1 does not work with nested tensors: leave it out"),
        ({"k_num_prefix_tokens": 2}, ValueError, "num_prefix_tokens=2 does not work with nested tensors"),
        ({"positions": jagged(3)}, ValueError, "this encoding has 2 axes"),
        (
            {"positions": jagged(2).bfloat16()},
            TypeError,
            "positions must be fp32, fp64 or integers, got torch.bfloat16",
        ),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    q, k = heads_first(jagged(2, 8)), heads_first(jagged(2, 8))
    with pytest.raises(error, match=message):
        LieRE(2, 8, num_heads=2)(**({"q": q, "k": k, "positions": jagged(2)} | arguments))


def test_other_layouts_are_refused():
    strided = torch.nested.nested_tensor([torch.randn(2, n, 8) for n in LENGTHS])
    with pytest.raises(TypeError, match=r"q must have the layout torch\.jagged"):
        LieRE(2, 8, num_heads=2)(strided, strided, jagged(2))


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    "call",
    [
        lambda rope: rope.rotations(jagged(2)),
        lambda rope: liere.augment_positions(jagged(2), shift=1.0),
        lambda rope: liere.apply_rotations(heads_first(jagged(2, 8)), rope.rotations(torch.rand(3, 2))),
    ],
)
def test_functions_without_nested_tensors_say_what_takes_them(call):
    with pytest.raises(TypeError, match=r"is a nested tensor, which only rope\(q, k, positions\) takes: .*values\(\)"):
        call(LieRE(2, 8, num_heads=2))
