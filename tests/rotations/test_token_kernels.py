"""Rotating by positions without keeping rotations, against loops over rotations from eigenvectors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from liere.generators import skew_at_positions
from liere.rotations import steps, token_layouts
from liere.rotations.monomials import generator_powers
from liere.rotations.plain import exp_plainly, rotate_plainly
from liere.rotations.token_kernels import rotate_tokens_backward, rotate_tokens_forward, token_norms
from liere.rotations.token_operator import rotate_tokens_operator
from tests.numerics import assert_close, dtypes, exp_by_eigenvectors, random_skew, rotate_slowly, seeds, tolerance


def case(seed, *, batch, own, heads, shared, tokens, prefix, blocks, size, rest, ndim, scale):
    """Queries and keys `[batch, tokens, heads, head_dim]`, positions and generators, in fp64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    xs = [draw(batch, prefix + tokens, heads, blocks * size + rest) for _ in range(2)]
    A = random_skew(seed, size, scale, ndim, 1 if shared else heads, blocks)
    positions = draw(batch if own else 1, tokens, ndim) * (10.0 ** draw(1, tokens, 1).clamp(-2, 1))
    return xs, positions, A, prefix


cases = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 3),
        "own": st.booleans(),
        "heads": st.integers(1, 3),
        "shared": st.booleans(),
        "tokens": st.integers(0, 6),
        "prefix": st.integers(0, 2),
        "blocks": st.integers(1, 3),
        "size": st.sampled_from([4, 5, 8, 9, 10, 16]),
        "rest": st.integers(0, 2),
        "ndim": st.integers(1, 4),
        "scale": st.sampled_from([0.0, 1e-6, 1e-3, 0.3, 1.0, 6.28, 1e3, 1e4]),
    }
)


def plainly(xs, positions, A, prefix):
    R = exp_plainly(skew_at_positions(positions, A))
    return [rotate_plainly(x.transpose(1, 2), R, prefix).transpose(1, 2) for x in xs]


def reach(positions, A):
    """What the norm of the sum of generators would be without cancellation, which rounding counts."""
    each = torch.linalg.matrix_norm(A, ord=2).flatten(1).amax(1)
    return (positions.abs() @ each).max().item() if positions.numel() else 0.0


@given(options=cases, dtype=dtypes, seed=seeds, chunk=st.sampled_from([1, 5_000, 2**20]), few=st.booleans())
def test_values_and_gradients_agree_with_slow_references(options, dtype, seed, chunk, few):
    xs, positions, A, prefix = case(seed, **options)
    xs, positions, A = [x.to(dtype) for x in xs], positions.to(dtype), A.to(dtype)
    grads = [x.flip(1) for x in xs]
    powers = generator_powers(A)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_layouts.TokenColumns, "CHUNK", chunk)
        patch.setattr(token_layouts.TokenRows, "CHUNK", chunk)
        patch.setattr(token_layouts.TokenColumns, "TOKENS", 2 if few else 1024)
        patch.setattr(steps, "ENOUGH_TOKENS", 0 if few else 512)
        found = rotate_tokens_forward(xs, positions, powers, prefix)
        of_xs, of_positions, of_powers = rotate_tokens_backward(grads, xs, positions, powers, prefix, True)
    wide = [x.double().requires_grad_() for x in (*xs, positions, A)]
    R = exp_by_eigenvectors(skew_at_positions(wide[2], wide[3]).detach())
    norm = reach(wide[2], wide[3])
    atol = tolerance(dtype, norm)
    largest = max([x.abs().max().item() for x in xs if x.numel()], default=0.0) * options["size"] ** 0.5
    for rotated, x in zip(found, xs, strict=True):
        assert rotated.dtype == dtype
        assert_close(
            rotated, rotate_slowly(x.double().transpose(1, 2), R, prefix).transpose(1, 2), atol * (1 + largest)
        )
        assert torch.equal(rotated[:, :prefix], x[:, :prefix])
    expected = torch.autograd.grad(plainly(wide[:2], wide[2], wide[3], prefix), wide, [g.double() for g in grads])
    for mine, plain in zip(of_xs, expected[:2], strict=True):
        assert_close(mine, plain, atol * (1 + largest))
    weights = 2 * options["batch"] * options["heads"] * largest**2
    generators = torch.linalg.matrix_norm(wide[3]).flatten(1).sum().item()
    assert_close(of_positions, expected[2], atol * weights * (1 + generators))
    A.requires_grad_()
    (of_generators,) = torch.autograd.grad(generator_powers(A), A, of_powers)
    difference = (of_generators - of_generators.mT).double() - (expected[3] - expected[3].mT)
    reached = positions.abs().sum().item() if positions.numel() else 0.0
    assert_close(difference, torch.zeros_like(difference), atol * weights * (1 + reached))


