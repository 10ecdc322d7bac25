"""Conversion of arrays to pixels: channels first, uint8 or float32, with mean and deviation of each channel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from liere.data.reading.npz_archive import Array
from liere.errors import InputError

__all__ = ["as_pixels", "channels_first", "check_finite", "statistics"]

MOST_CHANNELS = 4
COUNTED_AT_ONCE = 2**22  # pixels per chunk


def channels_first(name: str, kind: str, images: Array) -> Array:
    """Return arrays `[examples, channels, *axes]`; channels, if any, are last in the input."""
    shape = images.shape
    few = 1 <= shape[-1] <= MOST_CHANNELS
    if 0 in shape:
        raise InputError(f"{name} has shape {shape} with an empty axis: give every axis at least one pixel")
    if few and (images.ndim == 5 or (images.ndim == 4 and kind == "images")):
        return np.moveaxis(images, -1, 1)
    if kind == "images" and images.ndim == 4 and shape[1] <= MOST_CHANNELS:
        raise InputError(
            f"{name} has shape {shape}: put channels last with np.moveaxis(images, 1, -1), or rename it to 'volumes' "
            f"if axis 1 has {shape[1]} slices"
        )
    if images.ndim == 4 or (kind == "images" and images.ndim == 3):
        return images[:, None]
    axes = "height, width" if kind == "images" else "depth, height, width"
    axes = axes.replace("depth", "frames") if kind == "videos" else axes
    raise InputError(
        f"{name} must be [examples, {axes}] or [examples, {axes}, channels] with at most {MOST_CHANNELS} channels, got "
        f"shape {shape}"
    )


def as_pixels(name: str, images: Array) -> Array:
    """Return uint8 arrays unchanged, bools as black and white, and other numbers as float32."""
    if images.dtype == np.uint8:
        return np.ascontiguousarray(images)
    if images.dtype == np.bool_:
        return np.ascontiguousarray(images).astype(np.uint8) * np.uint8(255)
    if images.dtype.kind not in "iuf":
        raise InputError(f"{name} must contain numbers, got {images.dtype}: convert it, for example to float32")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(images.astype(np.float32))


def check_finite(name: str, images: Array) -> Array:
    """Return the images unchanged; raise `ValueError` if they contain NaN or infinity."""
    if images.dtype == np.float32:
        bad = sum(not np.isfinite(image).all() for image in images)
        if bad:
            raise InputError(f"{name} has NaN or infinity in {bad} of {len(images)} examples: fix or remove them")
    return images


def statistics(images: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of each channel (uint8 in [0, 1]); a constant channel gets deviation 1."""
    means, deviations = [], []
    for channel in range(images.shape[1]):
        values = images[:, channel]
        if values.dtype == np.uint8:
            levels, counts = np.arange(256) / 255, _count_levels(values)
            mean = np.average(levels, weights=counts)
            deviation = np.sqrt(np.average((levels - mean) ** 2, weights=counts))
        else:
            mean, deviation = values.mean(dtype=np.float64), values.std(dtype=np.float64)
        means.append(float(mean))
        deviations.append(float(deviation) if values.min() < values.max() else 1.0)
    return tuple(means), tuple(deviations)


def _count_levels(values: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how often each byte occurs, counted in chunks because counting takes eight bytes per value."""
    step = max(COUNTED_AT_ONCE // max(values[0].size, 1), 1)
    parts = (values[start : start + step] for start in range(0, len(values), step))
    return np.sum([np.bincount(part.ravel(), minlength=256) for part in parts], axis=0)
