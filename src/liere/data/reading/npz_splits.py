"""Labels numbered from 0, and splits that are either checked or drawn from the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from liere.data.reading.npz_archive import Array
from liere.data.reading.npz_parts import Part
from liere.data.subsets import divide, stable_key
from liere.errors import InputError, suggest
from liere.files.reading import shorten

__all__ = ["check_alike", "check_classes", "divide_part", "number_labels"]


def number_labels(parts: dict[str, Part], classes: Array | None) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Return the names of the classes, and labels numbered from 0 for each split."""
    kinds = {part.labels.dtype.kind == "U" for part in parts.values()}
    where = next(iter(parts.values())).name
    if len(kinds) > 1:
        raise InputError(f"{where}: labels are integers in one split and strings in another: use one type")
    if classes is None:
        found = {split: np.unique(part.labels, return_inverse=True) for split, part in parts.items()}
        values = sorted({value for own, _ in found.values() for value in own.tolist()})
        places = {value: place for place, value in enumerate(values)}
        return tuple(map(str, values)), {
            split: np.array([places[value] for value in own.tolist()], dtype=np.int64)[places_in_own]
            for split, (own, places_in_own) in found.items()
        }
    if classes.ndim != 1 or classes.dtype.kind not in "iuU" or len(set(classes.tolist())) < len(classes):
        raise InputError(f"{where}: classes must be unique names, one per class, got {shorten(str(classes.tolist()))}")
    names = tuple(map(str, classes.tolist()))
    places = {name: place for place, name in enumerate(names)}
    numbered = {}
    for split, part in parts.items():
        if kinds == {True}:
            for label in sorted({*part.labels.tolist()} - places.keys()):
                raise InputError(
                    f"{part.name}: label {shorten(label)!r} is not in classes: {shorten(suggest(label, names))}"
                )
            numbered[split] = np.array([places[label] for label in part.labels.tolist()], dtype=np.int64)
        else:
            numbered[split] = part.labels.astype(np.int64)
            for label in sorted({*numbered[split].tolist()} - {*range(len(names))}):
                raise InputError(f"{part.name}: label {label} is not an index of classes, 0 to {len(names) - 1}")
    return names, numbered


def divide_part(
    root: Path, images: Array, labels: Array, groups: Array | None, seed: int
) -> dict[str, NDArray[np.int64]]:
    """Return the indices of each split, independent of the order of examples; groups stay together."""
    if groups is None:
        units = np.arange(len(labels))
        keys = [stable_key(memoryview(image)) for image in images]
        classes = labels
    else:
        distinct, units = np.unique(groups, return_inverse=True)
        keys = [stable_key(str(group).encode()) for group in distinct.tolist()]
        classes = _main_classes(units, labels)
    parts = divide(torch.from_numpy(classes), torch.tensor(keys), seed)
    for split, members in parts.items():
        if not len(members):
            what = "examples" if groups is None else "groups"
            raise InputError(
                f"{root} has too few {what} ({len(classes)}), so nothing is left for {split!r}: provide at least 3 "
                f"{what} of one class, or separate train and test files"
            )
    return {split: np.flatnonzero(np.isin(units, members.numpy())) for split, members in parts.items()}


def _main_classes(units: NDArray[np.int64], labels: Array) -> NDArray[np.int64]:
    """Return the most frequent class of each group, the lowest in a tie, in linear time."""
    pairs, counts = np.unique(np.stack([units.ravel(), labels]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    _, first = np.unique(pairs[0][order], return_index=True)
    return pairs[1][order][first]


def check_alike(parts: dict[str, Part]) -> None:
    """Raise `ValueError` if splits differ in dtype or shape, or share a group."""
    train = parts["train"]
    for part in parts.values():
        for one, other, what in (
            (train.images.shape[1:], part.images.shape[1:], "channels and axes"),
            (train.images.dtype, part.images.dtype, "dtype"),
        ):
            if one != other:
                raise InputError(
                    f"{part.name} has {what} {other}, but {train.name} has {one}: use the same in all splits"
                )
    seen: dict[Any, str] = {}
    for part in parts.values():
        for group in sorted(set([] if part.groups is None else part.groups.tolist())):
            if seen.setdefault(group, part.name) != part.name:
                raise InputError(
                    f"group {shorten(repr(group))} is in {seen[group]} and in {part.name}: keep it in one split"
                )


def check_classes(root: Path, splits: dict[str, tuple[Tensor, Tensor]], names: tuple[str, ...]) -> None:
    """Raise `ValueError` if a split has a class without training examples, or there is only one class."""
    known = set(splits["train"][1].tolist())
    for split, (_, labels) in splits.items():
        for label in sorted(set(labels.tolist()) - known):
            raise InputError(
                f"{root}: label {shorten(names[label])!r} is in {split!r} but not in 'train': remove it, or split "
                "the examples differently with another data.seed"
            )
    if len(known) < 2:
        raise InputError(
            f"{root}: all training examples have label {shorten(names[min(known)])!r}: add examples of another class"
        )
