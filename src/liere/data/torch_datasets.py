"""Data of one's own from Python: any torch `Dataset` of (image, label), or two or three of them."""

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

DIGESTED = 16  # examples of a split
MEASURED = 1024  # examples to estimate mean and deviation of

_GIVEN: dict[str, GivenData] = {}
"""What was given to this process, by digest: a configuration, which is text, names its data in this way."""


class GivenData:
    """Data sets that were given from Python, as `liere.toolkit` takes them; made by `from_datasets`.

    It can be pickled for other processes, where unpickling makes it known to configurations, too.

    Attributes:
        parts: The data sets, by split; a single one is under `"all"` and is divided when a split is asked for.
        facts: What a model has to know of them.
        description: What the data are, for people.
        digest: Tells these data from others: of the number of examples, and of some examples.
    """

    def __init__(self, parts: dict[str, GivenDataset], facts: DataFacts, description: str, digest: str) -> None:
        self.parts, self.facts, self.description, self.digest = parts, facts, description, digest
        self._labels: dict[str, Tensor] = {}
        _GIVEN[digest] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore it in another process, and make it known there."""
        self.__dict__.update(state)
        _GIVEN[self.digest] = self

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(part):,} {split}" for split, part in self.parts.items())
        return f"GivenData({self.description!r}: {sizes})"

    def as_config(self) -> dict[str, Any]:
        """Return the section `data` of a configuration that is about these data."""
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
        """Return the part that a split is in, and the places that it has there.

        Raises:
            ValueError: If a single data set has too few examples to be divided.
        """
        if "all" not in self.parts:
            part = split if split in self.parts else "test"
            return part, torch.arange(len(self.parts[part]))
        places = divide(self.labels("all"), torch.arange(len(self.parts["all"])), seed)
        if not len(places["test"]):
            raise InputError(f"{self!r} has no class with two examples, so none is left to test with: give more")
        return "all", places[split] if len(places[split]) else places["test"]

    def labels(self, part: str) -> Int[Tensor, "examples"]:
        """Return the labels of all examples of a data set; they are read once."""
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
    """Return data of one's own, which `liere.toolkit.train` and `compare` take as `data`.

    An example is an image and a label: a uint8 or float tensor `[channels, *size]`, all of one shape, or a PIL image,
    and an integer from 0. Random transforms that use the generators of torch, numpy or Python are repeatable: they are
    seeded for each example.

    Args:
        train: Data set with `__len__` and `__getitem__`. Without `test` it is divided, class by class: a tenth to
            validate, a tenth to test, by `data.seed`.
        test: Data set to test with.
        val: Data set to validate with while training; `test` if there is none.
        classes: Names of the classes; by default the attribute `classes` of `train`, or else the labels.
        mean: Of each channel, of uint8 images in [0, 1]; by default that of up to 1,024 training images.
        std: Standard deviation of each channel, likewise.
        description: What the data are, kept with the run.

    Raises:
        TypeError: If something is no data set, or an example is something else.
        ValueError: If there are no examples, or they do not fit together.

    Example:
        >>> images, labels = torch.rand(20, 1, 8, 8), torch.arange(20) % 2
        >>> data = from_datasets(torch.utils.data.TensorDataset(images, labels), description="noise")
        >>> data
        GivenData('noise': 20 all)
        >>> data.facts.classes, data.facts.image_size
        (('0', '1'), (8, 8))
    """
    if test is None and val is not None:
        raise InputError("val is given without test: give test, too, or one data set that is divided")
    given = {"all": train} if test is None else {"train": train, "val": val, "test": test}
    parts = {
        split: GivenDataset(dataset, "train" if split == "all" else split)
        for split, dataset in given.items()
        if dataset is not None
    }
    facts = _facts(parts, classes, mean, std)
    return GivenData(parts, facts, description or type(train).__name__, _digest(parts))


def find_given(digest: str, description: str, examples: dict[str, int]) -> GivenData:
    """Return data that were given to this process.

    Raises:
        ValueError: If they were not, or others were.
    """
    if digest in _GIVEN:
        return _GIVEN[digest]
    sizes = ", ".join(f"{number:,} {split}" for split, number in examples.items())
    others = f", and those given are others: {', '.join(map(repr, _GIVEN.values()))}" if _GIVEN else ""
    raise InputError(
        f"the data of this run were given from Python ({description}: {sizes} examples) and are not here{others}; "
        "give them again: data=liere.data.from_datasets(...)"
    )


def _facts(parts: dict[str, GivenDataset], classes: Any, mean: Any, std: Any) -> DataFacts:
    """Return what a model has to know of data sets: as given, or as the first of them has it."""
    first = next(iter(parts.values()))
    channels, *size = first.check_alike(list(parts.values()))
    own = getattr(first.dataset, "classes", None)  # as data sets of torchvision have it
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
    """Return the names of the classes; without names, labels are counted from 0."""
    if classes is None:
        highest = max(int(read_labels(part).max()) for part in parts.values())
        classes = range(highest + 1)
    if isinstance(classes, str) or len(set(classes)) < len(classes):
        raise InputError(f"classes must be different names, one per class, got {classes!r}")
    if len(classes) < 2:
        raise InputError(f"classes must be two or more, got {list(classes)}: there is nothing to learn")
    return tuple(map(str, classes))


def _digest(parts: dict[str, GivenDataset]) -> str:
    digest = hashlib.sha256()
    for split in (*SPLITS, "all"):
        if split in parts:
            digest.update(f"{split} {len(parts[split])}".encode())
            digest.update(parts[split].digest(sample_places(len(parts[split]), DIGESTED)))
    return digest.hexdigest()
