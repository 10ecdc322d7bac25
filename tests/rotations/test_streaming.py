"""`rope(q, k, positions, stream=True)` gives what `stream=False` gives, in memory that rotations do not fill."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import LieRE
from liere.encodings import rotary
from liere.encodings.rope_mixed import RoPEMixed
from liere.rotations import fused_is_faster, streaming
from liere.rotations.streaming import rotate_by_positions
from tests.numerics import assert_close, rotate_slowly, seeds


def close(a, b, units=1e-12):
    assert_close(a, b, units * (1 + b.abs().max().item() if b.numel() else 1))


@given(
    batch=st.sampled_from([(), (3,), (2, 2)]),
    own=st.sampled_from(["shared", "each", "partly"]),
    size=st.sampled_from([2, 3, 4, 8, 12]),
    ndim=st.integers(1, 5),
    prefix=st.integers(0, 2),
    share_heads=st.booleans(),
    tokens=st.integers(1, 9),
    chunk=st.sampled_from([1, 2000, 2**25]),
    seed=seeds,
)
def test_streamed_or_not_values_and_gradients_agree(batch, own, size, ndim, prefix, share_heads, tokens, chunk, seed):
    torch.manual_seed(seed)
    rope = LieRE(ndim, 25, num_heads=2, depth=2, block_size=size, share_heads=share_heads, init_scale=2.0).double()
    q, k = torch.randn(2, *batch, 2, prefix + tokens, 25, dtype=torch.float64).requires_grad_().unbind()
    lead = {"shared": (), "each": batch, "partly": (*batch[:-1], 1) if batch else ()}[own]
    positions = torch.randn(*lead, tokens, ndim, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, *q.shape, dtype=torch.float64)
    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "CHUNK", chunk)
        for stream in (True, False):
            rotated = rope(q, k, positions, layer=1, num_prefix_tokens=prefix, stream=stream)
            inputs = q, k, positions, rope.generators
            results.append((*rotated, *torch.autograd.grad(rotated, inputs, list(weights))))
    for streamed, plain in zip(*results, strict=True):
        assert streamed.shape == plain.shape
        close(streamed, plain)
    if len(batch) == 1:
        R = rope.rotations(positions, layer=1).detach()
        for found, x in zip(results[0][:2], (q, k), strict=True):
            close(found, rotate_slowly(x, R, prefix))


def test_members_with_their_own_positions_and_many_rotations_are_streamed(monkeypatch):
    called = []

    def note(xs, *rest):
        called.append(len(xs))
        return rotate_by_positions(xs, *rest)

    monkeypatch.setattr(rotary, "rotate_by_positions", note)
    q = torch.randn(2, 2, 5, 16)
    rope = LieRE(2, 16, num_heads=2)
    rope(q, q, torch.rand(5, 2))
    rope(q, q, torch.rand(2, 5, 2), stream=False)
    RoPEMixed(2, 16, num_heads=2)(q, q, torch.rand(2, 5, 2))
    assert called == []
    rope(q, q, torch.rand(2, 5, 2))
    rope(q, q[:, :, 1:], torch.rand(2, 5, 2), torch.rand(2, 4, 2))
    assert called == [2, 1, 1]
    monkeypatch.setattr(streaming, "STREAM_BEYOND", 4 * 2 * 5 * 2 * 64 - 1)
    rope(q, q, torch.rand(5, 2))
    assert called == [2, 1, 1, 2]


@pytest.mark.parametrize("size", [2, 3, 8])
def test_inputs_that_want_no_gradient_get_none(size):
    rope = LieRE(2, 24, num_heads=2, block_size=size)
    q, k = torch.randn(2, 3, 2, 5, 24).unbind()
    positions = torch.rand(3, 5, 2)
    rope(q, k, positions, stream=True)[0].sum().backward()
    assert rope.generators.grad is not None
    frozen = LieRE(2, 24, num_heads=2, block_size=size).requires_grad_(False)
    assert not frozen(q, k, positions, stream=True)[0].requires_grad
    q.requires_grad_()
    frozen(q, k, positions, stream=True)[0].sum().backward()
    streamed, q.grad = q.grad, None
    frozen(q, k, positions, stream=False)[0].sum().backward()
    assert_close(streamed, q.grad, 1e-5)


@pytest.mark.parametrize("size", [2, 8])
def test_positions_alone_may_want_a_gradient(size):
    rope = LieRE(2, 16, block_size=size).double().requires_grad_(False)
    q = torch.randn(2, 1, 2, 16, dtype=torch.float64)
    positions = torch.rand(2, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p: rope(q, q, p, stream=True), positions)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in its forward mode
@pytest.mark.parametrize("size", [2, 8])
def test_transformed_code_takes_ordinary_operations(size):
    rope = LieRE(2, 16, block_size=size).double()
    q = torch.randn(3, 1, 4, 16, dtype=torch.float64)
    positions = torch.rand(3, 4, 2, dtype=torch.float64)
    expected, _ = rope(q, q, positions, stream=False)

    def rotate(q, positions):
        return rope(q, q, positions, stream=True)[0]

    assert_close(torch.func.vmap(rotate)(q, positions), expected, 1e-12)
    _, tangent = torch.func.jvp(lambda p: rotate(q, p), (positions,), (torch.ones_like(positions),))
    step = 1e-6 * torch.ones_like(positions)
    difference = (rotate(q, positions + step) - rotate(q, positions - step)) / 2e-6
    assert_close(tangent, difference, 1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("no_shape_checks")
def test_compiled_code_calls_the_kernels():
    rope = LieRE(2, 16).double()
    q = torch.randn(3, 1, 4, 16, dtype=torch.float64, requires_grad=True)
    positions = torch.rand(3, 4, 2, dtype=torch.float64)
    compiled = torch.compile(lambda q: rope(q, q, positions)[0], fullgraph=True)
    (expected,) = torch.autograd.grad(rope(q, q, positions)[0].square().mul(q).sum(), q)
    (found,) = torch.autograd.grad(compiled(q).square().mul(q).sum(), q)
    assert_close(found, expected, 1e-12)


@pytest.mark.parametrize("size", [2, 8])
def test_gradients_of_gradients(size):
    rope = LieRE(2, 8, block_size=size, init_scale=2.0).double()
    q = torch.randn(2, 1, 3, 8, dtype=torch.float64, requires_grad=True)
    positions = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    found = []
    for stream in (True, False):
        rotated, _ = rope(q, q, positions, stream=stream)
        inputs = q, positions, rope.generators
        gradients = torch.autograd.grad(rotated.pow(3).sum(), inputs, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in gradients), inputs))
    for streamed, plain in zip(*found, strict=True):
        close(streamed, plain)


def test_norms_beyond_the_ceiling_are_refused_with_the_positions():
    rope, q = LieRE(2, 8), torch.randn(2, 1, 3, 8)
    with pytest.raises(
        ValueError, match=r"^positions of up to 1e\+07, times generators, have norm .*: use smaller pos"
    ):
        rope(q, q, torch.full((2, 3, 2), 1e7))


def test_half_precision_keeps_its_type_and_autocast_does_not_lower_the_rotations():
    rope, positions = LieRE(2, 16, num_heads=2), torch.rand(3, 4, 2)
    q = torch.randn(3, 2, 4, 16)
    expected, _ = rope(q.double(), q.double(), positions.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(rope(q, q, positions)[0], expected, 1e-4)
    low, _ = rope(q.bfloat16(), q.bfloat16(), positions)
    assert low.dtype == torch.bfloat16


def test_where_the_kernels_are_faster():
    A = torch.zeros(3, 1, 1, 8, 8)
    assert fused_is_faster(torch.rand(2, 5, 3), A)
    assert not fused_is_faster(torch.rand(5, 3), A)
    assert not fused_is_faster(torch.rand(1, 5, 3), A)
    assert not fused_is_faster(torch.rand(2, 5, 3), torch.zeros(3, 1, 1, 2, 2))
    assert not fused_is_faster(torch.rand(2, 5, 5), torch.zeros(5, 1, 1, 8, 8))
