"""Rotations on devices other than the CPU: no value is read, and every norm is right at once."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from liere.bench.pretended_device import HostWaitError, PretendedDevice
from liere.generators import skew_at_positions, skew_from_upper
from liere.rotations import device_kernels, exp_skew, position_rotations, uniform_exponential
from liere.rotations.squarings import MAX_NORM, max_level
from liere.rotations.uniform_exponential import exp_uniformly, exp_uniformly_plain

SIZES = (2, 3, 4, 5, 8, 16, 48)


def skew(seed: int, size: int, norms: list[float], dtype: torch.dtype) -> torch.Tensor:
    """Return skew matrices of given spectral norms."""
    generator = torch.Generator().manual_seed(seed)
    upper = torch.randn(len(norms), size * (size - 1) // 2, generator=generator, dtype=torch.float64)
    X = skew_from_upper(upper, size)
    X = X / torch.linalg.matrix_norm(X, ord=2)[:, None, None]
    return (X * torch.tensor(norms, dtype=torch.float64)[:, None, None]).to(dtype)


def reference(X: torch.Tensor) -> torch.Tensor:
    """Return the exponentials in fp64 through eigenvalues, which need no squarings."""
    values, vectors = torch.linalg.eigh(1j * X.double())
    return (vectors * torch.exp(-1j * values)[..., None, :] @ vectors.mH).real


def allowed(X: torch.Tensor) -> torch.Tensor:
    """Return the error that `exp_skew` documents, for each matrix."""
    eps, norm = torch.finfo(X.dtype).eps, torch.linalg.matrix_norm(X.double(), ord=2)
    slack = 0 if X.dtype == torch.float64 else X.shape[-1] / 16
    return (4 + slack) * eps * (1 + norm) + 16 * 2**-52 * (1 + norm)  # the reference is rounded as well


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**30),
    st.sampled_from(SIZES),
    st.lists(st.floats(-6, 4), min_size=1, max_size=6),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_each_entry_agrees_with_eigenvalues_in_fp64(seed, size, exponents, dtype):
    X = skew(seed, size, [10.0**exponent for exponent in exponents], dtype)
    with PretendedDevice() as device:
        R = exp_skew(device.tensor(X)).near
    error = (R.double() - reference(X)).abs().amax((-2, -1))
    assert (error <= allowed(X)).all(), (error / allowed(X)).max()


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**30), st.sampled_from([4, 8, 16]), st.floats(0.01, 30), st.sampled_from([0.01, 100.0]))
def test_norms_may_change_suddenly_from_step_to_step(seed, size, start, factor):
    """Nothing is remembered of an earlier step: after a jump, rotations and gradients are those of the new norms."""
    torch.manual_seed(seed)
    generators = torch.randn(2, 2, 2, 3, size, size, dtype=torch.float64)
    generators = (generators - generators.mT) * start / size
    positions = torch.rand(7, 2, dtype=torch.float64)
    weights = torch.randn(2, 2, 7, 3, size, size, dtype=torch.float64)
    with PretendedDevice() as device:
        here = device.tensor(generators, requires_grad=True)
        for step in range(2):
            if step:
                with torch.no_grad():
                    here.mul_(factor)
            found = torch.stack(list(position_rotations(device.tensor(positions), here)))
            (gradient,) = torch.autograd.grad((found * device.tensor(weights)).sum(), here)
            near = here.detach().near.clone().requires_grad_()
            expected = torch.stack([torch.matrix_exp(skew_at_positions(positions, layer)) for layer in near])
            (slow,) = torch.autograd.grad((expected * weights).sum(), near)
            norm = 1 + near.abs().amax().item() * size * 2
            assert (found.near - expected).abs().amax() <= 64 * 2**-52 * norm
            skew_part, slow = (gradient.near - gradient.near.mT) / 2, (slow - slow.mT) / 2
            assert (skew_part - slow).abs().amax() <= 2**-40 * norm * (1 + slow.abs().amax())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [4, 5, 8, 16])
def test_gradients_agree_with_matrix_exp(size, dtype):
    X = skew(size, size, [0.0, 1e-3, 0.4, 3.0, 40.0, 300.0], dtype)
    G = torch.randn_like(X)
    near = X.double().requires_grad_()
    (expected,) = torch.autograd.grad(torch.matrix_exp(near), near, G.double())
    expected = (expected - expected.mT) / 2
    with PretendedDevice() as device:
        far = device.tensor(X, requires_grad=True)
        (found,) = torch.autograd.grad(exp_skew(far), far, device.tensor(G))
    found = (found.near - found.near.mT) / 2
    norm = torch.linalg.matrix_norm(X.double(), ord=2)
    error = (found.double() - expected).abs().amax((-2, -1))
    assert (error <= 32 * size * torch.finfo(dtype).eps * (1 + norm)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [4, 8, 64])
def test_the_largest_supported_norm_needs_no_more_squarings_than_there_are(size, dtype):
    """If all planes rotate by the same angle, the bound by which matrices are scaled is largest."""
    planes = torch.block_diag(*[torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)] * (size // 2))
    X = (planes * MAX_NORM).to(dtype)[None]
    R = exp_uniformly(X)
    assert (R @ R.mT - torch.eye(size, dtype=dtype)).abs().amax() < 1
    assert R.isfinite().all()
    for exp in (exp_uniformly, exp_uniformly_plain):
        assert exp(4 * X).diagonal(dim1=-2, dim2=-1).isnan().all(), "beyond, a rotation would be wrong"


def test_values_that_are_not_finite_do_not_spread():
    X = skew(0, 4, [1.0, 1.0, 1.0], torch.float32)
    X[1, 0, 1], X[2, 0, 1] = torch.nan, torch.inf
    R = exp_uniformly(X)
    assert torch.equal(R[0], exp_uniformly(X[:1])[0])
    assert R[1:].isnan().any((-2, -1)).all()


def test_chunks_change_nothing(monkeypatch):
    X, G = torch.randn(2, 7, 5, 5)
    X = X - X.mT
    positions, generators = torch.rand(7, 2), (10 * torch.randn(2, 3, 5, 5))
    generators = generators - generators.mT
    gradient = torch.randn(7, 3, 5, 5)
    calls = [
        lambda: device_kernels.exp_forward(X),
        lambda: device_kernels.exp_backward(X, G),
        lambda: device_kernels.positions_forward(positions, generators),
        lambda: device_kernels.positions_backward(gradient, positions, generators),
    ]
    whole = [call() for call in calls]
    monkeypatch.setattr(device_kernels, "CHUNK", 2 * 3 * 25 * 4)
    for call, expected in zip(calls, whole, strict=True):
        torch.testing.assert_close(call(), expected, rtol=1e-5, atol=1e-4)


def test_without_tokens_or_matrices():
    assert device_kernels.exp_forward(torch.zeros(0, 4, 4)).shape == (0, 4, 4)
    assert device_kernels.positions_forward(torch.zeros(0, 2), torch.zeros(2, 3, 4, 4)).shape == (0, 3, 4, 4)
    gradient = device_kernels.positions_backward(torch.zeros(0, 3, 4, 4), torch.zeros(0, 2), torch.zeros(2, 3, 4, 4))
    assert torch.equal(gradient, torch.zeros(2, 3, 4, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ordinary_operations_agree(dtype):
    X = skew(3, 8, [0.0, 1e-3, 3.0, 300.0], dtype)
    torch.testing.assert_close(exp_uniformly_plain(X), exp_uniformly(X), rtol=0, atol=300 * torch.finfo(dtype).eps)


def test_second_derivatives_read_no_values():
    with PretendedDevice() as device:
        X = device.tensor(skew(0, 4, [1.0, 9.0], torch.float64), requires_grad=True)
        (gradient,) = torch.autograd.grad(exp_skew(X).square().sum(), X, create_graph=True)
        gradient.square().sum().backward()
    assert X.grad.near.isfinite().all()


def test_an_item_in_the_kernels_is_noticed(monkeypatch):
    def with_item(X: torch.Tensor) -> torch.Tensor:
        most = max_level(X.shape[-1], X.dtype)
        assert X.abs().max().item() < math.inf
        return original(X) if most else X

    original = uniform_exponential.exp_uniformly
    monkeypatch.setattr(device_kernels, "exp_uniformly", with_item)
    with PretendedDevice() as device, pytest.raises(HostWaitError, match="waits for the device"):
        exp_skew(device.tensor(torch.zeros(3, 4, 4)))
