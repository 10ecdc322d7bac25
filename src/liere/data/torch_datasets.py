"""Your own data from Python: one to three torch `Dataset` objects of (image, label) pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from liere.data.facts import DataFacts
from liere.data.given_dataset import GivenDataset, sample_places
from liere.data.given_examples import read_labels
from liere.data.subsets import SPLITS, divide
from liere.errors import InputError
from liere.shapes import Int

__all__ = ["GivenData", "find_given", "from_datasets"]

DIGESTED = 16  # examples per split
MEASURED = 1024  # examples to estimate mean and deviation from

_GIVEN: dict[str, GivenData] = {}
"""Data passed to this process, by digest: a configuration is text, and refers to its data by digest."""


class GivenData:
    """Data sets for `liere.toolkit`, created by `from_datasets`.

    It can be pickled; unpickling in another process makes the data available to configurations there.

    Attributes:
        parts: The data sets by split; a single one is stored as `"all"` and split when needed.
        facts: Properties of the data that a model needs.
        description: Description of the data for readers.
        digest: Digest of the number of examples and of some examples, which identifies the data.
    """

    def __init__(self, parts: dict[str, GivenDataset], facts: DataFacts, description: str, digest: str) -> None:
        self.parts, self.facts, self.description, self.digest = parts, facts, description, digest
        self._labels: dict[str, Tensor] = {}
        _GIVEN[digest] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the data in another process, and make them available there."""
        self.__dict__.update(state)
        _GIVEN[self.digest] = self

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(part):,} {split}" for split, part in self.parts.items())
        return f"GivenData({self.description!r}: {sizes})"

    def as_config(self) -> dict[str, Any]:
        """Return the `data` section of a configuration that uses these data."""
        facts = self.facts.as_dict()
        return {
            "name": "python",
            "description": self.description,
            "examples": {split: len(part) for split, part in self.parts.items()},
            "image_shape": [facts["channels"], *facts["image_size"]],
            "classes": facts["classes"],
            "mean": facts["mean"],
            "std": facts["std"],
            "digest": self.digest,
        }

    def part(self, split: str, seed: int) -> tuple[str, Int[Tensor, "places"]]:
        """Return the name of the data set that contains a split, and the indices of its examples there.

        Raises:
            ValueError: If a single data set has too few examples to be split.
        """
        if "all" not in self.parts:
            part = split if split in self.parts else "test"
            return part, torch.arange(len(self.parts[part]))
        places = divide(self.labels("all"), torch.arange(len(self.parts["all"])), seed)
        if not len(places["test"]):
            raise InputError(f"{self!r} has no class with two or more examples, so none is left for testing: add more")
        return "all", places[split] if len(places[split]) else places["test"]

    def labels(self, part: str) -> Int[Tensor, "examples"]:
        """Return the labels of all examples of a data set; they are read once and cached."""
        if part not in self._labels:
            self._labels[part] = read_labels(self.parts[part], len(self.facts.classes))
        return self._labels[part]


def from_datasets(
    train: Any,
    test: Any = None,
    val: Any = None,
    *,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    description: str = "",
) -> GivenData:
    """Return your own data sets as the argument `data` of `liere.toolkit.train` and `compare`.

    An example is an image and a label: a uint8 or float tensor `[channels, *size]`, all of the same shape, or a PIL
    image, and an integer from 0. Random transforms that use the generators of torch, numpy or Python are repeatable,
    because these are seeded for each example.

    Args:
        train: Data set with `__len__` and `__getitem__`. Without `test` it is split class by class with `data.seed`: a
            tenth for validation and a tenth for testing.
        test: Data set for testing.
        val: Data set for validation during training; `test` by default.
        classes: Names of the classes; by default the attribute `classes` of `train`, or else the labels.
        mean: Mean of each channel, with uint8 pixels scaled to [0, 1]; by default estimated from up to 1,024 images.
        std: Standard deviation of each channel, likewise.
        description: Description of the data, stored with the run.

    Raises:
        TypeError: If an argument is not a data set, or an example is not an image and a label.
        ValueError: If there are no examples, or their shapes, dtypes or labels do not match.

    Example:
        >>> images, labels = torch.rand(20, 1, 8, 8), torch.arange(20) % 2
        >>> data = from_datasets(torch.utils.data.TensorDataset(images, labels), description="noise")
        >>> data
        GivenData('noise': 20 all)
        >>> data.facts.classes, data.facts.image_size
        (('0', '1'), (8, 8))
    """
    if test is None and val is not None:
        raise InputError("val is given without test: also pass test, or pass only train and have it split")
    given = {"all": train} if test is None else {"train": train, "val": val, "test": test}
    parts = {
        split: GivenDataset(dataset, "train" if split == "all" else split)
        for split, dataset in given.items()
        if dataset is not None
    }
    facts = _facts(parts, classes, mean, std)
    return GivenData(parts, facts, description or type(train).__name__, _digest(parts))


def find_given(digest: str, description: str, examples: dict[str, int]) -> GivenData:
    """Return the data with this digest that were passed to this process.

    Raises:
        ValueError: If no such data were passed.
    """
    if digest in _GIVEN:
        return _GIVEN[digest]
    sizes = ", ".join(f"{number:,} {split}" for split, number in examples.items())
    others = f", only {', '.join(map(repr, _GIVEN.values()))}" if _GIVEN else ""
    raise InputError(
        f"the data of this run were passed from Python ({description}: {sizes} examples) and are not available"
        f"{others}: pass them again with data=liere.data.from_datasets(...)"
    )


def _facts(parts: dict[str, GivenDataset], classes: Any, mean: Any, std: Any) -> DataFacts:
    """Return the facts of data sets: as given, or else from the first of them."""
    first = next(iter(parts.values()))
    channels, *size = first.check_alike(list(parts.values()))
    own = getattr(first.dataset, "classes", None)  # as in torchvision
    names = _class_names(parts, own if classes is None and isinstance(own, list | tuple) else classes)
    if mean is None or std is None:
        measured = first.measure(sample_places(len(first), MEASURED))
        mean, std = measured[0] if mean is None else mean, measured[1] if std is None else std
    return DataFacts.from_dict(
        {
            "classes": list(names),
            "channels": channels,
            "image_size": size,
            "mean": [float(value) for value in mean],
            "std": [float(value) for value in std],
        }
    )


def _class_names(parts: dict[str, GivenDataset], classes: Any) -> tuple[str, ...]:
    """Return the names of the classes; without names, they are numbered from 0."""
    if classes is None:
        highest = max(int(read_labels(part).max()) for part in parts.values())
        classes = range(highest + 1)
    if isinstance(classes, str) or len(set(classes)) < len(classes):
        raise InputError(f"classes must be unique names, one per class, got {classes!r}")
    if len(classes) < 2:
        raise InputError(f"there must be at least two classes, got {list(classes)}: add examples of another class")
    return tuple(map(str, classes))


def _digest(parts: dict[str, GivenDataset]) -> str:
    digest = hashlib.sha256()
    for split in (*SPLITS, "all"):
        if split in parts:
            digest.update(f"{split} {len(parts[split])}".encode())
            digest.update(parts[split].digest(sample_places(len(parts[split]), DIGESTED)))
    return digest.hexdigest()
