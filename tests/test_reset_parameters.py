"""Models built on `meta` and initialized later."""

from __future__ import annotations

import copy

import pytest
import torch

from liere import LieRE, PositionEncoding
from tests.models import ENCODINGS, small_model

OPTIONS = {"num_registers": 2, "qk_norm": True, "qkv_bias": True}


@pytest.mark.parametrize("name", ENCODINGS)
def test_models_from_meta_start_as_those_of_the_constructor(name):
    expected = small_model(name, seed=3, **OPTIONS)
    with torch.device("meta"):
        model = small_model(name, **OPTIONS)
    model.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    torch.manual_seed(3)
    model.reset_parameters()
    for (key, found), wanted in zip(model.named_parameters(), expected.parameters(), strict=True):
        assert torch.equal(found, wanted), key
    x = torch.randn(1, 3, 16, 24)
    assert torch.equal(model(x), expected(x))


def test_every_module_with_parameters_of_its_own_can_initialize_them():
    """Some tools call `reset_parameters` of each module that holds parameters."""
    model = small_model("liere8", **OPTIONS)
    for name, module in model.named_modules():
        if list(module.parameters(recurse=False)):
            assert callable(getattr(module, "reset_parameters", None)), name
    before = copy.deepcopy(model)
    for block in model.blocks:
        block.attention.reset_parameters()
    assert not torch.equal(model.blocks[0].attention.qkv.weight, before.blocks[0].attention.qkv.weight)
    assert torch.equal(model.blocks[0].mlp[0].weight, before.blocks[0].mlp[0].weight)


def test_a_layer_alone():
    torch.manual_seed(0)
    expected = LieRE(2, 16, num_heads=2, init_scale=3.0)
    rope = LieRE(2, 16, num_heads=2, init_scale=3.0, device="meta").to_empty(device="cpu")
    torch.manual_seed(0)
    rope.reset_parameters()
    assert torch.equal(rope.generators, expected.generators)


def test_an_encoding_that_does_not_say_how_is_refused():
    class Own(PositionEncoding):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

    with pytest.raises(NotImplementedError, match="Own has parameters, but no reset_parameters: define it"):
        small_model(Own()).reset_parameters()


def test_averaged_copies_follow_the_weights():
    model = small_model("liere8")
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        for step in range(3):
            before = average(x)
            assert torch.equal(before, average(x))
            model.encoding.generators.add_(0.1 * step + 0.1)
            average.update_parameters(model)
            assert step == 0 or not torch.equal(average(x), before), "rotations of earlier weights were used"
        fresh = small_model("liere8", seed=1)
        fresh.load_state_dict(average.module.state_dict())
        assert torch.equal(fresh(x), average(x))
    assert [name for name, _ in model.named_buffers()] == []
