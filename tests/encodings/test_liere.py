from __future__ import annotations

import math
from datetime import date

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere import LieRE, create_model, grid_positions
from liere.encodings.rope_mixed import RoPEMixed
from liere.generators import commutator_norm, skew_from_upper
from liere.inspection.measures import relativity_errors
from tests.models import small_model
from tests.numerics import assert_close, block_sizes, dtypes, exp_by_eigenvectors, norms, seeds, tolerance


@pytest.mark.parametrize(
    ("block_size", "count"),
    [(2, 9_216), (4, 27_648), (8, 64_512), (16, 138_240), (32, 285_696), (64, 580_608)],
)
def test_parameter_counts_of_the_paper(block_size, count):
    rope = LieRE(2, 64, num_heads=12, depth=12, block_size=block_size)
    assert sum(p.numel() for p in rope.parameters()) == count
    volume = LieRE(3, 64, num_heads=12, depth=12, block_size=block_size)
    assert sum(p.numel() for p in volume.parameters()) == count * 3 // 2


@pytest.mark.parametrize("block_size", [2, 3, 5, 8, 12, 48, 64])
@pytest.mark.parametrize(("share_heads", "share_layers"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_parameter_counts_with_sharing(block_size, share_heads, share_layers, ndim):
    rope = LieRE(
        ndim,
        64,
        num_heads=3,
        depth=4,
        block_size=block_size,
        share_heads=share_heads,
        share_layers=share_layers,
    )
    heads, layers = (1 if share_heads else 3), (1 if share_layers else 4)
    blocks = 64 // block_size
    count = ndim * layers * heads * blocks * block_size * (block_size - 1) // 2
    assert rope.generators.numel() == count
    assert all("generators" in key for key in rope.state_dict())
    positions = torch.rand(5, ndim)
    R = [rope.rotations(positions, layer) for layer in range(4)]
    for r in R:
        assert r.shape == (3, 5, blocks, block_size, block_size)
    assert torch.equal(R[0][0], R[0][1]) == share_heads
    assert torch.equal(R[0], R[1]) == share_layers


def test_vit_base_of_the_paper():
    cifar = {"image_size": 32, "patch_size": 4, "num_classes": 100}
    with torch.device("meta"):
        absolute = create_model("vit_base", encoding="absolute", **cifar)
        liere = create_model("vit_base", encoding="liere8", **cifar)
    assert sum(p.numel() for p in absolute.parameters()) == 85_193_572
    assert absolute.encoding.embedding.numel() == 49_920
    # The 65 position vectors are replaced by generators.
    assert sum(p.numel() for p in liere.parameters()) == 85_193_572 - 65 * 768 + 64_512


@given(
    size=block_sizes,
    ndim=st.integers(1, 3),
    norm=norms,
    dtype=dtypes,
    rest=st.integers(0, 1),
    seed=seeds,
    share_heads=st.booleans(),
)
def test_rotations_agree_with_a_plain_reference(size, ndim, norm, dtype, rest, seed, share_heads):
    """R(p) = exp(sum_d p_d A_d), matrix by matrix in fp64."""
    torch.manual_seed(seed)
    rope = LieRE(ndim, size + rest, num_heads=2, depth=2, block_size=size, share_heads=share_heads).to(dtype)
    positions = torch.randn(3, ndim, dtype=dtype)
    with torch.no_grad():
        X = _write_slowly(rope, positions, layer=1)
        scale = norm / torch.linalg.matrix_norm(X, ord=2).max().clamp(min=1e-30)
        rope.generators.mul_(scale)
        R = rope.rotations(positions, layer=1)
        assert_close(R, exp_by_eigenvectors(_write_slowly(rope, positions, layer=1)), tolerance(dtype, norm, units=20))
        assert_close(R @ R.mT, torch.eye(size).expand_as(R), tolerance(dtype, norm))


def _write_slowly(rope: LieRE, positions: torch.Tensor, layer: int) -> torch.Tensor:
    X = torch.zeros(rope.num_heads, len(positions), rope.num_blocks, rope.block_size, rope.block_size).double()
    for head in range(rope.num_heads):
        for token, position in enumerate(positions.double()):
            for axis, coordinate in enumerate(position):
                upper = rope.generators[layer, axis, 0 if rope.share_heads else head].double()
                X[head, token] += coordinate * skew_from_upper(upper, rope.block_size)
    return X.detach()


@given(size=block_sizes, dtype=dtypes, seed=seeds)
def test_group_properties_of_positions(size, dtype, seed):
    torch.manual_seed(seed)
    rope = LieRE(2, size, block_size=size, dtype=dtype)
    p = torch.rand(4, 2, dtype=dtype)
    norm = torch.linalg.matrix_norm(_write_slowly(rope, p, 0), ord=2).max().item()
    atol = tolerance(dtype, 2 * norm)
    eye = torch.eye(size, dtype=dtype)
    assert torch.equal(rope.rotations(torch.zeros(4, 2, dtype=dtype)), eye.expand(1, 4, 1, -1, -1))
    assert_close(rope.rotations(-p), rope.rotations(p).mT, atol)
    assert_close(rope.rotations(0.3 * p) @ rope.rotations(0.5 * p), rope.rotations(0.8 * p), atol)


@given(head_dim=st.integers(2, 65), ndim=st.integers(1, 3), dtype=dtypes, seed=seeds)
def test_block_2_is_rope_mixed_computed_with_cosine_and_sine(head_dim, ndim, dtype, seed):
    torch.manual_seed(seed)
    rope = LieRE(ndim, head_dim, num_heads=2, depth=2, block_size=2, dtype=dtype)
    q, positions = torch.randn(1, 2, 5, head_dim, dtype=dtype), torch.randn(5, ndim, dtype=dtype)
    rotated, _ = rope(q, q, positions, layer=1)
    angle = torch.einsum("td,dhn->htn", positions, rope.generators[1, ..., 0])
    cos, sin = angle.cos(), angle.sin()
    first, second = q[..., 0 : head_dim - head_dim % 2 : 2], q[..., 1::2]
    expected = torch.stack([cos * first + sin * second, cos * second - sin * first], dim=-1).flatten(-2)
    assert_close(rotated[..., : expected.shape[-1]], expected, tolerance(dtype, angle.abs().max().item()))
    assert torch.equal(rotated[..., expected.shape[-1] :], q[..., expected.shape[-1] :])
    mixed = RoPEMixed(ndim, head_dim, num_heads=2, depth=2, dtype=dtype)
    mixed.load_state_dict(rope.state_dict())
    assert torch.equal(mixed(q, q, positions, layer=1)[0], rotated)


@given(size=block_sizes, seed=seeds)
def test_relative_positions_exactly_where_generators_commute(size, seed):
    torch.manual_seed(seed)
    x, y = torch.rand(2, 8, 2, dtype=torch.float64).unbind()
    rope = LieRE(2, size, block_size=size, dtype=torch.float64)
    with torch.no_grad():
        rope.generators.sub_(math.pi)
        if size > 2:
            assert commutator_norm(*rope.skew_generators()[:, 0, 0].unbind()) > 1e-3
            assert relativity_errors(rope, x, y).mean() > 1e-2
        rope.generators[:, 1] = -0.7 * rope.generators[:, 0]
        norm = torch.linalg.matrix_norm(rope.skew_generators()[:, 0, 0], ord=2).max().item()
        assert relativity_errors(rope, x, y).max() < tolerance(torch.float64, 2 * norm)


@given(size=st.sampled_from([2, 3, 5, 8]), seed=seeds)
def test_attention_scores_depend_on_differences_where_generators_commute(size, seed):
    torch.manual_seed(seed)
    q, k = torch.randn(2, 1, 1, 6, 8, dtype=torch.float64).unbind()
    positions, shift = torch.rand(6, 2, dtype=torch.float64), torch.rand(2, dtype=torch.float64)
    free = LieRE(2, 8, block_size=size, dtype=torch.float64)
    commuting = LieRE(2, 8, block_size=size, dtype=torch.float64)
    with torch.no_grad():
        commuting.generators[:, 1] = 0.5 * commuting.generators[:, 0]

    def change(rope: LieRE) -> float:
        (q1, k1), (q2, k2) = rope(q, k, positions), rope(q, k, positions + shift)
        return (q1 @ k1.mT - q2 @ k2.mT).abs().max().item()

    assert change(commuting) < 1e-11
    assert (change(free) < 1e-11) == (size == 2)


@given(seed=seeds, size=st.sampled_from([2, 3, 8]))
def test_one_dimension_is_relative_for_every_block_size(seed, size):
    torch.manual_seed(seed)
    rope = LieRE(1, 8, block_size=size, dtype=torch.float64)
    x, y = torch.rand(2, 8, 1, dtype=torch.float64).unbind()
    assert relativity_errors(rope, x, y).max() < 1e-12


def test_each_layer_has_its_own_generators_and_each_gets_a_gradient():
    """Each layer uses its own generators; the published code overwrites all rotations with those of layer 0."""
    for encoding in ("rope_mixed", "liere8", "liere"):
        gradients = _generator_gradients(small_model(encoding))
        assert (gradients > 0).all(), encoding


def test_the_published_mistake_would_be_noticed():
    class Mistaken(LieRE):
        def layer_rotations(self, positions, depth):
            return (self.rotations(positions, 0),) * depth

    gradients = _generator_gradients(small_model(Mistaken(2, 24, num_heads=2, depth=3)))
    assert gradients[0] > 0
    assert (gradients[1:] == 0).all()


def _generator_gradients(model: torch.nn.Module) -> torch.Tensor:
    torch.manual_seed(0)
    model(torch.randn(2, 3, 16, 16)).square().sum().backward()
    return model.encoding.generators.grad.flatten(1).norm(dim=1)


def test_changing_one_layers_generators_changes_that_layer_only():
    rope = LieRE(2, 8, depth=3)
    positions = grid_positions((3, 3))
    before = list(rope.layer_rotations(positions, 3))
    with torch.no_grad():
        rope.generators[1] += 0.1
    after = list(rope.layer_rotations(positions, 3))
    assert [torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [True, False, True]


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_gradcheck_through_generators_and_positions(size):
    torch.manual_seed(0)
    heads = 2 if size < 4 else 1  # larger blocks have many entries, each of which is varied
    rope = LieRE(2, 9, block_size=size, num_heads=heads, init_scale=2.0, dtype=torch.float64)
    positions = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    q = torch.randn(2, heads, 4, 9, dtype=torch.float64, requires_grad=True)

    def attend(generators, positions, q):
        parameters = {"generators": generators}
        return torch.func.functional_call(rope, parameters, (q, q, positions), {"num_prefix_tokens": 1})

    assert torch.autograd.gradcheck(attend, (rope.generators, positions, q))


@pytest.mark.parametrize("init_scale", [1.0, 2 * math.pi])
def test_init_is_uniform_below_init_scale(init_scale):
    torch.manual_seed(0)
    generators = LieRE(2, 64, num_heads=12, depth=2, init_scale=init_scale).generators
    assert 0 <= generators.min() < 1e-3 * init_scale
    assert 0.999 * init_scale < generators.max() < init_scale
    assert generators.mean().item() == pytest.approx(init_scale / 2, rel=0.02)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_parameters_give_fp32_rotations(dtype):
    rope = LieRE(2, 16, dtype=dtype)
    positions = torch.rand(5, 2)
    wide = LieRE(2, 16)
    wide.load_state_dict({"generators": rope.generators.float()})
    assert torch.equal(rope.rotations(positions), wide.rotations(positions))
    assert rope.rotations(positions).dtype == torch.float32
    q = torch.randn(1, 1, 5, 16, dtype=dtype)
    assert rope(q, q, positions)[0].dtype == dtype


def test_positions_of_any_kind():
    rope = LieRE(2, 16)
    whole = torch.tensor([[0, 3], [2, -1]])
    assert torch.equal(rope.rotations(whole), rope.rotations(whole.float()))
    assert rope.rotations(whole.double()).dtype == torch.float64


@pytest.mark.usefixtures("no_shape_checks")
def test_block_size_is_a_whole_number():
    with pytest.raises(TypeError, match=r"block_size must be an int, got 8\.0 of type float"):
        LieRE(2, 16, block_size=8.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"block_size": 1}, "block_size must be between 2 and head_dim=16, got 1"),
        ({"block_size": 17}, "block_size must be between 2 and head_dim=16, got 17: use 2 for RoPE-Mixed"),
        ({"ndim": 0}, "ndim must be at least 1, got 0"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"depth": -1}, "depth must be at least 1, got -1"),
        ({"init_scale": math.nan}, r"init_scale must be between 0 and 1e\+12, got nan"),
    ],
)
def test_bad_dimensions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LieRE(**({"ndim": 2, "head_dim": 16} | arguments))


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("value", ["abc", None, [1.0], date(2020, 1, 1), True])
def test_init_scale_is_a_number(value):
    with pytest.raises(TypeError, match=r"init_scale must be a number, got .* of type"):
        LieRE(2, 16, init_scale=value)


