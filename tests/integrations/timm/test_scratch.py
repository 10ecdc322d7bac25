"""Models that `timm.create_model` knows after `import liere.integrations.timm`."""

from __future__ import annotations

import pytest
import timm
import torch

import liere.integrations.timm  # noqa: F401
from liere.integrations.timm.scratch import SIZES
from tests.integrations.timm.families import SMALL, difference

OPTIONS = {**SMALL, "img_size": 48}
NAME = "liere_vit_small_patch16_224"


@pytest.mark.parametrize("name", SIZES)
def test_models_are_registered(name):
    assert timm.is_model(name)
    assert name in timm.list_models("liere_*")
    assert not timm.is_model_pretrained(name)
    model = timm.create_model(name, depth=1)
    assert model.default_cfg["input_size"] == (3, 224, 224)
    dim, heads = SIZES[name]["embed_dim"], SIZES[name]["num_heads"]
    assert (model.embed_dim, model.patch_embed.grid_size) == (dim, (14, 14))
    assert model.encoding.generators.shape == (1, 2, heads, 8, 28)
    assert model.encoding.generators.std() > 1  # random, not the identity
    assert model.pos_embed is None


def test_options_are_those_of_timm_and_of_the_encoding():
    model = timm.create_model(
        NAME,
        **OPTIONS,
        in_chans=1,
        global_pool="avg",
        drop_path_rate=0.1,
        encoding="liere",
        encoding_options={"share_heads": True, "init_scale": 0.5},
        pos_embed="learn",
    )
    assert model(torch.randn(2, 1, 48, 48)).shape == (2, 5)
    assert model.encoding.generators.shape == (2, 2, 1, 1, 120)
    assert model.encoding.generators.max() <= 0.5
    assert model.pos_embed is not None
    model.reset_classifier(7)
    assert model(torch.randn(2, 1, 48, 48)).shape == (2, 7)
    model.set_input_size((64, 32))
    assert model(torch.randn(2, 1, 64, 32)).shape == (2, 7)


def test_positions_matter_and_are_learned():
    torch.manual_seed(0)
    model = timm.create_model(NAME, **OPTIONS, weight_init="jax")
    torch.nn.init.normal_(model.head.weight)
    x = torch.randn(2, 3, 48, 48)
    flipped = x.flip(-1)
    assert difference(model(flipped), model(x)) > 1e-2
    model(x).square().mean().backward()
    assert (model.encoding.generators.grad != 0).any(dim=-1).all()


def test_features():
    model = timm.create_model(NAME, **OPTIONS, features_only=True, out_indices=(0, 1))
    assert [tuple(one.shape) for one in model(torch.randn(1, 3, 48, 48))] == [(1, 32, 3, 3)] * 2
    plain = timm.create_model(NAME, **OPTIONS)
    final, intermediates = plain.forward_intermediates(torch.randn(1, 3, 48, 48))
    assert final.shape == (1, 10, 32)
    assert len(intermediates) == 2


def test_weights_round_trip():
    model, other = (timm.create_model(NAME, **OPTIONS).eval() for _ in range(2))
    x = torch.randn(1, 3, 48, 48)
    assert not torch.equal(model(x), other(x))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(x), other(x))


def test_encodings_without_generators_are_refused():
    with pytest.raises(ValueError, match="'absolute' has no generators to learn: use 'liere8'"):
        timm.create_model(NAME, **OPTIONS, encoding="absolute")
