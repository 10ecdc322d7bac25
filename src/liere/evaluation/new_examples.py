"""Loading of new files and tensors, preprocessed like the test split of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from liere.data.arrays import resize
from liere.data.decoded_section import ClipSection, ImageFileSection
from liere.data.reading.class_folders import find_files
from liere.data.reading.crops import crop_middle, to_tensor
from liere.data.reading.file_table import FileTable
from liere.data.reading.image_files import read_image
from liere.errors import InputError
from liere.presets import LARGEST_SIDE
from liere.runs.run import Run

__all__ = ["ExampleReader"]


class ExampleReader:
    """A reader that preprocesses examples like the test split of a run.

    Args:
        run: The run.
        size: Side of the images; None for that of the training images.

    Raises:
        ValueError: If the data of the run do not support `size`.
    """

    def __init__(self, run: Run, size: int | None = None) -> None:
        self.data, self.facts = run.data, run.facts
        self.image_size = self._sized(size)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the files to find in folders."""
        return self.data.suffixes if isinstance(self.data, ClipSection) else ImageFileSection.suffixes

    def files(self, path: Path) -> list[Path]:
        """Return a file itself, or the files in a folder and its subfolders, sorted by name, without hidden files."""
        if not path.is_dir():
            return [path]
        return [path / file for file in sorted(find_files(path, self.suffixes))]

    def read(self, path: Path) -> Tensor:
        """Return the example in a file.

        Raises:
            UnreadableError: If it cannot be decoded.
            ValueError: If image and video files do not fit the data of the run.
        """
        if isinstance(self.data, ClipSection):
            return self._read_video(path, self.data)
        if len(self.image_size) != 2 or self.facts.channels not in (1, 3):
            raise InputError(
                f"the run was trained on examples of {self.facts.channels} channels and axes {self.image_size}, which "
                f"{path} cannot contain: call liere.toolkit.predict with tensors"
            )
        picture = read_image(path)
        if isinstance(self.data, ImageFileSection):  # images of other data sets are resized without a crop
            return to_tensor(crop_middle(picture, self.image_size[-1]))
        image = to_tensor(picture)
        if self.facts.channels == 1:
            image = to_tensor(picture.convert("L").convert("RGB"))[:1]
        return resize(image[None], self.image_size)[0]

    def examples(self, tensor: Tensor) -> Tensor:
        """Return the examples in a tensor as a batch, resized to the image size of the run.

        Raises:
            ValueError: If its number of channels or axes is wrong.
        """
        axes = len(self.image_size)
        batch = tensor[None] if tensor.ndim == axes + 1 else tensor
        if batch.ndim != axes + 2 or batch.shape[1] != self.facts.channels:
            raise InputError(
                f"a tensor has shape {list(tensor.shape)}, but the run needs [channels, *size], or a batch of these, "
                f"with {self.facts.channels} channels and {axes} axes"
            )
        if batch.dtype != torch.uint8 and not batch.is_floating_point():
            raise InputError(f"a tensor has dtype {batch.dtype}: use uint8 from 0 to 255, or floats")
        return resize(batch, self.image_size) if axes in (2, 3) else batch

    def _sized(self, size: int | None) -> tuple[int, ...]:
        known = self.facts.image_size
        if size is None:
            return known
        if size > LARGEST_SIDE:
            raise InputError(f"size must be at most {LARGEST_SIDE:,}, got {size}")
        if len(known) == 2:
            return tuple(max(round(size * length / known[-1]), 1) for length in known)
        if isinstance(self.data, ClipSection):
            return (known[0], size, size)
        raise InputError(f"size {size} applies to images and videos, but the run has axes {known}: resize the tensors")

    def _read_video(self, path: Path, data: ClipSection) -> Tensor:
        from liere.data.reading.video_files import VideoFiles

        clips = VideoFiles(
            FileTable(path.parent, [(path.name, 0)]),
            replace(self.facts, image_size=self.image_size),
            frame_stride=data.frame_stride,
            test_clips=data.test_clips,
        )
        return clips.decode(path, None)
