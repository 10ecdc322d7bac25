"""Data sets of files that are decoded when they are asked for: images and videos, a folder a class, and UCF101."""

from __future__ import annotations

from typing import NamedTuple

from liere.data.class_folders import find_classes, list_files, split_folder
from liere.data.config import OTHER_SIZE, DataConfig
from liere.data.data_sets import choose_examples
from liere.data.decoding import IMAGENET_MEAN, IMAGENET_STD, DecodedFiles
from liere.data.examples import DataFacts
from liere.data.file_table import FileTable
from liere.data.image_folder import IMAGE_SUFFIXES, ImageFiles
from liere.data.ucf101 import list_videos, read_classes
from liere.data.video_folder import VIDEO_SUFFIXES, VideoFiles
from liere.errors import InputError

__all__ = ["find_decoded_facts", "load_decoded"]

VIDEOS = ("videos", "ucf101")


class _WellKnown(NamedTuple):
    folder: str
    classes: int


WELL_KNOWN = {"imagenet": _WellKnown("train", 1000), "ucf101": _WellKnown("ucfTrainTestlist", 101)}
"""The folder that tells the classes, and how many there are."""


def find_decoded_facts(config: DataConfig) -> DataFacts:
    """Return what a model has to know of the data.

    Where a well-known data set is not there, its classes are known by number.

    Raises:
        FileNotFoundError: If another one is not there.
        ValueError: If class folders are missing or empty, or a list is damaged.
    """
    known = WELL_KNOWN.get(config.name)
    if known and not (config.path / known.folder).is_dir():
        return _facts(config, tuple(map(str, range(known.classes))))
    return _facts(config, _classes(config))


def load_decoded(config: DataConfig, split: str, size: int | None, length: int | None) -> DecodedFiles:
    """Return a split of the data; see `DataConfig.load`."""
    facts = _facts(config, _classes(config), size)
    files = _list(config, split, facts.classes)
    files = files.select(choose_examples(config, split, files.labels, length))
    if config.name in VIDEOS:
        return VideoFiles(
            files,
            facts,
            frame_stride=config.frame_stride,
            test_clips=config.test_clips,
            min_area=config.min_area,
            flip=config.flip,
            rand_augment=config.rand_augment,
            max_unreadable=config.max_unreadable,
        )
    return ImageFiles(
        files,
        facts,
        min_area=config.min_area,
        flip=config.flip,
        rand_augment=config.rand_augment,
        max_unreadable=config.max_unreadable,
    )


def _facts(config: DataConfig, classes: tuple[str, ...], size: int | None = None) -> DataFacts:
    sides = (size or config.size or OTHER_SIZE,) * 2
    image_size = (config.frames, *sides) if config.name in VIDEOS else sides
    return DataFacts(classes, 3, image_size, IMAGENET_MEAN, IMAGENET_STD)


def _classes(config: DataConfig) -> tuple[str, ...]:
    classes = read_classes(config.path) if config.name == "ucf101" else find_classes(config.path, _suffixes(config))
    if len(classes) < 2:
        named = f"a single class, {classes[0]!r}" if classes else "no classes"
        raise InputError(f"{config.path} has {named}: there is nothing to learn; sort its files into two or more")
    return classes


def _list(config: DataConfig, split: str, classes: tuple[str, ...]) -> FileTable:
    is_held_out = split == "val" and config.holdout > 0
    if config.name == "ucf101":
        return list_videos(config.path, "train" if split == "train" or is_held_out else "test", config.fold)
    return list_files(split_folder(config.path, split, held_out=is_held_out), classes, _suffixes(config))


def _suffixes(config: DataConfig) -> tuple[str, ...]:
    return VIDEO_SUFFIXES if config.name in VIDEOS else IMAGE_SUFFIXES
