"""Examples of a torch `Dataset` that somebody else has written: checked, repeatable, and fit for other processes."""

from __future__ import annotations

import hashlib
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
from liere.data.global_seeds import global_seeds
from liere.data.portable import dump_object, load_object
from liere.shapes import Int

__all__ = ["GivenDataset", "GivenExamples", "read_labels", "sample_places"]

CHECKED = 16  # labels that an attribute claims


class GivenDataset:
    """A data set that was given, as examples of one kind.

    Args:
        dataset: The data set.
        name: The argument that it came from, for messages.

    Raises:
        TypeError: If it is no data set that can be asked for its length and for any example.
        ValueError: If it is empty.
    """

    def __init__(self, dataset: Any, name: str) -> None:
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise TypeError(
                f"{name} must be a data set with __len__ and __getitem__, got {type(dataset).__name__}: read streams "
                "into a list of examples first"
            )
        self.dataset, self.name = dataset, name
        if not len(self):
            raise ValueError(f"{name} has no examples: give at least one")

    def __len__(self) -> int:
        return len(self.dataset)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "dataset": dump_object(self.dataset, f"the data set {self.name}")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name, self.dataset = state["name"], load_object(state["dataset"])

    def read(self, places: Sequence[int], seeds: Sequence[int]) -> list[tuple[Tensor, int]]:
        """Return examples; global generators are seeded for each, and afterwards are as they were.

        Raises:
            TypeError: If one is something else than an image and a label.
        """
        with global_seeds() as seed_all:
            examples = []
            for place, seed in zip(places, seeds, strict=True):
                seed_all(seed)
                examples.append(self._check(place, self.dataset[place]))
            return examples

    def check_alike(self, others: Sequence[GivenDataset]) -> tuple[int, ...]:
        """Return the shape of an image, which those of other data sets must share, as they must its dtype."""
        (image, _), *_ = self.read([0], [0])
        if image.ndim < 3:
            raise ValueError(
                f"images of {self.name} must be [channels, height, width], or with more axes, got shape "
                f"{tuple(image.shape)}: add an axis for channels"
            )
        for other in others:
            for place, (one, _) in zip(ends := sample_places(len(other), 2), other.read(ends, ends), strict=True):
                if (one.shape, one.dtype) != (image.shape, image.dtype):
                    raise ValueError(
                        f"image {place} of {other.name} is {_kind(one)}, but image 0 of {self.name} is {_kind(image)}: "
                        "make them alike"
                    )
        return tuple(image.shape)

    def measure(self, places: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return mean and deviation of each channel, of bytes in [0, 1]; a constant channel gets deviation 1.

        Raises:
            ValueError: If images are other ones each time, so that the result would be another one, too.
        """
        total = squares = torch.zeros(())
        count = 0
        for place in places:
            ((image, _),) = self.read([place], [place])
            values = image.double().flatten(1) / (255 if image.dtype == torch.uint8 else 1)
            total, squares, count = total + values.sum(1), squares + values.square().sum(1), count + values.shape[1]
        if not self._is_repeatable(places[:CHECKED]):
            raise ValueError(
                f"images of {self.name} differ each time that they are asked for, so their mean cannot be computed: "
                "give mean and std, or use the generators of torch, numpy or Python for random transforms"
            )
        mean = total / count
        variance = (squares / count - mean.square()).clamp(min=0)
        std = torch.where(variance > 1e-12, variance.sqrt(), 1.0)
        return mean.tolist(), std.tolist()

    def digest(self, places: Sequence[int]) -> bytes:
        """Return a digest of some examples; of their pixels only where these are the same each time."""
        found = hashlib.sha256()
        with_pixels = self._is_repeatable(places)
        for image, label in self.read(places, places):
            found.update(f"{_kind(image)} {label}".encode())
            if with_pixels:
                found.update(image.contiguous().view(torch.uint8).flatten().numpy().tobytes())
        return found.digest()

    def _is_repeatable(self, places: Sequence[int]) -> bool:
        both = zip(self.read(places, places), self.read(places, places), strict=True)
        return all(torch.equal(one, other) for (one, _), (other, _) in both)

    def _check(self, place: int, example: Any) -> tuple[Tensor, int]:
        if not isinstance(example, tuple | list) or len(example) != 2:
            kind = type(example).__name__
            raise TypeError(f"example {place} of {self.name} must be an image and a label, got {kind}: return a pair")
        image, label = example
        try:
            number = operator.index(label)
        except TypeError:
            raise TypeError(
                f"label {place} of {self.name} must be an integer, got {label!r} of type {type(label).__name__}"
            ) from None
        return _to_tensor(image, f"image {place} of {self.name}"), number


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
                raise ValueError(
                    f"image {place} of {self.source.name} is {_kind(image)}, but image {places[0]} is "
                    f"{_kind(examples[0][0])}: make them alike"
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
    if listed is None or any(label != listed[place] for place, (_, label) in zip(places, data.read(places, places))):  # noqa: B905
        listed = [label for place in range(len(data)) for _, label in data.read([place], [place])]
    for place, label in enumerate(listed):
        _check_label(place, label, classes, data.name)
    return torch.tensor(listed)


def sample_places(length: int, most: int) -> list[int]:
    """Return evenly spread places.

    Example:
        >>> sample_places(10, 5), sample_places(3, 5)
        ([0, 2, 4, 6, 8], [0, 1, 2])
    """
    number = min(length, most)
    return [place * length // number for place in range(number)]


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
    if label < 0 or (classes is not None and label >= classes):
        allowed = "at least 0" if classes is None else f"from 0 to {classes - 1}"
        raise ValueError(f"label {place} of {name} must be {allowed}, got {label}: give all classes, or map labels")


def _to_tensor(image: Any, name: str) -> Tensor:
    if not isinstance(image, Tensor):
        if not hasattr(image, "convert"):  # of PIL, which need not be installed
            raise TypeError(f"{name} must be a tensor [channels, *size] or a PIL image, got {type(image).__name__}")
        import numpy as np

        pixels = np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"))
        return torch.from_numpy(pixels).view(*pixels.shape[:2], -1).permute(2, 0, 1).contiguous()
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise TypeError(f"{name} must be uint8 or float, got {_kind(image)}: convert it")
    return image.detach().cpu() if image.dtype == torch.uint8 else image.detach().cpu().float()


def _kind(image: Tensor) -> str:
    return f"{str(image.dtype).removeprefix('torch.')} of shape {tuple(image.shape)}"
