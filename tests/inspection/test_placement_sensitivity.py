from __future__ import annotations

import pytest
import torch

import liere
from liere.inspection.placement_sensitivity import attention_changes


def model(encoding: str, **options):
    torch.manual_seed(0)
    size = {"dim": 16, "depth": 2, "heads": 2, "mlp_dim": 16}
    return liere.create_model(encoding=encoding, image_size=8, patch_size=2, num_classes=2, **size, **options).eval()


IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_rotations_that_do_not_commute_notice_that_the_grid_moved():
    one = model("liere8", pool="mean")
    changes = attention_changes(one, IMAGES, [(3, 5)])
    assert len(changes) == 2
    assert all(0.001 < layer.patches <= 1 for layer in changes)
    assert all(layer.prefix is None for layer in changes)
    assert attention_changes(one, IMAGES, [(0, 0)])[0].patches == pytest.approx(0, abs=1e-7)
    several = attention_changes(one, IMAGES, [(3, 5), (0, 0)])
    assert several[0].patches == pytest.approx(changes[0].patches / 2, rel=1e-4)  # the mean over offsets


def test_relative_positions_move_the_prefix_alone():
    """RoPE depends only on relative positions, and the CLS token has no position."""
    changes = attention_changes(model("rope_mixed"), IMAGES, [(3, 5)])
    assert changes[0].prefix > 1e-4
    assert changes[0].prefix > 5 * changes[0].patches


def test_the_model_is_as_before_also_after_a_failure():
    one = model("liere8")
    before = one(IMAGES)
    with pytest.raises(ValueError, match=r"axes|offset|placement|shorter"):
        attention_changes(one, IMAGES, [(1.0, 2.0, 3.0)])
    assert torch.equal(one(IMAGES), before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: attention_changes(model("absolute"), IMAGES, [(1, 1)]), "has no coordinates to move: use"),
        (lambda: attention_changes(model("liere8").train(), IMAGES, [(1, 1)]), "eval mode"),
        (lambda: attention_changes(model("liere8"), IMAGES, []), "at least one offset"),
    ],
)
def test_what_cannot_be_measured_is_told(change, message):
    with pytest.raises(ValueError, match=message):
        change()
