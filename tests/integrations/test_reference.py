from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from liere import from_reference
from liere.files.weights import load_weights
from liere.integrations.reference import is_reference

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"
INDEX = json.loads((GOLDEN / "index.json").read_text()) if (GOLDEN / "index.json").exists() else {}
needs_golden = pytest.mark.skipif(not INDEX, reason="outputs of the published code are not beside the project")


def load(name: str) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict]:
    """Return weights, inputs with expected outputs, and the arguments of `from_reference`."""
    pytest.importorskip("safetensors")
    tensors = load_weights(GOLDEN / f"{name}.safetensors")
    weights = {key.removeprefix("weights/"): value for key, value in tensors.items() if key.startswith("weights/")}
    case = INDEX[name]
    encoding = f"liere{case['block_size']}" if case["encoding"] == "liere" else case["encoding"]
    return (
        weights,
        tensors,
        {"encoding": encoding, "image_size": case["image_size"], "patch_size": case["patch_size"]},
    )


@needs_golden
@pytest.mark.parametrize(
    ("name", "size"),
    [(name, "x".join(map(str, size))) for name, case in INDEX.items() for size in case["sizes"]],
)
@pytest.mark.parametrize("prefix", ["", "model."])
def test_same_logits_and_gradients_as_the_published_code(name, size, prefix):
    weights, tensors, arguments = load(name)
    model = from_reference({prefix + key: value for key, value in weights.items()}, **arguments)
    x = tensors[f"input/{size}"].requires_grad_()
    logits = model(x)
    logits.square().sum().backward()
    _assert_relative(logits, tensors[f"logits/{size}"], 1e-6)
    _assert_relative(x.grad, tensors[f"input_grad/{size}"], 2e-5)
    if f"generator_grad/{size}" in tensors:
        expected = tensors[f"generator_grad/{size}"]
        assert (expected[:, 1:] == 0).all(), "the published code lets layer 0 act alone"
        b = expected.shape[-1]
        row, column = torch.triu_indices(b, b, offset=1)
        found = model.encoding.generators.grad[0].flatten(1, 2)
        _assert_relative(found, expected[:, 0][..., row, column], 5e-5)


def _assert_relative(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < tolerance * expected.abs().max()


def reference_weights(depth: int = 2, block_size: int = 8) -> dict[str, torch.Tensor]:
    """Random weights in the layout of the published code: 32 px, patch 4, width 128."""
    dim, mlp = 128, 96
    layer = {
        "0.norm.weight": [dim],
        "0.norm.bias": [dim],
        "0.fn.to_qkv.weight": [3 * dim, dim],
        "0.fn.to_out.0.weight": [dim, dim],
        "0.fn.to_out.0.bias": [dim],
        "1.norm.weight": [dim],
        "1.norm.bias": [dim],
        "1.fn.net.0.weight": [mlp, dim],
        "1.fn.net.0.bias": [mlp],
        "1.fn.net.3.weight": [dim, mlp],
        "1.fn.net.3.bias": [dim],
    }
    shapes = {
        "cls_token": [1, 1, dim],
        "pos_embedding": [1, 65, dim],
        "to_patch_embedding.1.weight": [dim, 48],
        "to_patch_embedding.1.bias": [dim],
        "mlp_head.0.weight": [dim],
        "mlp_head.0.bias": [dim],
        "mlp_head.1.weight": [10, dim],
        "mlp_head.1.bias": [10],
        "position_encoder.generator_raw_params": [2, depth, 2 * 64 // block_size, block_size, block_size],
    }
    for i in range(depth):
        shapes |= {f"transformer.layers.{i}.{name}": shape for name, shape in layer.items()}
    return {name: torch.randn(shape) for name, shape in shapes.items()}


ARGUMENTS = {"encoding": "liere8", "image_size": 32, "patch_size": 4}


def test_layer_0_acts_in_every_layer_and_positions_are_those_of_the_published_code():
    weights = reference_weights(depth=3)
    model = from_reference(weights, **ARGUMENTS)
    assert model.encoding.share_layers
    assert model.position_policy == "reference"
    x = torch.randn(1, 3, 32, 32)
    logits = model(x)
    weights["position_encoder.generator_raw_params"][:, 1:] += 1
    assert torch.equal(from_reference(weights, **ARGUMENTS)(x), logits)
    weights["position_encoder.generator_raw_params"][:, 0] += 1
    assert not torch.equal(from_reference(weights, **ARGUMENTS)(x), logits)


def test_everything_that_does_not_fit_is_listed():
    weights = reference_weights()
    del weights["transformer.layers.0.0.norm.bias"]
    weights["position_encoder.extra"] = torch.zeros(1)
    weights["mlp_head.0.weight"] = torch.zeros(64)
    weights["position_encoder.generator_raw_params"] = torch.zeros(2, 2, 2, 64, 64)
    with pytest.raises(ValueError, match="does not match encoding='liere8', image_size=") as raised:
        from_reference(weights, **ARGUMENTS)
    message = str(raised.value)
    assert "missing: transformer.layers.0.0.norm.bias\n" in message
    assert "unexpected: position_encoder.extra\n" in message
    assert "mlp_head.0.weight is [64], expected [128]" in message
    assert "position_encoder.generator_raw_params is [2, 2, 2, 64, 64], expected [2, 2, 16, 8, 8]" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_size": 48}, r"pos_embedding is \[1, 65, 128\], expected \[1, 145, 128\]"),
        ({"patch_size": 8}, r"to_patch_embedding.1.weight is \[128, 48\], expected"),
        ({"encoding": "absolute"}, "unexpected: position_encoder.generator_raw_params"),
        ({"encoding": "liere"}, r"generator_raw_params is \[2, 2, 16, 8, 8\], expected \[2, 2, 2, 64, 64\]"),
        ({"encoding": "sincos"}, "the published code has no encoding 'sincos': choose from"),
        ({"encoding": "lier8"}, "the published code has no encoding 'lier8': did you mean 'liere8'"),
        ({"image_size": (8, 32, 32), "patch_size": (2, 4, 4)}, "wrong shape"),
    ],
)
def test_arguments_that_do_not_fit_the_weights(change, message):
    with pytest.raises(ValueError, match=message):
        from_reference(reference_weights(), **(ARGUMENTS | change))


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("state_dict", "message"),
    [
        ({"state_dict": reference_weights(), "epoch": 3}, r"whole checkpoint: pass checkpoint\['state_dict'\]"),
        ("last.ckpt", "state_dict must map names to tensors, got str"),
        ({"cls_token": 3}, r"state_dict\['cls_token'\] must be a tensor, got int"),
        ({3: torch.zeros(1)}, "state_dict must map names to tensors, got the key 3"),
        *(
            (reference_weights() | {"cls_token": tensor}, r"state_dict\['cls_token'\] must be a dense tensor of real")
            for tensor in (
                torch.zeros(1, 1, 128, dtype=torch.complex64),
                torch.zeros(1, 1, 128, device="meta"),
                torch.zeros(1, 1, 128).to_sparse(),
            )
        ),
    ],
)
def test_what_is_no_state_dict_is_refused(state_dict, message):
    with pytest.raises(TypeError, match=message):
        from_reference(state_dict, **ARGUMENTS)


