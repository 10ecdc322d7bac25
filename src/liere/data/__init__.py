"""Data sets, one per file, each with its configuration section, its facts and its loader.

Everything exported here needs only torch; `liere.data.registry` opens any data set by name.
"""

from __future__ import annotations

from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts
from liere.data.spatial_scenes import SpatialReasoning
from liere.data.subsets import draw_fraction, hold_out
from liere.data.torch_datasets import GivenData, from_datasets

__all__ = [
    "ArrayData",
    "Augmentation",
    "Batch",
    "DataFacts",
    "ExampleSet",
    "GivenData",
    "SpatialReasoning",
    "draw_fraction",
    "from_datasets",
    "hold_out",
]
