"""Rotations that are recomputed in the backward pass: the same gradients, and nothing stored."""

from __future__ import annotations

import pytest
import torch

from tests.models import small_model

X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def kept_bytes(model) -> int:
    """Bytes of all tensors stored for the backward pass, counting each storage once."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = (tensor.untyped_storage().nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(X).sum()
    return sum(size for size, _ in storages.values())


@pytest.mark.parametrize("name", ["rope_mixed", "liere3", "liere5", "liere8", "liere"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_are_the_same(name, checkpointing):
    models = [small_model(name, recompute=recompute).train() for recompute in (False, True)]
    for model in models:
        model.set_grad_checkpointing(checkpointing)
        model(X).square().sum().backward()
    for (path, a), b in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5, msg=path)
    assert models[1].encoding.generators.grad.abs().amax(dim=(1, 2, 3, 4)).gt(0).all()


def test_rotations_and_little_else_are_kept():
    """In addition to the tensors of attention: rotated queries and keys, and one set of rotations per layer."""
    absolute, dense, again = (
        kept_bytes(model)
        for model in (small_model("absolute").train(), small_model("liere"), small_model("liere", recompute=True))
    )
    heads, tokens, width, layers = 2, 16, 24, 3
    rotations = layers * heads * tokens * width**2 * 4
    rotated = layers * 2 * X.shape[0] * heads * (tokens + 1) * width * 4
    small = 100_000
    assert rotations <= dense - absolute < rotations + rotated + small
    assert again - absolute < rotated + small < rotations


def test_inference_does_not_care():
    kept, again = small_model("liere8"), small_model("liere8", recompute=True)
    with torch.no_grad():
        assert torch.equal(kept(X), again(X))
