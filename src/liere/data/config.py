"""Which data a run is about."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from liere.config_fields import Count, CountOrZero, Few, FewOrZero, Rate, Section, Seed, Share, Side, Switch, Whole
from liere.data.examples import DataFacts, ExampleSet
from liere.errors import InputError

from pydantic import Field, model_validator  # isort: skip  (`liere.config_fields` tells where it is missing)

__all__ = ["DataConfig"]

Distance = Annotated[Whole, Field(ge=-(10**4), le=10**4)]
_FILES = {"root", "fraction", "holdout"}
_CROPS = {"padding", "flip", "rand_augment"}
_DECODED = {"flip", "min_area", "max_unreadable", "rand_augment"}
_CLIPS = {"frames", "frame_stride", "test_clips"}
# The fields that each data set has, besides `name`, `size` and `seed`.
FIELDS = {
    "spatial": {"train_examples", "distance", "distractor_arrows", "distractor_letters", "colours"},
    "cifar10": _FILES | _CROPS | {"verify"},
    "cifar100": _FILES | _CROPS | {"verify"},
    "imagenet": _FILES | _DECODED,
    "ucf101": _FILES | _DECODED | _CLIPS | {"fold"},
    "images": _FILES | _DECODED,
    "videos": _FILES | _DECODED | _CLIPS,
    "npz": _FILES | _CROPS | {"sha256"},
}
SIZES = {"spatial": 108, "cifar10": 32, "cifar100": 32}
OTHER_SIZE = 224
HAS_FACTS_IN_FILES = ("images", "videos", "npz")


class DataConfig(Section):
    """The data set, `liere.data`."""

    name: Literal["spatial", "cifar10", "cifar100", "imagenet", "ucf101", "images", "videos", "npz"] = "spatial"
    """data set; images and videos: a folder a class; npz: arrays of your own"""
    root: str | None = None
    """folder that holds the data set (npz: or the file); null: ./data"""
    size: Side | None = None
    """side of the training images, px; null: 108 (spatial), 32 (cifar), 224, or that of the arrays (npz)"""
    seed: Seed = 0
    """seed of the data set and its subsets (training.seed orders it)"""
    train_examples: Count = 800_000
    """spatial: how many different training examples there are"""
    distance: Distance | tuple[Distance, Distance] = 1
    """spatial: cells from the Y to its target, or a range like [1, 4]"""
    distractor_arrows: FewOrZero = 7
    """spatial: arrows besides the target"""
    distractor_letters: FewOrZero = 5
    """spatial: letters besides the Y"""
    colours: Literal["black", "random"] = "black"
    """spatial: inks"""
    fraction: Share = 1.0
    """share of the training examples to use, of every class, drawn by data.seed"""
    holdout: Rate = 0.0
    """share of the training examples to validate with instead; 0: a split of its own where there is one, else test"""
    padding: FewOrZero = 0
    """random crops from images with so many black pixels on each side"""
    flip: Switch = False
    """whether to mirror every other training image"""
    rand_augment: tuple[Few, FewOrZero] | None = None
    """RandAugment with so many operations of this magnitude (of 30), like [2, 9]; null: none"""
    min_area: Share = 0.08
    """least share of a decoded image that a random crop takes; 1: the whole"""
    frames: Few = 8
    """videos: frames of a clip"""
    frame_stride: Few = 4
    """videos: from one frame of a clip to the next"""
    test_clips: Few = 5
    """videos: clips of a video that a test averages"""
    fold: Literal[1, 2, 3] = 1
    """ucf101: which of the official lists of training and test videos"""
    max_unreadable: CountOrZero = 10
    """files that may be skipped, each with a warning, because they cannot be decoded"""
    verify: Switch = True
    """cifar: whether checksums must be right"""
    sha256: str | None = None
    """npz: digest that the arrays must have; null: any"""

    @model_validator(mode="after")
    def _fields_are_of_the_data_set(self) -> DataConfig:
        known = FIELDS[self.name] | {"name", "size", "seed"}
        for name in type(self).model_fields:
            if name not in known and getattr(self, name) != type(self).model_fields[name].default:
                owners = ", ".join(owner for owner, fields in FIELDS.items() if name in fields)
                raise InputError(f"data.{name} is not for {self.name}, only for {owners}: leave it out")
        if self.name in HAS_FACTS_IN_FILES and self.root is None:
            raise InputError(f"data.root is missing: say where the {self.name} are, like --data.root my-data")
        return self

    @property
    def path(self) -> Path:
        """Where the data set is."""
        return Path("data" if self.root is None else self.root)

    @property
    def is_well_known(self) -> bool:
        """Whether the data set is the same wherever it is kept: one that everybody knows, or with a digest."""
        return self.name not in HAS_FACTS_IN_FILES or self.sha256 is not None

    @property
    def is_known_by_heart(self) -> bool:
        """Whether its facts are known without its files."""
        return self.name not in HAS_FACTS_IN_FILES

    @property
    def test_views(self) -> int:
        """How many clips of an example a test looks at."""
        return self.test_clips if "test_clips" in FIELDS[self.name] else 1

    @property
    def side(self) -> int:
        """Side of the training images, px: the last axis, of arrays."""
        return self.size or self.default_size() or self.facts.image_size[-1]

    @cached_property
    def facts(self) -> DataFacts:
        """What a model has to know of it; read from the files where it is not known otherwise."""
        from liere.data.data_sets import find_facts

        return find_facts(self)

    def default_size(self) -> int | None:
        """Return the size that null means, where it is known without looking."""
        return None if self.name == "npz" else SIZES.get(self.name, OTHER_SIZE)

    def load(self, split: str, *, size: int | None = None, length: int | None = None) -> ExampleSet:
        """Return a split.

        Args:
            split: `"train"`, `"val"` or `"test"`.
            size: Side of the images; None for that of the training images.
            length: How many examples; None for all. Of `"train"`, the first; of others, evenly spread ones.

        Raises:
            FileNotFoundError: If the data set is not there.
            ValueError: If it is damaged, or a size cannot be had.
        """
        from liere.data.data_sets import load_split

        return load_split(self, split, size=size, length=length)
