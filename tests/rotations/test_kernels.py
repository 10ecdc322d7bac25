"""The fast paths against plain operations in fp64, element by element, values and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from liere import apply_rotations, exp_skew, grid_positions
from liere.generators import skew_at_positions
from liere.rotations import operators, position_kernels, position_rotations, precision, squarings, workspace
from liere.rotations.flop_formulas import _position_products
from liere.rotations.plain import exp_plainly
from liere.rotations.polynomial import POLYNOMIALS, PRODUCTS
from liere.rotations.rays import find_rays
from liere.rotations.squarings import cut_chunks, sort_by_level
from tests.numerics import assert_close, dtypes, random_skew, seeds, tolerance

SIZES = st.sampled_from([4, 5, 8, 9, 10, 12, 16, 33, 64])


def gradient(function, x, G):
    x = x.detach().clone().requires_grad_()
    (found,) = torch.autograd.grad(function(x), x, G)
    return found


@given(
    size=SIZES,
    exponents=st.lists(st.floats(-6, 3), min_size=1, max_size=9),
    dtype=dtypes,
    seed=seeds,
    chunk=st.sampled_from([1, 2_000, 2**20]),
)
def test_exponential_and_gradient_agree_with_plain_operations(size, exponents, dtype, seed, chunk):
    X = torch.stack([random_skew(seed + k, size, 10.0**e) for k, e in enumerate(exponents)]).to(dtype)
    G = torch.randn(X.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype) / size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace, "ROWS_CHUNK", chunk)
        patch.setattr(workspace, "COLUMNS_CHUNK", chunk)
        R, dX = exp_skew(X), gradient(exp_skew, X, G)
    plain, plain_gradient = exp_plainly(X.double()), gradient(exp_plainly, X.double(), G.double())
    for k, e in enumerate(exponents):
        assert_close(R[k], plain[k], tolerance(dtype, 10.0**e))
        assert_close(dX[k], plain_gradient[k], tolerance(dtype, 10.0**e))


@given(
    size=SIZES,
    grid=st.sampled_from([(1,), (9,), (5, 4), (3, 2, 4)]),
    heads=st.integers(1, 3),
    blocks=st.integers(1, 2),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 6.28]),
    offset=st.sampled_from([0.0, -0.5]),
    dtype=dtypes,
    seed=seeds,
    chunk=st.sampled_from([1, 10_000, 2**20]),
)
def test_rotations_of_positions_agree_with_plain_operations(
    size, grid, heads, blocks, scale, offset, dtype, seed, chunk
):
    generator = torch.Generator().manual_seed(seed)
    positions = grid_positions(grid, dtype=dtype) + offset
    A = torch.rand(2, len(grid), heads, blocks, size, size, generator=generator, dtype=torch.float64).triu(1) * scale
    A = (A - A.mT).to(dtype)
    G = torch.randn(heads, len(positions), blocks, size, size, generator=generator, dtype=torch.float64).to(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace, "ROWS_CHUNK", chunk)
        patch.setattr(workspace, "COLUMNS_CHUNK", chunk)
        R = list(position_rotations(positions, A))
        dA = gradient(lambda A: list(position_rotations(positions, A))[1], A, G)
    assert len(R) == 2

    def plainly(A):
        return exp_plainly(skew_at_positions(positions.double(), A[1]))

    norm = torch.linalg.matrix_norm(skew_at_positions(positions.double(), A[1].double()), ord=2).max().item()
    assert_close(R[1], plainly(A.double()), tolerance(dtype, norm))
    plain = gradient(plainly, A.double(), G.double())
    assert_close((dA - dA.mT)[1], (plain - plain.mT)[1], tolerance(dtype, norm) * len(positions) * size**0.5)
    assert not dA[0].any()


def test_positions_of_each_member_of_a_batch():
    positions = torch.rand(3, 2, 5, 2, dtype=torch.float64)
    A = random_skew(0, 6, 4.0, 1, 2, 3, 2)
    (R,) = position_rotations(positions, A)
    assert R.shape == (3, 2, 3, 5, 2, 6, 6)
    assert_close(R, exp_plainly(skew_at_positions(positions, A[0])), 1e-13)


def test_gradients_reach_positions():
    positions = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    A = random_skew(0, 5, 2.0, 1, 2, 1, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda p, A: next(position_rotations(p, A)), (positions, A))


@pytest.mark.parametrize("size", [5, 12])
def test_gradients_of_gradients(size):
    positions = grid_positions((3, 2), dtype=torch.float64)
    upper = random_skew(0, size, 2.0, 1, 2, 1, 1).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda A: next(position_rotations(positions, A)), upper, atol=1e-4, rtol=1e-2)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in its forward mode
def test_forward_mode_agrees_with_differences():
    X, V = random_skew(0, 6, 3.0, 2), random_skew(1, 6, 1.0, 2)
    _, tangent = torch.func.jvp(exp_skew, (X,), (V,))
    assert_close(tangent, (exp_skew(X + 1e-6 * V) - exp_skew(X - 1e-6 * V)) / 2e-6, 1e-8)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(X, V)
        rotated = apply_rotations(dual[:, None], exp_skew(X)[:, None, None, None].expand(2, 1, 6, 1, 6, 6)[:1])
        assert torch.autograd.forward_ad.unpack_dual(rotated).tangent is not None
        assert_close(torch.autograd.forward_ad.unpack_dual(exp_skew(dual)).tangent, tangent, 1e-12)


def test_vmap_of_the_gradient():
    X = random_skew(0, 5, 3.0, 4)
    one = torch.func.grad(lambda x: exp_skew(x)[0].square().sum())
    each = torch.stack([gradient(lambda x: exp_skew(x)[0].square().sum(), x, torch.ones((), dtype=X.dtype)) for x in X])
    assert_close(torch.func.vmap(one)(X), each, 1e-12)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("exp_skew_operator", (random_skew(0, 8, 5.0, 3).requires_grad_(),)),
        ("positions_operator", (torch.rand(4, 2).double(), random_skew(0, 8, 5.0, 2, 3).requires_grad_(), None)),
        (
            "rotate_operator",
            (
                [torch.randn(2, 3, 5, 8, requires_grad=True)],
                random_skew(0, 4, 1.0, 3, 4, 2).float().requires_grad_(),
                1,
            ),
        ),
        (
            "rotate_each_operator",
            (
                [torch.randn(2, 3, 5, 8, requires_grad=True)],
                random_skew(0, 4, 1.0, 2, 3, 4, 2).float().requires_grad_(),
                1,
            ),
        ),
        (
            "rotate_planes_operator",
            (
                [torch.randn(2, 3, 5, 8, requires_grad=True)],
                random_skew(0, 2, 1.0, 3, 4, 4).float().requires_grad_(),
                1,
            ),
        ),
    ],
)
def test_operators_keep_the_rules_of_torch(operator, arguments):
    torch.library.opcheck(getattr(operators, operator), arguments)


def test_lower_precision_of_products_does_not_reach_the_exponential():
    X = random_skew(0, 12, 200.0, 3).float()
    expected = exp_skew(X)
    torch.set_float32_matmul_precision("medium")

    def full():
        return all(setting.value in (setting.full, "none") for setting in precision._precisions())

    try:
        assert torch.equal(exp_skew(X), expected)
        assert torch.get_float32_matmul_precision() == "medium"
        assert not full()
        with precision.full_precision(X.device):  # not every CPU has a lower precision that would show
            assert full()
        assert not full()
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.skipif(not hasattr(torch.backends.mkldnn, "matmul"), reason="torch has one setting for all backends")
def test_nor_does_the_precision_of_one_backend():
    X, backend = random_skew(0, 12, 200.0, 3).float(), torch.backends.mkldnn.matmul
    expected, before = exp_skew(X), backend.fp32_precision
    backend.fp32_precision = "bf16"
    try:
        assert torch.equal(exp_skew(X), expected)
        assert backend.fp32_precision == "bf16"
    finally:
        backend.fp32_precision = before


def test_the_workspace_serves_training_after_inference():
    X = random_skew(0, 16, 5.0, 3).float()
    with torch.inference_mode():
        exp_skew(X)
    exp_skew(X.requires_grad_()).sum().backward()
    assert X.grad is not None


class CountProducts(TorchDispatchMode):
    """Count the matrices that are multiplied."""

    def __init__(self):
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        factor = {"bmm": 0, "baddbmm": 1, "baddbmm_": 1}.get(function.overloadpacket.__name__)
        self.products += 0 if factor is None else len(args[factor])
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("offset", [(3, 1), (11, 11), (22, 17)])
def test_placed_grids_take_as_many_products_as_are_counted_and_fewer_than_without_extra_positions(offset):
    positions = grid_positions((14, 14)) + torch.tensor(offset) * torch.tensor(1 / 13)
    A = random_skew(0, 16, 100.0, 2, 3).float()
    norms, rays = position_kernels.position_norms(positions, A[None])[0], find_rays(positions)
    with CountProducts() as forward:
        R = position_kernels.positions_forward(positions, A, norms, rays)
    with CountProducts() as backward:
        position_kernels.positions_backward(torch.ones_like(R), positions, A, R, norms, rays)
    assert forward.products == _position_products(positions, A, backward=False)
    assert backward.products == _position_products(positions, A, backward=True)
    own = squarings.levels(norms, POLYNOMIALS[torch.float32])
    given = rays.for_levels(own)
    without = 3 * int((own[given.roots] + PRODUCTS).sum() + len(positions) - len(given.roots))
    assert forward.products < 0.95 * without


@pytest.mark.parametrize("levels", [[], [3], [2, 2, 2], [5, 0, 3, 0, 5, 1, 1]])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_chunks_cover_every_member_once_in_ascending_order(levels, size):
    tensor = torch.tensor(levels, dtype=torch.float32)
    order = sort_by_level(tensor)
    ascending = levels if order is None else tensor[order].int().tolist()
    assert ascending == sorted(levels)
    covered = []
    for chunk in cut_chunks(tensor, size):
        assert chunk.size <= size
        assert [s.start for s in chunk.segments] == [0, *(s.stop for s in chunk.segments[:-1])]
        assert chunk.segments[-1].stop == chunk.size
        covered += [s.level for s in chunk.segments for _ in range(s.stop - s.start)]
    assert covered == ascending


def test_nothing_calls_torchs_own_exponential(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("matrix_exp was called")

    monkeypatch.setattr(torch, "matrix_exp", refuse)
    monkeypatch.setattr(torch.linalg, "matrix_exp", refuse)
    X = random_skew(0, 6, 5.0, 2).requires_grad_()
    exp_skew(X).sum().backward()
    next(position_rotations(torch.rand(3, 2).double(), random_skew(0, 6, 5.0, 1, 2, 1, 1))).sum()
    torch.func.vmap(exp_skew)(X.detach())
