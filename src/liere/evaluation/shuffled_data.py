"""Images with shuffled patches, to measure how much a model depends on positions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from liere.data.counter_random import combine, random_bits
from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts
from liere.errors import InputError
from liere.layers import grid_shape
from liere.shapes import Int

__all__ = ["ShuffledData", "shuffle_frames", "shuffle_patches"]

SEED = 0


def shuffle_patches(images: Tensor, patch_size: tuple[int, ...], bits: Int[Tensor, "batch"]) -> Tensor:
    """Return images with shuffled patches, in a different order per image; pixels within a patch do not move.

    All orders are equally probable, including the original one. On three axes, patches are blocks of space and time,
    and move to any place in the grid. The order depends only on the bits and the grid of an image, not on the batch.

    Args:
        images: `[batch, channels, *size]`, with any number of axes and any dtype.
        patch_size: Patch size of the model, one entry per axis.
        bits: 64 random bits per image.

    Raises:
        ValueError: If a patch does not divide its axis, or `bits` has the wrong length.

    Example:
        >>> shuffle_patches(torch.arange(8).view(1, 1, 2, 4), (2, 1), torch.tensor([5])).tolist()
        [[[[1, 3, 2, 0], [5, 7, 6, 4]]]]
    """
    if bits.shape != images.shape[:1]:
        raise InputError(f"bits must have one entry per image, {len(images)} in total, got shape {tuple(bits.shape)}")
    grid = grid_shape(tuple(images.shape[2:]), patch_size)
    ndim = len(grid)
    patches = images
    for axis in reversed(range(ndim)):
        patches = patches.unflatten(2 + axis, (grid[axis], patch_size[axis]))
    # [batch, channels, rows, patch rows, columns, patch columns] -> [batch, rows, columns, channels, patch ...]
    order = (0, *range(2, 2 + 2 * ndim, 2), 1, *range(3, 3 + 2 * ndim, 2))
    patches = patches.permute(order).flatten(1, ndim)
    sources = _orders(bits, patches.shape[1]).to(images.device)
    shuffled = patches[torch.arange(len(images), device=images.device)[:, None], sources]
    back = [order.index(axis) for axis in range(len(order))]
    return shuffled.unflatten(1, grid).permute(back).reshape(images.shape)


def shuffle_frames(images: Tensor, patch_size: tuple[int, ...], bits: Int[Tensor, "batch"]) -> Tensor:
    """Return clips with shuffled frames, `patch_size[0]` of them at a time; nothing moves within a frame.

    A patch spans that many frames, and a model has no positions for the frames inside it. Groups of frames that form
    patches therefore move together: each token sees the same content at another time. To shuffle single frames, which
    also changes the content of patches, use `patch_size=(1, ...)`.

    Args:
        images: `[batch, channels, time, rows, columns]`, of any dtype; time may also be depth.
        patch_size: Patch size of the model, one entry per axis.
        bits: 64 random bits per clip.

    Raises:
        ValueError: If there are not three axes, a patch does not divide its axis, or `bits` has the wrong length.

    Example:
        >>> shuffle_frames(torch.arange(6).view(1, 1, 6, 1, 1), (2, 1, 1), torch.tensor([5])).flatten().tolist()
        [2, 3, 4, 5, 0, 1]
    """
    if images.ndim != 5:
        raise InputError(
            f"images must be [batch, channels, time, rows, columns], got shape {tuple(images.shape)}: "
            "only clips and volumes have frames, use shuffle_patches for images"
        )
    grid_shape(tuple(images.shape[2:]), patch_size)
    return shuffle_patches(images, (patch_size[0], *images.shape[3:]), bits)


def _orders(bits: Int[Tensor, "batch"], places: int) -> Int[Tensor, "batch {places}"]:
    """Return a random permutation of the places per image: places sorted by distinct random numbers."""
    return random_bits(bits, places).argsort(dim=1)


class ShuffledData(ExampleSet):
    """A data set with shuffled patches or frames, in the same order for every model.

    Args:
        data: The data set.
        patch_size: Patch size of the model, one entry per axis.
        what: `"patches"` or `"frames"`.

    Raises:
        ValueError: If there are no frames to shuffle.
    """

    def __init__(self, data: ExampleSet, patch_size: tuple[int, ...], what: str) -> None:
        axes = len(data.facts.image_size)
        if what == "frames" and axes < 3:
            raise InputError(f"there are no frames to shuffle in images of {axes} axes: shuffle patches instead")
        self.data, self.patch_size = data, patch_size
        self.shuffle = shuffle_frames if what == "frames" else shuffle_patches
        self.can_skip = data.can_skip

    @property
    def facts(self) -> DataFacts:
        """Facts of the data set."""
        return self.data.facts

    def __len__(self) -> int:
        return len(self.data)

    def load(self, indices: Sequence[int], bits: Int[Tensor, "batch"] | None = None) -> Batch:
        """Return a shuffled batch of the data set, with the same order for all clips of an example."""
        ids, images, labels = self.data.load(indices, bits)
        orders = combine(torch.tensor(SEED), ids)
        if images.ndim == len(self.patch_size) + 2:
            return Batch(ids, self.shuffle(images, self.patch_size, orders), labels)
        clips = images.shape[1]
        mixed = self.shuffle(images.flatten(0, 1), self.patch_size, orders.repeat_interleave(clips))
        return Batch(ids, mixed.unflatten(0, (-1, clips)), labels)
