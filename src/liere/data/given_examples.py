"""Examples and labels of data sets that were given from Python."""

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
from liere.data.facts import DataFacts
from liere.data.given_dataset import GivenDataset, describe, sample_places
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["GivenExamples", "read_labels"]

CHECKED = 16  # labels that a data set lists, compared with those of its examples


class GivenExamples(ExampleSet):
    """Some examples of a data set that was given.

    Args:
        source: The data set.
        places: Which of its examples.
        facts: Of the data; images are resized to its `image_size`, batch by batch.
        augmentation: What happens to training examples.
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
        """What a model has to know of it."""
        return self._facts

    def __len__(self) -> int:
        return len(self.places)

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a batch; random bits decide random transforms of the data set itself, too."""
        ids = torch.tensor(indices, dtype=torch.long)
        places = self.places[ids].tolist()
        examples = self.source.read(places, places if bits is None else bits.tolist())
        for place, (image, label) in zip(places, examples, strict=True):
            if image.shape != examples[0][0].shape or image.dtype != examples[0][0].dtype:
                raise InputError(
                    f"image {place} of {self.source.name} is {describe(image)}, but image {places[0]} is "
                    f"{describe(examples[0][0])}: make them alike"
                )
            _check_label(place, label, len(self._facts.classes), self.source.name)
        images = torch.stack([image for image, _ in examples])
        if bits is not None and self.augmentation:
            images = self.augmentation(images, bits)
        labels = torch.tensor([label for _, label in examples])
        return Batch(ids, resize(images, self._facts.image_size), labels)


def read_labels(data: GivenDataset, classes: int | None = None) -> Int[Tensor, "examples"]:
    """Return all labels of a data set: those that it lists, if some examples agree; otherwise all examples are read.

    Args:
        data: The data set.
        classes: How many classes there are; None where that is not known yet.

    Raises:
        ValueError: If a label is none of them.
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
    """Return the labels that a data set keeps besides its images, as those of torchvision do; None if it does not."""
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
    """Raise `ValueError` if a label is no place in the classes; None where their number is not known yet."""
    if label < 0 or (classes is not None and label >= classes):
        allowed = "at least 0" if classes is None else f"from 0 to {classes - 1}"
        raise InputError(f"label {place} of {name} must be {allowed}, got {label}: give all classes, or map labels")
