"""Data sets, one a file: `open_data` opens any of them by name."""

from __future__ import annotations

from typing import Any

from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.examples import Batch, DataFacts, ExampleSet
from liere.data.spatial import SpatialReasoning
from liere.data.subsets import draw_fraction, hold_out

__all__ = [
    "ArrayData",
    "Augmentation",
    "Batch",
    "DataFacts",
    "ExampleSet",
    "SpatialReasoning",
    "draw_fraction",
    "hold_out",
    "open_data",
]


def open_data(name: str, split: str = "train", **fields: Any) -> ExampleSet:
    """Return a split of a data set, as `liere train` would use it; needs `pip install 'liere[train]'`.

    Args:
        name: `"cifar10"`, `"cifar100"`, `"imagenet"`, `"ucf101"`, `"images"`, `"videos"`, `"npz"` or `"spatial"`.
        split: `"train"`, `"val"` or `"test"`.
        **fields: Fields of `liere.training.data_config.DataConfig`, such as `root="data"` or `fraction=0.2`.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If it is damaged, or a field is unknown.

    Example:
        >>> data = open_data("spatial", "test", size=48)
        >>> ids, images, labels = data.load([0, 1, 2])
        >>> images.shape, data.facts.classes
        (torch.Size([3, 3, 48, 48]), ('up', 'right', 'down', 'left'))
    """
    from liere.training.config_file import parse_config

    return parse_config({"data": {"name": name, **fields}}).data.load(split)
