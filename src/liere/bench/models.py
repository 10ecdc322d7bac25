"""Train steps and inference for benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from liere.bench.devices import wait_for
from liere.presets import image_and_patch

__all__ = ["inference", "random_batch", "train_step"]


def random_batch(
    batch_size: int,
    image_size: int | tuple[int, ...],
    *,
    num_classes: int,
    in_channels: int = 3,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Return random images and labels, the same in every call."""
    generator = torch.Generator().manual_seed(0)
    image, _ = image_and_patch(image_size, 1)
    images = torch.randn(batch_size, in_channels, *image, generator=generator)
    return images.to(device), torch.randint(num_classes, (batch_size,), generator=generator).to(device)


def train_step(model: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], Any]:
    """Return a function that takes a train step without an optimizer: forward, loss, backward, zero gradients.

    It returns when the device is done.
    """

    def step() -> None:
        F.cross_entropy(model(images), labels).backward()
        model.zero_grad(set_to_none=True)
        wait_for(images.device)

    return step


def inference(model: nn.Module, images: Tensor) -> Callable[[], Any]:
    """Return a function that computes logits without gradients and waits for them. The model must be in eval mode."""

    def infer() -> Tensor:
        with torch.inference_mode():
            logits = model(images)
        wait_for(images.device)
        return logits

    return infer
