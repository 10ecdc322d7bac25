from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import LieRE, grid_positions

shapes = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)


@given(shape=shapes, data=st.data(), policy=st.sampled_from(["extend", "rescale", "reference"]))
def test_agrees_with_the_definition_cell_by_cell(shape, data, policy):
    reference = data.draw(st.tuples(*[st.integers(1, 9)] * len(shape)))
    found = grid_positions(shape, reference_shape=reference, policy=policy, dtype=torch.float64)

    def coordinate(i: int, n: int, n_ref: int) -> float:
        if policy == "extend":
            return i / (n_ref - 1) if n_ref > 1 else float(i)
        if policy == "rescale":
            return i / (n - 1) if n > 1 else 0.0
        return i * (n / n_ref) / (n - 1) if n > 1 else 0.0

    cells = itertools.product(*map(range, shape))
    expected = [[coordinate(*axis) for axis in zip(cell, shape, reference, strict=True)] for cell in cells]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-14)
    assert found.shape == (math.prod(shape), len(shape))


@given(shape=shapes)
def test_all_policies_agree_on_the_training_grid(shape):
    extend, rescale, reference = (grid_positions(shape, policy=p) for p in ("extend", "rescale", "reference"))
    if 1 not in shape:
        torch.testing.assert_close(extend, reference)
    torch.testing.assert_close(extend, rescale)


def test_extend_keeps_the_spacing_and_reference_lets_it_drift():
    """The published spacing at 32, 64 and 96 px with patch 4."""
    for n, drifted in [(8, 0.143), (16, 0.133), (24, 0.130)]:
        extend = grid_positions((n,), reference_shape=(8,))
        reference = grid_positions((n,), reference_shape=(8,), policy="reference")
        assert extend.diff(dim=0).max().item() == pytest.approx(1 / 7, abs=1e-6)
        assert reference.diff(dim=0).mean().item() == pytest.approx(drifted, abs=5e-4)


def test_axes_are_in_the_order_of_the_input():
    rows, columns = grid_positions((2, 3)).unbind(-1)
    assert rows.tolist() == [0, 0, 0, 1, 1, 1]
    assert columns.tolist() == [0, 0.5, 1, 0, 0.5, 1]


def test_device_and_dtype():
    found = grid_positions((2, 2), dtype=torch.float64, device="meta")
    assert found.dtype == torch.float64
    assert found.device.type == "meta"


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shape": ()}, ValueError, "shape must have at least one axis"),
        ({"shape": (3, 0)}, ValueError, r"at least one token, got \(3, 0\)"),
        ({"shape": (2.7, 3)}, TypeError, "shape must be a sequence of ints"),
        ({"shape": "34"}, TypeError, "shape must be a sequence of ints"),
        ({"shape": (3,), "dtype": torch.int64}, TypeError, "dtype must be a floating-point type, got torch.int64"),
        ({"shape": 7}, TypeError, r"shape must be a sequence of ints, got 7: write \(7,\)"),
        ({"shape": (3, 3), "reference_shape": (3,)}, ValueError, "reference_shape has 1 axes .* shape has 2"),
        (
            {"shape": (3,), "policy": "extends"},
            ValueError,
            "unknown position policy 'extends': did you mean 'extend'",
        ),
    ],
)
def test_bad_grids_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        grid_positions(**arguments)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("positions", "error", "message"),
    [
        (torch.zeros(9, 3), ValueError, r"positions has shape \[9, 3\], but this encoding has 2 axes"),
        (torch.zeros(9), ValueError, r"positions has shape \[9\]"),
        (torch.full((9, 2), math.nan), ValueError, r"positions\[0, 0\] is nan: positions must be finite"),
        (torch.tensor([[0.0, 0.0], [1.0, math.inf]]), ValueError, r"positions\[1, 1\] is inf"),
        (torch.zeros(9, 2, dtype=torch.complex64), TypeError, "real numbers, got dtype torch.complex64"),
        (torch.zeros(9, 2, dtype=torch.bool), TypeError, "real numbers, got dtype torch.bool"),
        (
            torch.zeros(9, 2).bfloat16(),
            TypeError,
            r"got torch.bfloat16, which is too coarse: make them in fp32; .*buffer",
        ),
        (torch.zeros(9, 2).half(), TypeError, "positions must be fp32, fp64 or integers, got torch.float16"),
    ],
)
def test_bad_positions_are_refused(positions, error, message):
    with pytest.raises(error, match=message):
        LieRE(2, 8).rotations(positions)


@pytest.mark.usefixtures("no_shape_checks")
def test_positions_must_be_a_tensor():
    with pytest.raises(TypeError, match=r"positions must be a tensor of shape .* got list: convert it"):
        LieRE(2, 8).rotations([[0.0, 0.0]])


def test_finiteness_is_not_checked_where_values_are_hidden():
    rope = LieRE(2, 8)
    assert rope.to("meta").rotations(torch.full((3, 2), math.nan, device="meta")).shape == (1, 3, 1, 8, 8)
    batched = torch.func.vmap(LieRE(2, 8).rotations)(torch.full((4, 3, 2), math.nan))
    assert batched.isnan().all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.float64])
def test_integers_and_doubles_are_positions(dtype):
    rope, positions = LieRE(2, 8), torch.randint(0, 9, (5, 2))
    torch.testing.assert_close(rope.rotations(positions.to(dtype)).float(), rope.rotations(positions.float()))


@pytest.mark.usefixtures("no_shape_checks")
def test_a_buffer_converted_with_its_module_is_refused():
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rope = LieRE(2, 8)
            self.register_buffer("positions", grid_positions((56, 56)))

        def forward(self, q, k):
            return self.rope(q, k, self.positions)

    q = torch.zeros(1, 1, 56 * 56, 8, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match=r"if they are a buffer, .* make them in forward instead"):
        Attention().bfloat16()(q, q)
    with pytest.raises(TypeError, match=r"k_positions must be fp32, fp64 or integers, got torch\.float16"):
        LieRE(2, 8)(q, q, None, grid_positions((56, 56)).half())
