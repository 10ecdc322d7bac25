"""The properties of a data set that a model needs: classes, channels, image size and normalization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from liere.errors import InputError
from liere.files.reading import shorten

__all__ = ["LONGEST", "DataFacts"]

LONGEST = 10**6
"""Upper limit for the number of classes, channels, or pixels along an axis."""
MOST_AXES = 16
LARGEST = 1e30  # upper limit for means and deviations, which models keep in 32 bits


@dataclass(frozen=True)
class DataFacts:
    """The properties of a data set that a model needs.

    Attributes:
        classes: Names of the classes.
        channels: Number of channels of an image.
        image_size: Length of each axis of an image: rows and columns, preceded by time or depth if any.
        mean: Mean of each channel, with uint8 pixels scaled to [0, 1] and float pixels unchanged.
        std: Standard deviation of each channel, likewise.
    """

    classes: tuple[str, ...]
    channels: int
    image_size: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as a dict that can be written as JSON.

        Example:
            >>> facts = DataFacts(("cat", "dog"), 1, (8, 8), (0.5,), (0.25,))
            >>> facts.as_dict()
            {'classes': ['cat', 'dog'], 'channels': 1, 'image_size': [8, 8], 'mean': [0.5], 'std': [0.25]}
            >>> DataFacts.from_dict(facts.as_dict()) == facts
            True
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, content: object) -> DataFacts:
        """Return the facts in the output of `as_dict`, after checking them.

        Raises:
            ValueError: If an entry is missing, unknown or invalid.
        """
        if not isinstance(content, dict):
            raise InputError(f"the facts of the data set must be an object, got {shorten(repr(content))}")
        names = [field.name for field in fields(cls)]
        for name in names:
            if name not in content:
                raise InputError(f"the facts of the data set have no {name}")
        for name in content:
            if name not in names:
                raise InputError(f"the facts of the data set have an unknown entry {shorten(repr(name))}")
        channels = content["channels"]
        if not _is_length(channels):
            raise InputError(f"channels must be a positive integer, got {shorten(repr(channels))}")
        classes = _entries(content, "classes", "strings", lambda value: type(value) is str)
        size = _entries(content, "image_size", f"at most {MOST_AXES} positive integers", _is_length)
        if len(size) > MOST_AXES:
            raise InputError(f"image_size must be a list of at most {MOST_AXES} positive integers, got {len(size):,}")
        mean = _entries(content, "mean", f"{channels} finite numbers", _is_finite, channels)
        std = _entries(content, "std", f"{channels} positive numbers", _is_positive, channels)
        return cls(classes, channels, size, tuple(map(float, mean)), tuple(map(float, std)))


def _entries(
    content: dict[str, Any], name: str, what: str, is_right: Callable[[Any], bool], length: int | None = None
) -> tuple[Any, ...]:
    """Return a list in the facts after checking its entries and its length; None for any positive length."""
    value = content[name]
    is_list = isinstance(value, list) and 1 <= len(value) <= LONGEST and length in (None, len(value))
    if not is_list or not all(map(is_right, value)):
        raise InputError(f"{name} must be a list of {what}, got {shorten(repr(value))}")
    return tuple(value)


def _is_length(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LONGEST


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST <= value <= LARGEST


def _is_positive(value: Any) -> bool:
    return _is_finite(value) and value > 0
