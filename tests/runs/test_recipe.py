from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

from liere.runs.config_file import parse_config
from liere.runs.recipe import encoding_fields, field_texts, read_recipe

VALUES = {
    "training.seed": 7,
    "optimizer.learning_rate": 1e-10,
    "optimizer.betas": (0.5, 0.9),
    "optimizer.clip": None,
    "training.deterministic": True,
    "model.options": {"init_scale": 3.14, "a": [1, 2]},
    "title": "a title",
    "data.train_examples": torch.tensor(5),
}


def test_values_of_python_arrive_as_they_are():
    config = parse_config({}, field_texts(VALUES))
    assert (config.training.seed, config.optimizer.learning_rate, config.optimizer.betas) == (7, 1e-10, (0.5, 0.9))
    assert (config.optimizer.clip, config.training.deterministic, config.title) == (None, True, "a title")
    assert config.model.options == {"init_scale": 3.14, "a": [1, 2]}
    assert config.data.train_examples == 5


def test_text_is_read_as_on_the_command_line():
    assert parse_config({}, field_texts({"model.patch_size": "[2, 4]"})).model.patch_size == (2, 4)


def test_a_recipe_is_a_file_or_its_content(tmp_path):
    (tmp_path / "mine.yaml").write_text("model: {dim: 64}")
    for place in (tmp_path / "mine.yaml", str(tmp_path / "mine.yaml")):
        assert read_recipe(place) == ({"model": {"dim": 64}}, str(tmp_path / "mine.yaml"), "mine")
    content = {"model": {"dim": 64}}
    assert read_recipe(content) == (content, "", "run")


def test_data_take_the_place_of_those_of_the_recipe():
    content = {"data": {"name": "cifar10"}, "model": {"dim": 64}}
    section = parse_config({"data": {"size": 48}}).data
    found = read_recipe(content, section)
    assert parse_config(found.content).data is section
    assert content["data"] == {"name": "cifar10"}
    with pytest.raises(
        ValueError, match=r"--data\.size cannot be given beside data as an object: set size in that obj"
    ):
        parse_config(found.content, {"data.size": "60"})


def test_an_encoding_sets_its_options_too():
    fields = encoding_fields("my.mod:Mine:amount=2")
    assert parse_config({}, fields).model.model_dump(include={"encoding", "options"}) == {
        "encoding": "my.mod:Mine",
        "options": {"amount": 2},
    }
    assert encoding_fields(None) == {}


def test_paths_are_text():
    assert field_texts({"data.root": Path("some/where")}) == {"data.root": "some/where"}
