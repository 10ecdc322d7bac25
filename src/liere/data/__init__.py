"""Data sets, one a file; `liere.data.config.DataConfig` opens any of them by name."""

from __future__ import annotations

from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts
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
]