def test_a_rotation_by_nothing_changes_nothing():
    xs, positions, A, prefix = case(
        0, batch=2, own=True, heads=2, shared=False, tokens=3, prefix=1, blocks=2, size=8, rest=1, ndim=3, scale=6.0
    )
    for found, x in zip(rotate_tokens_forward(xs, 0 * positions, generator_powers(A), prefix), xs, strict=True):
        assert torch.equal(found, x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_half_precision_is_rotated_in_single_precision(dtype):
    xs, positions, A, prefix = case(
        0, batch=2, own=True, heads=2, shared=False, tokens=9, prefix=1, blocks=2, size=8, rest=0, ndim=3, scale=3.0
    )
    given_xs = [x.to(dtype) for x in xs]
    found = rotate_tokens_forward(given_xs, positions.float(), generator_powers(A.float()), prefix)
    for rotated, exact in zip(found, plainly([x.double() for x in given_xs], positions, A, prefix), strict=True):
        assert rotated.dtype == dtype
        # Only the result is rounded to the type; the rotation is as good as in fp32.
        torch.testing.assert_close(rotated.double(), exact, rtol=torch.finfo(dtype).eps, atol=3e-4)


@given(seed=seeds, size=st.sampled_from([4, 8, 12]), norm=st.sampled_from([0.0, 0.1, 3.0, 1e3]))
def test_norms_are_bounds(seed, size, norm):
    A = random_skew(seed, size, norm, 3, 2).float()
    positions = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
    X = skew_at_positions(positions.double(), A.double()[:, None])[0]
    exact = torch.linalg.matrix_norm(X, ord=2).amax(1)
    assert (token_norms(positions, generator_powers(A)) >= exact * (1 - 1e-6)).all()


def test_axes_that_cancel_each_other_keep_their_digits():
    A = random_skew(0, 8, 40.0, 1, 1, 1)
    A = torch.cat([A, -A + random_skew(1, 8, 0.5, 1, 1, 1)]).float()
    positions = torch.ones(1, 1, 2)
    x = torch.randn(1, 1, 1, 8, generator=torch.Generator().manual_seed(0))
    (found,) = rotate_tokens_forward([x], positions, generator_powers(A), 0)
    (exact,) = plainly([x.double()], positions.double(), A.double(), 0)
    assert_close(found, exact, tolerance(torch.float32, 80, units=4))


def operator_arguments(**changes):
    options = {"batch": 2, "own": True, "heads": 2, "shared": False, "tokens": 3, "prefix": 1, "blocks": 1}
    xs, positions, A, prefix = case(0, **(options | {"size": 4, "rest": 0, "ndim": 2, "scale": 2.0} | changes))
    return [x.requires_grad_() for x in xs], positions.requires_grad_(), A.requires_grad_(), prefix


def test_the_operator_keeps_the_rules_of_torch():
    xs, positions, A, prefix = operator_arguments()
    powers = generator_powers(A).detach().requires_grad_()
    torch.library.opcheck(rotate_tokens_operator, (xs, positions, powers, prefix))
    (q, k), positions, A, prefix = operator_arguments(own=False)
    powers = generator_powers(A).detach()
    torch.library.opcheck(rotate_tokens_operator, ([q, k], positions.detach(), powers, prefix))


@pytest.mark.parametrize("size", [4, 10])
@pytest.mark.parametrize("own", [True, False])
def test_gradients_and_gradients_of_gradients(size, own):
    (q, k), positions, A, prefix = operator_arguments(size=size, own=own)

    def rotate(q, k, positions, A):
        return tuple(rotate_tokens_operator([q, k], positions, generator_powers(A - A.mT), prefix))

    with torch.no_grad():
        positions.mul_(0.3)
    assert torch.autograd.gradcheck(rotate, (q, k, positions, A), fast_mode=True)
    assert torch.autograd.gradgradcheck(rotate, (q, k, positions, A), fast_mode=True, atol=1e-4, rtol=1e-3)


def test_only_wanted_gradients_are_made():
    (q, k), positions, A, prefix = operator_arguments()
    powers = generator_powers(A)
    outs = rotate_tokens_operator([q, k.detach()], positions.detach(), powers.detach(), prefix)
    (alone,) = torch.autograd.grad(outs[0].square().sum() + outs[0].sum(), q)
    outs = rotate_tokens_operator([q, k], positions, powers, prefix)
    (among,) = torch.autograd.grad(outs[0].square().sum() + outs[0].sum(), q)
    assert_close(alone, among, 1e-12)


def test_flops_are_those_of_the_products():
    (q, k), positions, A, prefix = operator_arguments(size=8, tokens=1, scale=1.0, ndim=1)
    positions = torch.full_like(positions, 0.3)  # one step, without squaring, of 4 matrices
    powers = generator_powers(A).detach().float().requires_grad_()
    arguments = [q.detach().float(), k.detach().float()], positions.float(), powers, prefix
    with FlopCounterMode(display=False) as counter:
        outs = rotate_tokens_operator(*arguments)
    parts, products, vectors = 4 * 4, 2 * 8, 2
    assert counter.get_total_flops() == 4 * 2 * 8**2 * (parts + products + vectors)
    with FlopCounterMode(display=False) as counter:
        sum(out.sum() for out in outs).backward()
    assert counter.get_total_flops() == 4 * 2 * 8**2 * (2 * parts + 3 * products + 2 * vectors)
