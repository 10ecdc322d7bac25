from __future__ import annotations

from typing import Literal

import pytest
import torch

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from pydantic import TypeAdapter, ValidationError

from liere.config_fields import Few
from liere.data import ArrayData, DataFacts
from liere.data.registry import SECTIONS, data_fields, find_section, union_of
from liere.data.section import DataSection
from liere.runs.config import config_fields
from liere.runs.config_file import parse_config
from tests.data.sections import open_data

NAMES = ["spatial", "cifar10", "cifar100", "imagenet", "ucf101", "images", "videos", "npz", "python"]
# Fields with their default values, which every old configuration listed for any data set.
OLD_FIELDS = {
    "root": None,
    "size": None,
    "seed": 0,
    "train_examples": 800_000,
    "distance": 1,
    "distractor_arrows": 7,
    "distractor_letters": 5,
    "colours": "black",
    "fraction": 1.0,
    "holdout": 0.0,
    "padding": 0,
    "flip": False,
    "rand_augment": None,
    "min_area": 0.08,
    "frames": 8,
    "frame_stride": 4,
    "test_clips": 5,
    "fold": 1,
    "max_unreadable": 10,
    "verify": True,
    "sha256": None,
}


class StripesData(DataSection):
    """A data set as a contributor would add it: one class with its field, its facts and its loader."""

    name: Literal["stripes"] = "stripes"
    width: Few = 2
    """width of a stripe in pixels"""

    def find_facts(self) -> DataFacts:
        return DataFacts(("rows", "columns"), 1, (self.size or 8,) * 2, (0.5,), (0.5,))

    def load_split(self, split: str, size: int | None, length: int | None) -> ArrayData:
        side = size or 8
        rows = (torch.arange(side) // self.width % 2).float()[:, None].expand(side, side)
        images = torch.stack([rows, rows.T])[:, None]
        return ArrayData(images[:length], torch.arange(2)[:length], self.find_facts())


class TestNewDataSet:
    union = TypeAdapter(union_of([*SECTIONS, StripesData]))

    def test_it_is_found_by_its_name(self):
        section = self.union.validate_python({"name": "stripes", "width": 4})
        assert isinstance(section, StripesData)
        images, labels = section.load("test").batch([0, 1])
        assert images.shape == (2, 1, 8, 8)
        assert section.facts.classes[labels[1]] == "columns"
        assert (section.side, section.test_views, section.is_well_known) == (8, 1, True)
        assert section.decisive_fields() == {"name": "stripes", "width": 4}

    def test_others_are_what_they_were(self):
        assert self.union.validate_python({"name": "cifar10"}) == open_data("cifar10")

    def test_its_fields_are_its_own(self):
        with pytest.raises(ValidationError, match=r"data\.width does not apply to spatial, only to stripes: remove it"):
            self.union.validate_python({"width": 3})
        with pytest.raises(ValidationError, match=r"data\.fold does not apply to stripes, only to ucf101"):
            self.union.validate_python({"name": "stripes", "fold": 2})

    def test_its_fields_are_described(self):
        fields = dict(data_fields([*SECTIONS, StripesData]))
        assert fields["width"].description == "stripes: width of a stripe in pixels"
        assert "stripes" in fields["name"].description


@pytest.mark.parametrize("name", NAMES[:-1])
def test_old_configurations_which_list_the_fields_of_all_data_sets_are_opened(name):
    root = {"root": "somewhere"} if name in ("images", "videos", "npz") else {}
    assert open_data(name, **OLD_FIELDS | root) == open_data(name, **root)


def test_the_old_name_of_a_field_is_understood():
    assert open_data(colours="random") == open_data(colors="random")
    assert open_data(colours="black", colors="random").colors == "random"
    assert open_data("cifar10", colours="black") == open_data("cifar10")
    with pytest.raises(ValueError, match=r"data\.colors does not apply to cifar10, only to spatial: remove it"):
        open_data("cifar10", colours="random")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "spatial", "padding": 4}, "data.padding does not apply to spatial, only to cifar10, cifar100, npz,"),
        ({"name": "npz", "root": "a", "verify": False}, "data.verify does not apply to npz, only to cifar10, cifar100"),
        ({"name": "videos"}, "data.root is missing: set it to the path of your videos data, for example --data.root"),
        ({"name": "cifar11"}, "data.name must be 'spatial', 'cifar10', .* or 'python', got 'cifar11' of type str"),
        ({"name": "cifar10", "pading": 4}, "unknown field data.pading: did you mean 'padding'?"),
        ({"name": "ucf101", "fold": 4}, "data.fold must be 1, 2 or 3, got 4"),
        ({"name": "python"}, "data.name python .* cannot be written by hand: use liere.toolkit.train"),
    ],
)
def test_what_is_wrong_is_reported_in_a_line(fields, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")) as raised:
        parse_config({"data": fields})
    assert "\n" not in str(raised.value)


def test_sections_are_found_by_name():
    assert [find_section(name).model_fields["name"].default for name in NAMES] == NAMES
    assert find_section("nothing") is None


def test_every_field_of_every_data_set_is_an_option_once():
    listed = [name for name, _ in config_fields() if name.startswith("data.")]
    assert len(listed) == len(set(listed))
    own = {f"data.{field}" for section in SECTIONS if section.is_on_command_line for field in section.model_fields}
    assert set(listed) == own
    fields = dict(data_fields())
    assert fields["fold"].description.startswith("ucf101: ")
    assert fields["root"].description.startswith("folder")


def test_an_unknown_split_is_reported():
    with pytest.raises(ValueError, match=r"unknown split 'tran': did you mean 'train'\?"):
        open_data().load("tran")
