"""Models whose parts were replaced: what a file can describe is saved, all else is refused before writing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from liere.integrations.hub import from_pretrained, save_pretrained
from tests.integrations.test_hub import make

pytest.importorskip("safetensors")


@pytest.mark.parametrize("head", [lambda: nn.Linear(24, 7), nn.Identity], ids=["other classes", "none"])
def test_a_new_classifier_comes_back(head, tmp_path):
    model = make(encoding="liere8")
    model.head = head()
    loaded, x = from_pretrained(save_pretrained(model, tmp_path)), torch.randn(2, 3, 8, 12)
    assert loaded.num_classes == (7 if isinstance(model.head, nn.Linear) else 0)
    with torch.no_grad():
        assert torch.equal(loaded(x), model(x))


@pytest.mark.parametrize(
    ("part", "new", "message"),
    [
        ("head", lambda: nn.Linear(24, 7, bias=False), r"no such weight for head.bias, .* makes shape \(7,\), so"),
        (
            "head",
            lambda: nn.Sequential(nn.Linear(24, 3)),
            r"shape .* for head.0.bias, .* call model.reset_classifier\(3",
        ),
        (
            "norm",
            lambda: nn.LayerNorm(24, bias=False),
            r"no such weight for norm.bias, .*: share its code and model.st",
        ),
    ],
    ids=["bias", "sequence", "norm"],
)
def test_other_parts_are_refused(part, new, message, tmp_path, no_shape_checks):
    model = make(encoding="liere8")
    setattr(model, part, new())
    with pytest.raises(ValueError, match=message):
        save_pretrained(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
