"""Timed steps do the same work as training, and leave no gradients behind."""

from __future__ import annotations

import torch
from torch import nn

from liere.bench.models import inference, random_batch, train_step


def test_batches_are_the_same_at_every_call():
    images, labels = random_batch(3, (4, 6), num_classes=5, in_channels=2)
    assert images.shape == (3, 2, 4, 6)
    assert labels.shape == (3,)
    assert labels.min() >= 0
    assert labels.max() < 5
    assert torch.equal(images, random_batch(3, (4, 6), num_classes=5, in_channels=2)[0])
    assert random_batch(2, 8, num_classes=5)[0].shape == (2, 3, 8, 8)


def test_a_train_step_makes_gradients_and_takes_them_away():
    model, seen = nn.Linear(4, 3), []
    model.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    images, labels = torch.randn(5, 4), torch.randint(3, (5,))
    step = train_step(model, images, labels)
    step()
    step()
    expected = torch.autograd.grad(nn.functional.cross_entropy(model(images), labels), model.weight)[0]
    assert len(seen) == 3  # the one just asked for, too
    torch.testing.assert_close(seen[0], expected)
    torch.testing.assert_close(seen[1], expected)  # not added up
    assert model.weight.grad is None


def test_inference_has_no_gradients():
    model = nn.Linear(4, 3).eval()
    images = torch.randn(5, 4)
    found = inference(model, images)()
    assert found.is_inference()
    torch.testing.assert_close(found, model(images).detach())
