from __future__ import annotations

import pytest
import torch

from liere import LieRE, create_model
from liere.presets import SIZES
from tests.models import SMALL, small_model

CIFAR = {"image_size": 32, "patch_size": 4, "num_classes": 100}


@pytest.mark.parametrize(
    ("size", "millions"),
    [("vit_tiny", 14.3), ("vit_small", 21.4), ("vit_base", 85.2), ("vit_large", 302.5), ("vit_huge", 630)],
)
def test_sizes(size, millions):
    with torch.device("meta"):
        model = create_model(size, encoding="absolute", **CIFAR)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.005)


def test_dimensions_of_the_sizes():
    assert SIZES == {
        "vit_tiny": (384, 12, 6, 768),
        "vit_small": (384, 12, 6, 1536),
        "vit_base": (768, 12, 12, 3072),
        "vit_large": (1024, 24, 16, 4096),
        "vit_huge": (1280, 32, 16, 5120),
    }


def test_dimensions_override_a_size():
    with torch.device("meta"):
        model = create_model("vit_base", encoding="liere8", depth=3, mlp_dim=100, **CIFAR)
    assert len(model.blocks) == 3
    assert model.blocks[0].mlp[0].out_features == 100


def test_options_reach_the_encoding():
    assert small_model("absolute", init_std=1.0).encoding.init_std == 1.0
    rope = small_model("liere", block_size=6, share_heads=True, init_scale=1.0).encoding
    assert (rope.block_size, rope.share_heads, rope.init_scale) == (6, True, 1.0)
    assert small_model("liere").encoding.block_size == 24


def test_sizes_of_images_and_patches():
    assert small_model(image_size=(16, 8), patch_size=4).grid == (4, 2)
    assert small_model(image_size=[4, 8, 8], patch_size=(2, 4, 4)).grid == (2, 2, 2)
    assert small_model(image_size=16, patch_size=(4, 2)).grid == (4, 8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"size": "vit_bas"}, ValueError, "unknown size 'vit_bas': did you mean 'vit_base'?"),
        ({"size": "resnet"}, ValueError, "unknown size 'resnet': choose from 'vit_tiny'"),
        ({"encoding": "leire8"}, ValueError, "unknown encoding 'leire8': did you mean 'liere8'"),
        ({"depth": None, "dim": None}, TypeError, "without a size, create_model needs 'dim', 'depth'"),
        ({"dim": 49}, ValueError, "dim=49 is not divisible by heads=2"),
        ({"depth": 0}, ValueError, "depth must be at least 1, got 0"),
        (
            {"image_size": 18},
            ValueError,
            r"image_size \(18, 18\) is not divisible by patch_size \(4, 4\) on axis 0",
        ),
        (
            {"patch_size": (4, 4, 4)},
            ValueError,
            r"image_size \(16, 16\) has 2 axes, but patch_size .* has 3: give both one entry",
        ),
        ({"patch_size": 0}, ValueError, r"patch_size must be at least 1 on every axis, got \(0, 0\)"),
        ({"image_size": 16.0}, TypeError, "image_size must be an int, got 16.0 of type float"),
        ({"image_size": "16"}, TypeError, "image_size must be an int, got '16'"),
        ({"image_size": ()}, ValueError, r"image_size must have at least one axis, got \(\)"),
        ({"dim": "48"}, TypeError, "dim must be an int, got '48'"),
        ({"in_channels": 0}, ValueError, "in_channels must be at least 1, got 0"),
        ({"block_size": 4}, TypeError, "block_size is part of the name 'liere8': leave out block_size=4$"),
        ({"pool": "max"}, ValueError, "unknown pool 'max'"),
        ({"num_classes": -1}, ValueError, "num_classes must be at least 0, got -1"),
        ({"position_policy": "stretch"}, ValueError, "unknown position policy 'stretch'"),
        ({"dropout": 1.0}, ValueError, "dropout must be at least 0 and below 1, got 1.0"),
        ({"attn_dropout": 2.0}, ValueError, "attn_dropout must be at least 0 and below 1, got 2.0"),
        ({"drop_path": 1.0}, ValueError, "drop_path must be at least 0 and below 1, got 1.0"),
        ({"num_registers": -1}, ValueError, "num_registers must be at least 0, got -1"),
        ({"num_classes": "5"}, TypeError, "num_classes must be an int, got '5' of type str"),
        ({"num_registers": None}, TypeError, "num_registers must be an int, got None"),
        ({"in_channels": 10**30}, ValueError, r"in_channels must be below 2\*\*63, got 1000"),
        ({"depth": True}, TypeError, "depth must be an int, got True of type bool"),
        ({"drop_path": "abc"}, TypeError, "drop_path must be a number, got 'abc' of type str"),
        ({"init_scale": "abc"}, TypeError, "init_scale must be a number, got 'abc' of type str"),
        ({"shape": 1}, TypeError, "encoding 'liere8' has no option 'shape'"),
        ({"dropuot": 0.1}, TypeError, "has no option 'dropuot'.* create_model itself has 'dropout'"),
        ({"share_head": True}, TypeError, "has no option 'share_head': did you mean 'share_heads'"),
        (
            {"encoding": LieRE(2, 24), "share_heads": True},
            TypeError,
            "'share_heads' cannot be combined with an encoding",
        ),
        ({"encoding": None}, TypeError, "encoding must be a name or a PositionEncoding, got NoneType"),
        (
            {"encoding": LieRE(2, 24, num_heads=2)},
            ValueError,
            "built with depth=1, but the model has 3: .* depth=3",
        ),
    ],
)
@pytest.mark.usefixtures("no_shape_checks")
def test_bad_arguments_are_refused(arguments, error, message):
    defaults = {
        "size": None,
        "encoding": "liere8",
        "image_size": 16,
        "patch_size": 4,
        "num_classes": 5,
        **SMALL,
    }
    with pytest.raises(error, match=message):
        create_model(**(defaults | arguments))
