"""Torch data sets as users write them."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import Dataset

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.runs.config_file import parse_config

__all__ = ["Counted", "Patches", "section"]


class Patches(Dataset):
    """Images with a bright half; `change` is a transform."""

    def __init__(self, length=60, start=0, change=None, dtype=torch.uint8, side=8):
        generator = torch.Generator().manual_seed(start)
        self.images = torch.randint(0, 100, (length, 3, side, side), generator=generator).to(dtype)
        self.labels = [place % 2 for place in range(length)]
        for image, label in zip(self.images, self.labels, strict=True):
            image[:, :, (side // 2) * label : (side // 2) * (label + 1)] += 100
        self.change = change

    def __len__(self):
        return len(self.images)

    def __getitem__(self, place):
        image = self.images[place]
        return (image if self.change is None else self.change(image)), self.labels[place]


class Counted(Dataset):
    """Examples whose reads are counted."""

    def __init__(self, examples):
        self.examples, self.reads = examples, 0

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, place):
        self.reads += 1
        return self.examples[place]


def section(data, **fields):
    """Return the configuration section of data passed from Python."""
    return parse_config({"data": data.as_config() | fields}).data
