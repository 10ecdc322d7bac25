from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from liere import create_model
from liere.data.examples import Batch
from liere.data.facts import DataFacts
from liere.runs.image_classifier import ImageClassifier
from liere.vit import VisionTransformer

FACTS = DataFacts(("a", "b", "c"), 2, (4, 4), (0.5, 0.0), (0.25, 2.0))


class Means(VisionTransformer):
    """A model whose logits are the mean of each channel, and 0."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return F.pad(images.mean((2, 3)), (0, 1))


def classifier() -> ImageClassifier:
    return ImageClassifier(Means(), FACTS)


def noise(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0)).byte()


def test_images_are_normalized_by_the_facts():
    images = noise(3, 2, 4, 4)
    expected = (images / 255 - torch.tensor([0.5, 0.0]).view(1, 2, 1, 1)) / torch.tensor([0.25, 2.0]).view(1, 2, 1, 1)
    assert torch.allclose(classifier()(images), Means()(expected), atol=1e-5)
    assert torch.allclose(classifier()(images / 255), Means()(expected), atol=1e-5)


def test_facts_are_not_part_of_the_weights():
    model = create_model(
        None,
        encoding="none",
        image_size=4,
        patch_size=2,
        num_classes=3,
        in_channels=2,
        dim=8,
        depth=1,
        heads=1,
        mlp_dim=8,
    )
    assert set(ImageClassifier(model, FACTS).state_dict()) == {f"model.{name}" for name in model.state_dict()}


def test_clips_of_an_example_are_averaged_as_probabilities():
    clips = noise(3, 5, 2, 4, 4)
    logits = classifier().example_logits(clips)
    each = torch.stack([classifier()(clips[:, clip]).softmax(1) for clip in range(5)])
    assert torch.allclose(logits.exp(), each.mean(0), atol=1e-6)
    assert torch.allclose(logits.exp().sum(1), torch.ones(3))


def test_a_single_view_has_the_logits_of_the_model():
    images = noise(3, 2, 4, 4)
    assert torch.equal(classifier().example_logits(images), classifier()(images))


def test_predictions_losses_and_hits_are_of_each_example():
    images = torch.zeros(3, 2, 4, 4)
    images[0, 0], images[1, 1], images[2, 0] = 1.0, 9.0, 2.0
    predictions, losses, hits = classifier().classify(Batch(torch.arange(3), images, torch.tensor([0, 1, 2])))
    assert predictions.tolist() == [0, 1, 0]
    assert hits.tolist() == [1.0, 1.0, 0.0]
    expected = -classifier()(images).log_softmax(1)[torch.arange(3), torch.tensor([0, 1, 2])]
    assert torch.allclose(losses, expected)
