"""A wrapper for a user's torch `Dataset`: checked, repeatable, and usable in other processes."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from liere.data.global_seeds import global_seeds
from liere.data.portable import dump_object, load_object
from liere.errors import InputError, InputTypeError

__all__ = ["GivenDataset", "describe", "sample_places"]

CHECKED = 16  # examples that are read twice to find out whether they are repeatable


class GivenDataset:
    """A user's data set with checked examples.

    Args:
        dataset: The data set.
        name: Name of the argument in error messages.

    Raises:
        TypeError: If it lacks `__len__` or `__getitem__`.
        ValueError: If it is empty.
    """

    def __init__(self, dataset: Any, name: str) -> None:
        is_stream = isinstance(dataset, IterableDataset)  # which may have both methods, but no examples by number
        if is_stream or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise InputTypeError(
                f"{name} must be a data set with __len__ and __getitem__, got {type(dataset).__name__}: read a stream "
                "into a list of examples first"
            )
        self.dataset, self.name = dataset, name
        if not len(self):
            raise InputError(f"{name} has no examples: give at least one")

    def __len__(self) -> int:
        return len(self.dataset)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "dataset": dump_object(self.dataset, f"the data set {self.name}")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name, self.dataset = state["name"], load_object(state["dataset"])

    def read(self, places: Sequence[int], seeds: Sequence[int]) -> list[tuple[Tensor, int]]:
        """Return examples; the global generators are seeded for each example and restored afterwards.

        Raises:
            TypeError: If an example is not a pair of an image and a label.
        """
        with global_seeds() as seed_all:
            examples = []
            for place, seed in zip(places, seeds, strict=True):
                seed_all(seed)
                examples.append(self._check(place, self.dataset[place]))
            return examples

    def check_alike(self, others: Sequence[GivenDataset]) -> tuple[int, ...]:
        """Return the shape of an image; raise `ValueError` if other data sets have another shape or dtype."""
        (image, _), *_ = self.read([0], [0])
        if image.ndim < 3:
            raise InputError(
                f"images of {self.name} must be [channels, height, width] or have more axes, got shape "
                f"{tuple(image.shape)}: add an axis for channels"
            )
        for other in others:
            for place, (one, _) in zip(ends := sample_places(len(other), 2), other.read(ends, ends), strict=True):
                if (one.shape, one.dtype) != (image.shape, image.dtype):
                    raise InputError(
                        f"image {place} of {other.name} is {describe(one)}, but image 0 of {self.name} is "
                        f"{describe(image)}: give all images the same shape and dtype"
                    )
        return tuple(image.shape)

    def measure(self, places: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return the mean and standard deviation of each channel, with uint8 pixels scaled to [0, 1].

        A constant channel gets deviation 1.

        Raises:
            ValueError: If the images change each time they are read, so that the result would change, too.
        """
        total = squares = torch.zeros(())
        count = 0
        for place in places:
            ((image, _),) = self.read([place], [place])
            values = image.double().flatten(1) / (255 if image.dtype == torch.uint8 else 1)
            if not values.isfinite().all():
                raise InputError(f"image {place} of {self.name} has NaN or infinity: fix or remove it")
            total, squares, count = total + values.sum(1), squares + values.square().sum(1), count + values.shape[1]
        if not self._is_repeatable(places[:CHECKED]):
            raise InputError(
                f"images of {self.name} change each time they are read, so their mean cannot be computed: "
                "give mean and std, or use the generators of torch, numpy or Python for random transforms"
            )
        mean = total / count
        variance = (squares / count - mean.square()).clamp(min=0)
        std = torch.where(variance > 1e-12, variance.sqrt(), 1.0)
        return mean.tolist(), std.tolist()

    def digest(self, places: Sequence[int]) -> bytes:
        """Return a digest of some examples; it includes their pixels only if these do not change between reads."""
        found = hashlib.sha256()
        with_pixels = self._is_repeatable(places)
        for image, label in self.read(places, places):
            found.update(f"{describe(image)} {label}".encode())
            if with_pixels:
                found.update(image.contiguous().view(torch.uint8).flatten().numpy().tobytes())
        return found.digest()

    def _is_repeatable(self, places: Sequence[int]) -> bool:
        both = zip(self.read(places, places), self.read(places, places), strict=True)
        return all(torch.equal(one, other) for (one, _), (other, _) in both)

    def _check(self, place: int, example: Any) -> tuple[Tensor, int]:
        if not isinstance(example, tuple | list) or len(example) != 2:
            kind = type(example).__name__
            raise InputTypeError(
                f"example {place} of {self.name} must be an image and a label, got {kind}: return a pair (image, label)"
            )
        image, label = example
        try:
            number = operator.index(label)
        except TypeError:
            raise InputTypeError(
                f"label {place} of {self.name} must be an integer, got {label!r} of type {type(label).__name__}"
            ) from None
        return _to_tensor(image, f"image {place} of {self.name}"), number


def _to_tensor(image: Any, name: str) -> Tensor:
    if not isinstance(image, Tensor):
        if not hasattr(image, "convert"):  # a duck-type check, because PIL may not be installed
            raise InputTypeError(
                f"{name} must be a tensor [channels, *size] or a PIL image, got {type(image).__name__}"
            )
        import numpy as np

        if image.mode in ("I", "F"):
            raise InputTypeError(f"{name} has pixels of 32 bits (mode {image.mode}): convert it to 8 or 16 bits")
        if image.mode.startswith("I;16"):  # as in image files; Pillow would turn most pixels white
            pixels = (np.asarray(image) >> 8).astype(np.uint8)[..., None].repeat(3, axis=2)
        else:
            pixels = np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"))
        return torch.from_numpy(pixels).view(*pixels.shape[:2], -1).permute(2, 0, 1).contiguous()
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise InputTypeError(f"{name} must be uint8 or float, got {describe(image)}: convert it to one of them")
    return image.detach().cpu() if image.dtype == torch.uint8 else image.detach().cpu().float()


def describe(image: Tensor) -> str:
    """Return the dtype and shape of an image as text."""
    return f"{str(image.dtype).removeprefix('torch.')} of shape {tuple(image.shape)}"


def sample_places(length: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced indices below `length`.

    Example:
        >>> sample_places(10, 5), sample_places(3, 5)
        ([0, 2, 4, 6, 8], [0, 1, 2])
    """
    number = min(length, most)
    return [place * length // number for place in range(number)]