@pytest.mark.parametrize("value", [1e300, 10**400])
def test_init_scale_is_a_number_whose_square_is_one_too(value):
    with pytest.raises(ValueError, match=r"init_scale must be between 0 and 1e\+12, got 1"):
        LieRE(2, 16, init_scale=value)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("name", ["share_heads", "share_layers", "recompute"])
@pytest.mark.parametrize("value", [2, "yes", None, 50 * [[]]])
def test_switches_are_true_or_false(name, value):
    with pytest.raises(TypeError, match=rf"{name} must be true or false, got .* of type"):
        LieRE(2, 16, **{name: value})


def test_rope_mixed_has_blocks_of_2_alone():
    with pytest.raises(ValueError, match="RoPE-Mixed has block_size=2, got 4: use LieRE"):
        RoPEMixed(2, 8, block_size=4)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (-1, r"layer must be between 0 and 2, got -1: the first layer is 0"),
        (3, r"layer must be between 0 and 2, got 3: build the encoding with depth=4 or more"),
    ],
)
def test_a_layer_that_is_not_there_is_told_with_its_remedy(layer, message):
    with pytest.raises(ValueError, match=message):
        LieRE(2, 16, depth=3).rotations(torch.rand(4, 2), layer=layer)


class TestUnrotatedDimensions:
    def test_there_is_one_warning_for_each_encoding(self):
        with pytest.warns(
            UserWarning, match=r"head_dim=20 .* block_size=8: the last 4 dim.* not rotated; .* for example 10"
        ) as told:
            LieRE(2, 20)
        assert len(told) == 1

    def test_a_model_warns_once_whatever_its_depth(self):
        size = {"dim": 40, "depth": 4, "heads": 2, "mlp_dim": 16}
        with pytest.warns(UserWarning, match="head_dim=20 is not a multiple of block_size=8") as told:
            create_model(encoding="liere8", image_size=8, patch_size=4, num_classes=2, **size)
        assert len(told) == 1

    def test_the_paper_s_head_of_48_is_rotated_as_before(self):
        with pytest.warns(UserWarning, match="the last 16 dimensions of each head"):
            rope = LieRE(2, 48, block_size=32)
        q, positions = torch.randn(1, 1, 4, 48), torch.rand(4, 2)
        rotated, _ = rope(q, q, positions)
        assert torch.equal(rotated[..., 32:], q[..., 32:])
        assert not torch.equal(rotated[..., :32], q[..., :32])

    @pytest.mark.filterwarnings("error:head_dim")
    @pytest.mark.parametrize("block_size", [2, 4, 8, 24, 48])
    def test_blocks_that_fit_do_not_warn(self, block_size):
        LieRE(2, 48, block_size=block_size)
