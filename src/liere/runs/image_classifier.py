"""A classifier for raw images that normalizes them and averages over the clips of an example."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from liere.data.examples import Batch
from liere.data.facts import DataFacts
from liere.data.normalization import to_float
from liere.vit import VisionTransformer

__all__ = ["ImageClassifier"]


class ImageClassifier(nn.Module):
    """A vision transformer with the normalization of a data set.

    Args:
        model: Model that maps normalized images to logits.
        facts: Facts of the data set, with mean and standard deviation.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: VisionTransformer, facts: DataFacts) -> None:
        super().__init__()
        self.model = model
        self.axes = len(facts.image_size)
        self.register_buffer("mean", torch.tensor(facts.mean), persistent=False)
        self.register_buffer("std", torch.tensor(facts.std), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images `[batch, channels, *size]`, uint8 or float."""
        return self.model(to_float(images, mean=self.mean, std=self.std))

    def example_logits(self, images: Tensor) -> Tensor:
        """Return logits in fp32; for several clips per example, the logarithms of their mean probabilities.

        Args:
            images: `[batch, channels, *size]`, or `[batch, clips, channels, *size]`.
        """
        if images.ndim < self.axes + 3:
            return self(images).float()
        clips = self(images.flatten(0, 1)).float().log_softmax(1).unflatten(0, images.shape[:2])
        return clips.logsumexp(1) - math.log(images.shape[1])

    def classify(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return predictions, losses and whether predictions are correct, `[batch]` each."""
        logits = self.example_logits(batch.images)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        predictions = logits.argmax(1)
        return predictions, losses, (predictions == batch.labels).float()
