from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from liere import create_model, grid_positions
from liere.flops import PAPER, PAPER_INPUT, PaperFigure, count_flops
from liere.generators import skew_at_positions
from liere.presets import SIZES, ViTSize

SMALL = ViTSize(dim=96, depth=3, heads=4, mlp_dim=80)
INPUTS = [((24,), (4,)), ((16, 8), (4, 4)), ((4, 8, 8), (2, 4, 4))]
ENCODINGS = ["none", "absolute", "sincos", "visionllama", "rope_mixed", "liere3", "liere5", "liere8", "liere"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("image_size", "patch_size"), INPUTS)
@pytest.mark.parametrize("batch_size", [1, 3])
def test_formula_agrees_with_torchs_counter(encoding, image_size, patch_size, batch_size):
    torch.manual_seed(0)
    given = {"image_size": image_size, "patch_size": patch_size, "num_classes": 7, "in_channels": 2}
    model = create_model(encoding=encoding, num_registers=2, **given, **SMALL._asdict()).eval()
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(torch.randn(batch_size, 2, *image_size))
    made = counter.get_flop_counts()["Global"].get(torch.ops.liere.rotations, 0)
    if encoding == "liere3":
        made = 2 * 27 * model.encoding.generators[:, 0].numel() // 3 * len(grid_positions(model.grid))
    parts = count_flops(SMALL, encoding, num_prefix_tokens=3, batch_size=batch_size, **given)
    products = parts.backbone - parts.norms + parts.rotate
    assert counter.get_total_flops() - made == 2 * batch_size * products
    # The number of squarings of each matrix depends on the random generators.
    expected = 2 * (batch_size * parts.exponential - _writing_positions(model))
    assert made == pytest.approx(expected, rel=0.15)


def test_the_largest_init_scale_is_counted():
    count = count_flops(
        SIZES["vit_tiny"], "liere8", image_size=(8, 8), patch_size=(4, 4), num_classes=1, init_scale=1e12
    )
    assert math.isfinite(count.true)


def _writing_positions(model) -> int:
    """Multiply-adds outside of matrix products, which torch does not count."""
    rope = model.encoding
    if not hasattr(rope, "skew_generators"):
        return 0
    heads, layers = (1 if rope.share_heads else rope.num_heads), (1 if rope.share_layers else rope.depth)
    patches = torch.Size(model.grid).numel()
    return layers * heads * patches * rope.num_blocks * rope.ndim * rope.block_size**2


@pytest.mark.parametrize(("size", "encoding"), PAPER)
def test_the_papers_table(size, encoding):
    figure = PAPER[size, encoding]
    given = PAPER_INPUT
    giga = count_flops(SIZES[size], encoding, **given).paper / 1e9
    absolute = count_flops(SIZES[size], "absolute", **given).paper / 1e9
    slips = {("vit_tiny", "liere64"), ("vit_large", "liere8")}
    assert figure.is_slip(giga, absolute) == ((size, encoding) in slips)
    if (size, encoding) != ("vit_tiny", "liere64"):
        assert f"{giga:.3f}" == f"{figure.giga:.3f}"


def test_the_papers_slips():
    tiny = count_flops(SIZES["vit_tiny"], "liere64", **PAPER_INPUT)
    assert f"{tiny.paper / 1e9:.3f}" == "1.002"
    large, absolute = (count_flops(SIZES["vit_large"], name, **PAPER_INPUT).paper for name in ("liere8", "absolute"))
    assert f"{100 * (large / absolute - 1):.2f}" == "0.13"


@pytest.mark.parametrize("change", [{"depth": 13}, {"dim": 832, "heads": 13}, {"dim": 1536}, {"mlp_dim": 3000}])
@pytest.mark.parametrize("encoding", ["absolute", "visionllama", "rope_mixed", "liere8", "liere"])
def test_changing_a_dimension_changes_every_cell(encoding, change):
    size = SIZES["vit_base"]
    before, after = (count_flops(s, encoding, **PAPER_INPUT) for s in (size, size._replace(**change)))
    assert before.paper != after.paper
    assert before.true != after.true


def test_sharing_and_batches_share_the_exponential():
    def exponential(**options) -> float:
        return count_flops(SIZES["vit_base"], "liere8", **PAPER_INPUT, **options).exponential

    own = exponential()
    for heads, layers in itertools.product([False, True], repeat=2):
        factor = (12 if heads else 1) * (12 if layers else 1)
        assert exponential(share_heads=heads, share_layers=layers) == own / factor
    assert exponential(batch_size=64) == own / 64
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        exponential(batch_size=0)


def test_expected_norm_is_near_the_measured_one():
    """RMS over random initializations, at the far corner."""
    from liere import LieRE
    from liere.flops import _expected_norms

    torch.manual_seed(0)
    for size in (5, 8, 64):
        rope = LieRE(2, size, num_heads=500, block_size=size)
        X = skew_at_positions(torch.ones(1, 2), rope.skew_generators().detach())
        measured = (torch.linalg.matrix_norm(X).square() / 2).mean().sqrt().item()
        assert _expected_norms(rope, torch.ones(1, 2)).item() == pytest.approx(measured, rel=0.03)


def test_a_figure_is_a_slip_beyond_its_rounding_only():
    assert not PaperFigure(5.607).is_slip(5.60749, 5.60749)
    assert PaperFigure(5.607).is_slip(5.609, 5.607)
    assert not PaperFigure(5.617, 0.178).is_slip(5.6166, 5.6071)
    assert PaperFigure(5.617, 0.140).is_slip(5.6166, 5.6071)


def test_smaller_generators_need_fewer_squarings():
    small, large = (
        count_flops(SIZES["vit_base"], "liere8", **PAPER_INPUT, init_scale=scale).exponential for scale in (0.01, 6.28)
    )
    assert small < large


def test_counting_leaves_the_random_numbers_alone():
    state = torch.get_rng_state()
    count_flops(SIZES["vit_tiny"], "liere8", **PAPER_INPUT)
    assert torch.equal(torch.get_rng_state(), state)
