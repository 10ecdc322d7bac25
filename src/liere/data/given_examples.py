"""Examples and labels of data sets passed from Python."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset, TensorDataset

from liere.data.arrays import resize
from liere.data.augmentation import Augmentation
from liere.data.examples import Batch, ExampleSet
from liere.data.facts import LONGEST, DataFacts
from liere.data.given_dataset import GivenDataset, describe, sample_places
from liere.errors import InputError
from liere.files.reading import shorten
from liere.shapes import Int

__all__ = ["GivenExamples", "read_labels"]

CHECKED = 16  # examples whose labels are compared with the list of labels


class GivenExamples(ExampleSet):
    """A subset of the examples of a user's data set.

    Args:
        source: The data set.
        places: Indices of the examples in it.
        facts: Facts of the data; each batch is resized to its `image_size`.
        augmentation: Augmentation of training examples; None for none.
    """

    def __init__(
        self,
        source: GivenDataset,
        places: Int[Tensor, "examples"],
        facts: DataFacts,
        augmentation: Augmentation | None = None,
    ) -> None:
        self.source, self.places, self._facts = source, places, facts
        self.augmentation = augmentation or Augmentation()

    @property
    def facts(self) -> DataFacts:
        """Properties of the data set that a model needs."""
        return self._facts

    def __len__(self) -> int:
        return len(self.places)

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch; random bits also seed the random transforms of the data set itself."""
        ids = torch.tensor(indices, dtype=torch.long)
        places = self.places[ids].tolist()
        examples = self.source.read(places, places if bits is None else bits.tolist())
        for place, (image, label) in zip(places, examples, strict=True):
            if image.shape != examples[0][0].shape or image.dtype != examples[0][0].dtype:
                raise InputError(
                    f"image {place} of {self.source.name} is {describe(image)}, but image {places[0]} is "
                    f"{describe(examples[0][0])}: give all images the same shape and dtype"
                )
            _check_label(place, label, len(self._facts.classes), self.source.name)
        images = torch.stack([image for image, _ in examples])
        if bits is not None and self.augmentation:
            images = self.augmentation(images, bits)
        labels = torch.tensor([label for _, label in examples])
        return Batch(ids, resize(images, self._facts.image_size), labels)


def read_labels(data: GivenDataset, classes: int | None = None) -> Int[Tensor, "examples"]:
    """Return all labels: the list in the data set if a sample of the examples agrees, else read from all examples.

    Args:
        data: The data set.
        classes: Number of classes; None if it is not known yet.

    Raises:
        ValueError: If a label is out of range.
    """
    places = sample_places(len(data), CHECKED)
    listed = _listed_labels(data.dataset)
    read = dict(zip(places, (label for _, label in data.read(places, places)), strict=True))
    if listed is None or any(listed[place] != label for place, label in read.items()):
        listed = [label for place in range(len(data)) for _, label in data.read([place], [place])]
    for place, label in enumerate(listed):
        _check_label(place, label, classes, data.name)
    return torch.tensor(listed)


def _listed_labels(dataset: Any) -> list[int] | None:
    """Return the list of labels that a data set has, as in torchvision; None if it has none."""
    if isinstance(dataset, Subset):
        whole = _listed_labels(dataset.dataset)
        return None if whole is None else [whole[place] for place in dataset.indices]
    if isinstance(dataset, TensorDataset):
        found: Any = dataset.tensors[-1]
    else:
        found = next((getattr(dataset, name) for name in ("targets", "labels") if hasattr(dataset, name)), None)
    try:
        labels = [operator.index(label) for label in found]
    except TypeError:
        return None
    return labels if len(labels) == len(dataset) else None


def _check_label(place: int, label: int, classes: int | None, name: str) -> None:
    """Raise `ValueError` if a label is out of range; `classes` is None while their number is unknown."""
    most = LONGEST if classes is None else classes
    if not 0 <= label < most:
        raise InputError(
            f"label {place} of {name} must be from 0 to {most - 1}, got {shorten(str(label))}: list all classes, or "
            "map the labels to this range"
        )
