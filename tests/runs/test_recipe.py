from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.data import TensorDataset

pytest.importorskip("tests.training.requirements")
import numpy as np

import liere
from liere.data import from_datasets
from liere.runs.config_file import parse_config
from liere.runs.recipe import Recipe, data_section, encoding_fields, field_texts, read_recipe


def stripes(count: int, seed: int = 0) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.rand(count, 1, 8, 8, generator=generator), torch.arange(count) % 2)


class TestDataSection:
    def test_a_dict_is_a_section(self):
        given = {"name": "images", "root": "x"}
        assert data_section(given) == given
        assert data_section(given) is not given

    def test_the_section_of_a_configuration_is_one(self):
        config = parse_config({"data": {"name": "cifar10", "flip": True, "rand_augment": [2, 9]}})
        found = data_section(config.data)
        assert (found["name"], found["flip"], found["rand_augment"]) == ("cifar10", True, [2, 9])
        assert parse_config({"data": found}) == config

    def test_given_data_are_one(self):
        data = from_datasets(stripes(20), description="stripes")
        assert data_section(data) == data.as_config()

    def test_a_torch_data_set_is_divided(self):
        found = data_section(stripes(20))
        assert (found["name"], found["examples"], found["image_shape"]) == ("python", {"all": 20}, [1, 8, 8])

    @pytest.mark.parametrize(
        ("counts", "examples"),
        [((20, 10), {"train": 20, "test": 10}), ((20, 10, 6), {"train": 20, "val": 6, "test": 10})],
    )
    def test_two_or_three_are_to_train_to_test_and_to_validate(self, counts, examples):
        found = data_section(tuple(stripes(count, seed) for seed, count in enumerate(counts)))
        assert found["examples"] == examples
        assert len(parse_config({"data": found}).data.load("test")) == 10

    def test_a_list_of_examples_is_one_data_set(self):
        assert data_section([(torch.zeros(1, 4, 4), label) for label in (0, 1, 0, 1)])["examples"] == {"all": 4}

    @pytest.mark.parametrize("wrong", ["folder", Path("folder"), (), tuple(range(4))], ids=repr)
    def test_paths_and_wrong_numbers_are_reported(self, wrong):
        with pytest.raises(TypeError, match=r"data must be a section, .* up to three of them .*got .*\"root\": \.\.\."):
            data_section(wrong)

    @pytest.mark.parametrize("wrong", [3, (stripes(4), 3), object()], ids=["number", "pair", "object"])
    def test_what_is_no_data_set_is_reported(self, wrong):
        with pytest.raises(TypeError, match=r"(train|test) must be a data set with __len__ and __getitem__"):
            data_section(wrong)


class TestRecipe:
    def test_a_file_has_a_name_and_a_dict_has_none(self, tmp_path):
        file = tmp_path / "small.yaml"
        file.write_text("model: {dim: 64}\n")
        expected = Recipe({"model": {"dim": 64}}, str(file), "small")
        assert read_recipe(file) == read_recipe(str(file)) == expected
        assert read_recipe({"model": {"dim": 64}}) == Recipe({"model": {"dim": 64}}, "", "run")

    def test_data_take_the_place_of_its_section(self):
        given = {"data": {"name": "cifar10"}, "model": {"dim": 64}}
        found = read_recipe(given, {"name": "images", "root": "x"})
        assert found.content == {"data": {"name": "images", "root": "x"}, "model": {"dim": 64}}
        assert given["data"] == {"name": "cifar10"}
        assert read_recipe(given).content == given

    @pytest.mark.parametrize("wrong", [3, None, ["a.yaml"]])
    def test_something_else_is_reported(self, wrong, no_shape_checks):
        with pytest.raises(TypeError, match="recipe must be a YAML file or a dict, got"):
            read_recipe(wrong)


class TestFields:
    def test_values_are_written_as_yaml_and_text_is_taken_as_it_is(self):
        values = {"a": 1, "b": None, "c": True, "d": [1, 2.5], "e": {"f": "g"}, "h": "1e-3", "i": Path("x/y")}
        texts = ["1", "null", "true", "[1, 2.5]", "{f: g}", "1e-3", "x/y"]
        assert list(field_texts(values).values()) == texts
        assert field_texts(None) == field_texts({}) == {}

    def test_numbers_of_numpy_and_torch_are_numbers(self):
        assert field_texts({"a": np.int64(3), "b": torch.tensor(0.5)}) == {"a": "3", "b": "0.5"}

    def test_long_lists_stay_in_one_line(self):
        assert "\n" not in field_texts({"a": list(range(500))})["a"]

    def test_objects_are_reported(self):
        with pytest.raises(TypeError, match=r"model\.options must be a YAML value, got object"):
            field_texts({"model.options": object()})

    def test_an_encoding_sets_its_name_and_its_options(self):
        assert encoding_fields(None) == {}
        assert encoding_fields(liere.LieRE) == {"model.encoding": "liere"}
        assert encoding_fields("liere8:share_heads=true") == {
            "model.encoding": "liere8",
            "model.options": "{share_heads: true}",
        }
