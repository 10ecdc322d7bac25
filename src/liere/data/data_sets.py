"""The data sets of configurations: which files, which split, what a model has to know of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from liere.data import SpatialReasoning
from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.examples import DataFacts, ExampleSet
from liere.data.subsets import draw_fraction, hold_out
from liere.errors import InputError, suggest

if TYPE_CHECKING:
    from liere.data.config import DataConfig
    from liere.data.npz import NpzData

__all__ = ["SPLITS", "find_facts", "load_split"]

SPLITS = ("train", "val", "test")


def find_facts(config: DataConfig) -> DataFacts:
    """Return what a model has to know of the data: by heart for well-known data sets, otherwise from its files."""
    if config.name == "spatial":
        return _load_spatial(config, "test", config.size, 1).facts
    if config.name in ("cifar10", "cifar100"):
        from liere.data.cifar import CIFAR_FACTS

        facts = CIFAR_FACTS[config.name]
        return replace(facts, image_size=(config.size or 32,) * 2)
    if config.name == "npz":
        arrays = _read_npz(config)
        return replace(arrays.facts, image_size=arrays.size_at(config.size))
    from liere.data.decoded_data import find_decoded_facts

    return find_decoded_facts(config)


def load_split(config: DataConfig, split: str, *, size: int | None, length: int | None) -> ExampleSet:
    """Return a split of the data; see `DataConfig.load`."""
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}: {suggest(split, SPLITS)}")
    return LOADERS[config.name](config, split, size or config.size, length)


def _load_spatial(config: DataConfig, split: str, size: int | None, length: int | None) -> ExampleSet:
    return SpatialReasoning(
        size or 108,
        split,
        config.seed,
        config.train_examples if length is None and split == "train" else length,
        distance=config.distance,
        distractor_arrows=config.distractor_arrows,
        distractor_letters=config.distractor_letters,
        colours=config.colours,
    )


def _load_cifar(config: DataConfig, split: str, size: int | None, length: int | None) -> ExampleSet:
    from liere.data.cifar import read_cifar

    file = "test" if split == "test" or (split == "val" and not config.holdout) else "train"
    images, labels = read_cifar(config.name, config.path, file, verify=config.verify)
    facts = replace(config.facts, image_size=(size or 32,) * 2)
    return _choose_arrays(config, split, images, labels, facts, length)


def _read_npz(config: DataConfig) -> NpzData:
    from liere.data.npz import read_npz

    arrays = read_npz(config.path, config.seed)
    if config.sha256 is not None and arrays.sha256 != config.sha256:
        raise InputError(
            f"the arrays of {config.path} are not those that are meant: their SHA-256 sum is {arrays.sha256}, not "
            f"{config.sha256}; make or fetch them again, or take them as they are with --data.sha256 null"
        )
    return arrays


def _load_npz(config: DataConfig, split: str, size: int | None, length: int | None) -> ExampleSet:
    arrays = _read_npz(config)
    if config.rand_augment is not None:
        arrays.check_rand_augment()
    images, labels = arrays.part(split, holdout=config.holdout)
    facts = replace(arrays.facts, image_size=arrays.size_at(size))
    return _choose_arrays(config, split, images, labels, facts, length)


def _load_decoded(config: DataConfig, split: str, size: int | None, length: int | None) -> ExampleSet:
    from liere.data.decoded_data import load_decoded

    return load_decoded(config, split, size, length)


def choose_examples(config: DataConfig, split: str, labels: Tensor, length: int | None) -> Tensor:
    """Return which examples of the files of a split belong to it.

    Args:
        config: The data.
        split: `"train"`, `"val"` or `"test"`.
        labels: Of all examples of the files; for `"val"` they are those of `"train"` where examples are held out.
        length: How many examples at most; of `"train"` the first, of others evenly spread ones.
    """
    chosen = torch.arange(len(labels))
    if config.holdout and split != "test":
        chosen = hold_out(labels, config.holdout, config.seed)[split == "val"]
    if split == "train" and config.fraction < 1:
        chosen = chosen[draw_fraction(labels[chosen], config.fraction, config.seed)]
    if length is None or length >= len(chosen):
        return chosen
    return chosen[:length] if split == "train" else chosen[torch.arange(length) * len(chosen) // length]


def _choose_arrays(
    config: DataConfig, split: str, images: Tensor, labels: Tensor, facts: DataFacts, length: int | None
) -> ArrayData:
    """Return the examples of a split, of arrays that hold all that it is drawn from."""
    chosen = choose_examples(config, split, labels, length)
    if len(chosen) < len(labels):  # otherwise all of them, in order: no copy
        images, labels = images[chosen], labels[chosen]
    augmentation = Augmentation(config.padding, config.flip, config.rand_augment) if split == "train" else None
    return ArrayData(images, labels, facts, augmentation)


LOADERS: dict[str, Callable[[DataConfig, str, int | None, int | None], ExampleSet]] = {
    "spatial": _load_spatial,
    "cifar10": _load_cifar,
    "cifar100": _load_cifar,
    "images": _load_decoded,
    "imagenet": _load_decoded,
    "videos": _load_decoded,
    "ucf101": _load_decoded,
    "npz": _load_npz,
}
