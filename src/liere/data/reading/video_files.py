"""Clips of video files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from liere.data.augmentation import rand_augment
from liere.data.facts import DataFacts
from liere.data.reading.crops import BOX_DRAWS, crop_middle, crop_resize, draw_box, to_tensor, uniform_numbers
from liere.data.reading.decoded_files import DecodedFiles
from liere.data.reading.file_table import FileTable
from liere.data.reading.video_frames import import_av, read_frames
from liere.shapes import UInt8

__all__ = ["VideoFiles", "spread_clips"]


class VideoFiles(DecodedFiles):
    """Clips of video files.

    A training example is a clip with a random start; the same random crop is taken of each of its frames, resized and
    mirrored. A test example consists of several clips spaced evenly over the video, or the one in its middle, with
    center crops. If a video is shorter than a clip, its last frame is repeated.

    Args:
        files: The files.
        facts: Facts of the data set; `image_size` is the number of frames of a clip, their height and their width.
        frame_stride: Step from one frame of a clip to the next, in video frames.
        test_clips: Clips per test example; if more than one, examples are `[clips, 3, frames, size, size]`.
        min_area: Minimum area of a random crop, as a fraction of the frame.
        flip: Whether each training clip is mirrored with probability 1/2.
        rand_augment: Operations and magnitude of RandAugment, the same for all frames of a clip.
        max_unreadable: Maximum number of skipped files.

    Raises:
        ImportError: If PyAV is not installed.
    """

    def __init__(
        self,
        files: FileTable,
        facts: DataFacts,
        *,
        frame_stride: int = 4,
        test_clips: int = 5,
        min_area: float = 0.08,
        flip: bool = False,
        rand_augment: tuple[int, int] | None = None,
        max_unreadable: int = 10,
    ) -> None:
        super().__init__(files, facts, max_unreadable=max_unreadable)
        import_av()
        self.frame_stride, self.test_clips, self.min_area, self.flip = frame_stride, test_clips, min_area, flip
        self.rand_augment = rand_augment
        self.frames = facts.image_size[0]
        self.span = (self.frames - 1) * frame_stride + 1

    def decode(self, path: Path, bits: int | None) -> UInt8[Tensor, "*clips 3 frames size size"]:
        """Return a random clip if random bits are given, else the clips for testing."""
        size = self.facts.image_size[-1]
        if bits is None:
            pictures = read_frames(path, self._spread, lambda frame: crop_middle(frame, size), least=self.span)
            clips = _stack(pictures).unflatten(1, (self.test_clips, self.frames)).movedim(1, 0).contiguous()
            return clips if self.test_clips > 1 else clips[0]
        side, when, *numbers = uniform_numbers(bits, 2 + BOX_DRAWS)

        def anywhere(count: int) -> list[int]:
            return self._clip(int(when * max(count - self.span + 1, 1)), count)

        def crop(frame: Image.Image) -> Image.Image:  # all frames have the same size, so they get the same box
            box = draw_box(*frame.size, numbers, self.min_area)
            return crop_resize(frame, box, size, mirrored=self.flip and side < 0.5)

        clip = _stack(read_frames(path, anywhere, crop, least=self.span))
        if self.rand_augment is None:
            return clip
        return rand_augment(clip.movedim(1, 0), bits, *self.rand_augment).movedim(0, 1)

    def _clip(self, start: int, count: int) -> list[int]:
        return [min(start + step * self.frame_stride, count - 1) for step in range(self.frames)]

    def _spread(self, count: int) -> list[int]:
        starts = spread_clips(count, self.span, self.test_clips)
        return [number for start in starts for number in self._clip(start, count)]


def spread_clips(count: int, span: int, clips: int) -> list[int]:
    """Return the first frames of clips spaced evenly over a video, from its very start to its very end.

    A single clip is in the middle.

    Args:
        count: Number of frames of the video.
        span: Number of frames from the first to the last of a clip.
        clips: Number of clips.

    Example:
        >>> spread_clips(100, 20, 5), spread_clips(100, 20, 1), spread_clips(10, 20, 2)
        ([0, 20, 40, 60, 80], [40], [0, 0])
    """
    room = max(count - span, 0)
    return [room // 2] if clips == 1 else [clip * room // (clips - 1) for clip in range(clips)]


def _stack(pictures: Sequence[Image.Image]) -> UInt8[Tensor, "3 frames height width"]:
    return torch.stack([to_tensor(picture) for picture in pictures], dim=1)
