"""Tiny data sets in their original layout: ImageNet's folders of JPEGs, UCF101's videos and lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("tests.training.requirements")
import numpy as np
from PIL import Image

from liere.optional.torchvision_ops import import_with_torchvision

__all__ = [
    "ACTIONS",
    "WNIDS",
    "gray_frames",
    "middle_by_torchvision",
    "picture",
    "shown_numbers",
    "truncate",
    "write_imagenet",
    "write_ucf101",
    "write_video",
]

WNIDS = ("n01440764", "n01443537", "n01484850")
ACTIONS = ("ApplyEyeMakeup", "ApplyLipstick", "Archery")
SIZES = ((120, 90), (64, 100), (75, 75), (200, 50), (33, 48))
LEVELS = 8  # difference in gray between consecutive frames


def picture(label: int, number: int, size: tuple[int, int]) -> Image.Image:
    """Return a picture whose red shows its class, with different pixels everywhere."""
    width, height = size
    rows, columns = np.mgrid[:height, :width]
    channels = [
        np.full((height, width), 40 + 70 * (label % 4)),
        255 * columns // width,
        (255 * rows // height + 31 * number) % 256,
    ]
    return Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))


def middle_by_torchvision(image: Image.Image, size: int) -> Tensor:
    """Return the usual center crop: the shorter side is resized to 256/224 of the size, then cropped."""
    transforms = import_with_torchvision("torchvision.transforms")
    change = transforms.Compose([transforms.Resize(round(size * 256 / 224)), transforms.CenterCrop(size)])
    return torch.from_numpy(np.array(change(image.convert("RGB")))).permute(2, 0, 1)


def write_imagenet(
    root: Path, classes: Sequence[str] = WNIDS, per_class: int = 5, splits: Iterable[str] = ("train", "val")
) -> Path:
    """Write JPEGs of various sizes; in each class one is gray, one is CMYK, and one is a PNG with another suffix."""
    for split in splits:
        for label, name in enumerate(classes):
            folder = root / split / name
            folder.mkdir(parents=True)
            (folder / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
            for number in range(per_class):
                file = f"{name}_{number}" if split == "train" else f"ILSVRC2012_val_{label * per_class + number:08}"
                image = picture(label, number, SIZES[number % len(SIZES)])
                mode = {1: "L", 2: "CMYK"}.get(number, "RGB")
                image.convert(mode).save(folder / f"{file}.JPEG", "PNG" if number == 3 else "JPEG", quality=95)
    return root


def gray_frames(count: int, size: tuple[int, int] = (320, 240), start: int = 0) -> list[np.ndarray]:
    """Return frames whose gray encodes their number: see `shown_numbers`."""
    return [np.full((*size[::-1], 3), start + LEVELS * number, np.uint8) for number in range(count)]


def shown_numbers(clip) -> list[int]:
    """Return the numbers of the frames of a clip `[3, frames, height, width]` that consists of `gray_frames`."""
    return (clip.float().mean((0, 2, 3)) / LEVELS).round().int().tolist()


def write_video(
    path: Path, frames: Sequence[np.ndarray], codec: str = "mpeg4", *, key_frames: int = 12, b_frames: int = 0
) -> None:
    """Write a video with 25 frames per second and regular key frames."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = key_frames, b_frames
        if codec != "libvpx-vp9":
            stream.bit_rate = 4_000_000
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))


def truncate(path: Path, size: int | None = None) -> None:
    """Truncate a file, by default to half its size."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 if size is None else size])


def write_ucf101(
    root: Path, classes: Sequence[str] = ACTIONS, *, frames: int = 30, folder: str = "UCF-101", groups: int = 4
) -> Path:
    """Write videos of some groups per class, and lists for three folds, each of which tests one of the groups.

    Videos of 0 frames are empty files, for tests that only list them.
    """
    lists = root / "ucfTrainTestlist"
    lists.mkdir(parents=True)
    numbered = "".join(f"{number} {name}\r\n" for number, name in enumerate(classes, 1))
    (lists / "classInd.txt").write_bytes(numbered.encode())
    videos = {}
    for label, name in enumerate(classes):
        (root / folder / name).mkdir(parents=True)
        for group in range(1, groups + 1):
            video = f"{name}/v_{name}_g{group:02}_c01.avi"
            if frames:
                write_video(root / folder / video, gray_frames(frames, start=label))
            else:
                (root / folder / video).touch()
            videos[video] = (label + 1, group)
    for fold in (1, 2, 3):
        train = "".join(f"{video} {label}\r\n" for video, (label, group) in videos.items() if group != fold)
        test = "".join(f"{video}\r\n" for video, (_, group) in videos.items() if group == fold)
        (lists / f"trainlist{fold:02}.txt").write_bytes(train.encode())
        (lists / f"testlist{fold:02}.txt").write_bytes(test.encode())
    return root