def test_foreign_and_broken_weights_are_listed_in_full():
    with pytest.raises(ValueError, match="does not match") as raised:
        from_reference({"fc.weight": torch.zeros(3)}, **ARGUMENTS)
    message = str(raised.value)
    assert all(name in message for name in reference_weights(depth=1))
    assert "unexpected: fc.weight" in message
    without_layer_0 = {k: v for k, v in reference_weights().items() if not k.startswith("transformer.layers.0")}
    with pytest.raises(ValueError, match="does not match") as raised:
        from_reference(without_layer_0, **ARGUMENTS)
    assert str(raised.value).count("transformer.layers.0.") == 11
    for name in ("cls_token", "mlp_head.1.weight"):
        with pytest.raises(ValueError, match=rf"wrong shape: {name} is \[\], expected"):
            from_reference(reference_weights() | {name: torch.zeros(())}, **ARGUMENTS)
    odd = {
        name: torch.zeros(*(100 if n == 128 else 300 if n == 384 else n for n in w.shape))
        for name, w in reference_weights().items()
    }
    odd["position_encoder.generator_raw_params"] = torch.zeros(2, 2, 8, 8, 8)
    with pytest.raises(ValueError, match="cls_token has width 100, which is not a multiple of 64"):
        from_reference(odd, **ARGUMENTS)


@pytest.mark.parametrize("number", ["999999999", "9" * 5_000])
def test_a_name_cannot_claim_layers_without_end(number):
    name = f"transformer.layers.{number}.0.norm.bias"
    with pytest.raises(ValueError, match=f"unexpected: {name}"):
        from_reference(reference_weights() | {name: torch.zeros(128)}, **ARGUMENTS)


def test_channels_are_not_guessed():
    with pytest.raises(ValueError, match=r"to_patch_embedding.1.weight is \[128, 48\], expected \[128, 12\]"):
        from_reference(reference_weights(), encoding="liere8", image_size=16, patch_size=2)
    assert from_reference(reference_weights(), encoding="liere8", image_size=16, patch_size=2, in_channels=12)


def test_is_reference():
    assert is_reference({f"model.{name}": value for name, value in reference_weights().items()})
    assert not is_reference({"blocks.0.norm1.weight": torch.zeros(3)})
