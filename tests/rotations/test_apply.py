"""Fast rotation of queries and keys against loops and plain operations, for values and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import apply_rotations, exp_skew
from liere.rotations import apply_each, apply_kernels, operators, rotate_together
from liere.rotations.plain import rotate_plainly
from tests.numerics import assert_close, dtypes, random_skew, rotate_slowly, seeds, tolerance


@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 3),
    tokens=st.integers(0, 4),
    prefix=st.integers(0, 3),
    blocks=st.integers(1, 3),
    size=st.integers(1, 5),
    rest=st.integers(0, 3),
    own=st.booleans(),
    shared=st.booleans(),
    dtype=dtypes,
    seed=seeds,
)
def test_apply_agrees_with_loops(batch, heads, tokens, prefix, blocks, size, rest, own, shared, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, heads, prefix + tokens, blocks * size + rest, generator=generator).to(dtype)
    R = exp_skew(random_skew(seed, size, 3.0, 1 if shared else heads, tokens, blocks)).to(dtype)
    if own:
        R = torch.stack([R.roll(i, dims=-1) for i in range(batch)])
    rotated = apply_rotations(x, R, num_prefix_tokens=prefix)
    assert_close(rotated, rotate_slowly(x, R, prefix), tolerance(dtype, 3))
    assert torch.equal(rotated[..., :prefix, :], x[..., :prefix, :])
    assert torch.equal(rotated[..., blocks * size :], x[..., blocks * size :])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_apply_keeps_the_dtype_of_x(dtype):
    x = torch.randn(2, 1, 3, 8).to(dtype)
    R = exp_skew(random_skew(0, 4, 3.0, 1, 3, 2)).float()
    assert apply_rotations(x, R).dtype == dtype
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert apply_rotations(x, R, num_prefix_tokens=0).dtype == dtype


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("rotations", "prefix", "message"),
    [
        (
            (2, 9, 2, 4, 4),
            2,
            "x has 10 tokens, num_prefix_tokens=2 of them .* there are 9 positions: pass 8 as",
        ),
        ((2, 11, 2, 4, 4), 0, "x has 10 tokens, .* there are 11 positions: pass 10 as"),
        ((3, 10, 2, 4, 4), 0, "rotations are for 3 heads, but x has 2"),
        ((2, 10, 3, 4, 4), 0, "3 blocks of size 4 need head_dim 12, but x has 8"),
        ((4, 2, 10, 2, 4, 4), 0, r"batch shape \[4\], but x has \[5\]"),
        ((2, 10, 2, 4, 3), 0, r"rotations \[2, 10, 2, 4, 3\]"),
        ((2, 10, 2, 4, 4), -1, "num_prefix_tokens must be between 0 and the 10 tokens of x, got -1"),
    ],
)
def test_rotations_that_do_not_fit_are_refused(rotations, prefix, message):
    with pytest.raises(ValueError, match=message):
        apply_rotations(torch.zeros(5, 2, 10, 8), torch.zeros(rotations), num_prefix_tokens=prefix)


@pytest.mark.usefixtures("no_shape_checks")
def test_whole_numbers_are_not_rotated():
    with pytest.raises(TypeError, match=r"x must hold floating-point numbers, got torch\.int64: convert it"):
        apply_rotations(torch.ones(1, 1, 3, 2, dtype=torch.int64), torch.eye(2).expand(1, 3, 1, 2, 2))


def qkv_views(batch, heads, tokens, head_dim, dtype, seed):
    """Queries and keys as in attention: views of one projection."""
    generator = torch.Generator().manual_seed(seed)
    qkv = torch.randn(batch, tokens, 3, heads, head_dim, generator=generator, dtype=torch.float64).to(dtype)
    q, k, _ = (part.transpose(1, 2) for part in qkv.requires_grad_().unbind(2))
    return q, k


@given(
    batch=st.integers(0, 5),
    heads=st.integers(1, 3),
    tokens=st.integers(0, 5),
    prefix=st.integers(0, 2),
    blocks=st.integers(1, 6),
    size=st.sampled_from([1, 2, 3, 4, 5, 8, 16, 17]),
    rest=st.integers(0, 3),
    shared=st.booleans(),
    positions_first=st.booleans(),
    dtype=dtypes,
    seed=seeds,
    chunk=st.sampled_from([1, 500, 2**21]),
)
def test_pairs_agree_with_plain_operations_and_so_do_gradients(
    batch, heads, tokens, prefix, blocks, size, rest, shared, positions_first, dtype, seed, chunk
):
    q, k = qkv_views(batch, heads, prefix + tokens, blocks * size + rest, dtype, seed)
    R = exp_skew(random_skew(seed, size, 3.0, 1 if shared else heads, tokens, blocks)).to(dtype)
    R = (R.transpose(0, 1).contiguous().transpose(0, 1) if positions_first else R).requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply_kernels, "CPU_CHUNK", chunk)
        separate = [apply_rotations(x, R, num_prefix_tokens=prefix) for x in (q, k)]
        together = rotate_together([q, k], R, prefix)
        G = torch.randn(2, *q.shape, generator=torch.Generator().manual_seed(seed + 1)).to(dtype)
        fast = torch.autograd.grad(separate, (q, k, R), list(G), retain_graph=True)
        fast_together = torch.autograd.grad(together, (q, k, R), list(G), retain_graph=True)
    wide = [x.detach().double().requires_grad_() for x in (q, k, R)]
    plain = [rotate_plainly(x, wide[2], prefix) for x in wide[:2]]
    expected = torch.autograd.grad(plain, wide, list(G.double()))
    atol = tolerance(dtype, 3)
    for a, b, c in zip(separate, together, plain, strict=True):
        assert_close(a, c, atol)
        assert_close(b, c, atol)
    for a, b, c in zip(fast[:2], fast_together[:2], expected[:2], strict=True):
        assert_close(a, c, atol)
        assert_close(b, c, atol)
    assert_close(fast[2], expected[2], atol * (1 + batch) * heads)
    if size != 2:  # then the first column has it all: see below
        assert_close(fast_together[2], expected[2], atol * (1 + batch) * heads)


@given(
    batch=st.sampled_from([(2,), (3,), (2, 3)]),
    broadcast=st.booleans(),
    heads=st.integers(1, 3),
    tokens=st.integers(0, 5),
    prefix=st.integers(0, 2),
    blocks=st.integers(1, 3),
    size=st.sampled_from([2, 3, 4, 8, 17]),
    rest=st.integers(0, 3),
    shared=st.booleans(),
    positions_first=st.booleans(),
    dtype=dtypes,
    seed=seeds,
    chunk=st.sampled_from([1, 5000, 2**22]),
)
def test_rotations_of_each_member_agree_with_plain_operations_and_so_do_gradients(
    batch, broadcast, heads, tokens, prefix, blocks, size, rest, shared, positions_first, dtype, seed, chunk
):
    q, k = qkv_views(batch[0], heads, prefix + tokens, blocks * size + rest, dtype, seed)
    if len(batch) == 2:
        q, k = (torch.stack([x.roll(i, -1) for i in range(batch[1])], 1) for x in (q, k))
    own = (1, *batch[1:]) if broadcast and len(batch) == 2 else batch
    R = exp_skew(random_skew(seed, size, 3.0, *own, 1 if shared else heads, tokens, blocks)).to(dtype)
    R = (R.transpose(-5, -4).contiguous().transpose(-5, -4) if positions_first else R).requires_grad_()
    G = torch.randn(2, *q.shape, generator=torch.Generator().manual_seed(seed + 1)).to(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply_each, "CHUNK", chunk)
        fast = [apply_rotations(x, R, num_prefix_tokens=prefix) for x in (q, k)]
        gradients = torch.autograd.grad(fast, (q, k, R), list(G))
        together = operators.rotate_each_operator([q.detach(), k.detach()], R, prefix)
        (of_both,) = torch.autograd.grad(together, R, list(G))
    wide = [x.detach().double().requires_grad_() for x in (q, k, R)]
    plain = [rotate_plainly(x, wide[2], prefix) for x in wide[:2]]
    expected = torch.autograd.grad(plain, wide, list(G.double()))
    atol = tolerance(dtype, 3)
    for a, b, c in zip(fast, together, plain, strict=True):
        assert a.is_contiguous()
        assert_close(a, c, atol)
        assert_close(b, c, atol)
    for a, b in zip(gradients[:2], expected[:2], strict=True):
        assert_close(a, b, atol)
    for found in (gradients[2], of_both):
        assert found.shape == R.shape
        assert_close(found, expected[2], atol * 4 * heads)


@given(batch=st.integers(1, 3), own=st.booleans(), tokens=st.integers(1, 4), prefix=st.integers(0, 1), seed=seeds)
def test_planes_get_the_gradient_of_their_angles(batch, own, tokens, prefix, seed):
    """The first column receives the whole gradient, so the gradients of the angles are compared."""
    q, k = qkv_views(batch, 2, prefix + tokens, 7 if seed % 2 else 8, torch.float64, seed)
    generator = torch.Generator().manual_seed(seed)
    angle = torch.randn(*[batch] * own, 2, tokens, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    X = torch.stack([torch.zeros_like(angle), angle, -angle, torch.zeros_like(angle)], dim=-1).unflatten(-1, (2, 2))
    R = exp_skew(X)
    weights = torch.randn(2, *q.shape, generator=generator, dtype=torch.float64)
    fast = sum((w * x).sum() for w, x in zip(weights, rotate_together([q, k], R, prefix), strict=True))
    plain = sum((w * rotate_plainly(x, R, prefix)).sum() for w, x in zip(weights, (q, k), strict=True))
    for a, b in zip(
        torch.autograd.grad(fast, (q, k, angle), retain_graph=True),
        torch.autograd.grad(plain, (q, k, angle)),
        strict=True,
    ):
        assert_close(a, b, 1e-12)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_gradients_of_gradients(size):
    x = torch.randn(2, 1, 3, 8, dtype=torch.float64, requires_grad=True)
    R = exp_skew(random_skew(0, size, 2.0, 1, 2, 8 // size)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, R: apply_rotations(x, R, num_prefix_tokens=1), (x, R))
    assert torch.autograd.gradgradcheck(lambda x, R: apply_rotations(x, R, num_prefix_tokens=1), (x, R))
    each = torch.stack([R, R.mT]).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, R: apply_rotations(x, R, num_prefix_tokens=1), (x, each))
    assert torch.autograd.gradgradcheck(lambda x, R: apply_rotations(x, R, num_prefix_tokens=1), (x, each))


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("own", [True, False])
def test_one_tensor_given_twice_has_one_gradient_for_each(size, own):
    x = torch.randn(2, 1, 3, 8, dtype=torch.float64, requires_grad=True)
    R = exp_skew(random_skew(0, size, 2.0, *[2] * own, 1, 3, 8 // size))
    first, second = rotate_together([x, x], R)
    loss = first.pow(3).sum() + 2 * second.pow(2).sum()
    (once,) = torch.autograd.grad(loss, x, retain_graph=True)
    (again,) = torch.autograd.grad(loss, x, create_graph=True)
    assert_close(once, again, 1e-12)


def test_only_wanted_gradients_are_made():
    x, R = torch.randn(2, 1, 3, 8), exp_skew(random_skew(0, 4, 2.0, 1, 3, 2)).float()
    rotated = apply_rotations(x.requires_grad_(), R)
    rotated.sum().backward()
    assert x.grad is not None
    assert R.grad is None
    (of_rotations,) = torch.autograd.grad(apply_rotations(x.detach(), R.requires_grad_()).sum(), R)
    assert of_rotations.shape == R.shape


@pytest.mark.parametrize("size", [2, 4])
def test_memory_may_begin_anywhere(size):
    x = torch.randn(145)[1:].view(1, 2, 9, 8)
    R = exp_skew(random_skew(0, size, 2.0, 2, 9, 8 // size)).float()
    assert_close(rotate_together([x], R)[0], rotate_plainly(x.double(), R.double(), 0), 1e-5)


def test_autocast_does_not_lower_the_precision():
    x, R = torch.randn(2, 1, 3, 8), exp_skew(random_skew(0, 4, 2.0, 2, 1, 3, 2)).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(apply_rotations(x, R), rotate_plainly(x.double(), R.double(), 0), 1e-5)


def test_the_result_is_laid_out_for_attention():
    q, k = qkv_views(3, 2, 5, 16, torch.float32, 0)
    R = exp_skew(random_skew(0, 8, 2.0, 2, 4, 2)).float()
    for x in rotate_together([q, k], R, 1):
        assert x.is_contiguous()


@pytest.mark.parametrize(("size", "each"), [(2, False), (8, False), (8, True)])
def test_gradients_are_laid_out_for_the_projection(size, each):
    q, k = (x.requires_grad_() for x in torch.randn(2, 3, 5, 2, 16).transpose(2, 3))  # heads after tokens in memory
    strange = torch.randn(16, 3, 2, 5).permute(1, 2, 3, 0).requires_grad_()
    R = exp_skew(random_skew(0, size, 2.0, *[3] * each, 2, 4, 16 // size)).float()
    for xs in ([q, k], [strange]):
        rotated = rotate_together(xs, R, 1)
        gradients = torch.autograd.grad(rotated, xs, [2 * x for x in rotated])
        for gradient, x in zip(gradients, xs, strict=True):
            assert gradient.transpose(1, 2).is_contiguous() == (x is not strange)
            assert_close(gradient, 2 * x, 1e-5)
        # What operators say about their results, on which compiled functions rely.
        name = "rotate_each_operator" if each else "rotate_operator" if size > 2 else "rotate_planes_operator"
        torch.library.opcheck(getattr(operators, name), (xs, R, 1))


def test_vmap_over_the_batch():
    x, R = torch.randn(4, 2, 3, 8, dtype=torch.float64), exp_skew(random_skew(0, 4, 2.0, 2, 3, 2))
    assert_close(torch.func.vmap(lambda x: apply_rotations(x, R))(x), apply_rotations(x, R), 1e-14)
