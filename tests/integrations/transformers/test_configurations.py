"""Configurations of conversions: one class per original, which pickle and AutoConfig find."""

from __future__ import annotations

import pickle

import transformers

from liere import LieRE
from liere.integrations.transformers.configurations import config_class, write_recipe
from liere.integrations.transformers.recipe import Recipe, encoding_options

RECIPE = Recipe(encoding_options(LieRE(2, 16, num_heads=3, depth=2)))


def test_there_is_one_class_per_original_under_a_type_of_its_own():
    cls = config_class(transformers.ViTConfig)
    assert config_class(transformers.ViTConfig) is cls
    assert (cls.__name__, cls.model_type) == ("LiereViTConfig", "liere_vit")
    assert issubclass(cls, transformers.ViTConfig)
    assert type(transformers.AutoConfig.for_model("liere_vit")) is cls
    assert type(pickle.loads(pickle.dumps(cls()))) is cls


def test_a_recipe_is_written_into_the_configuration_which_keeps_everything_else(tmp_path):
    cls = config_class(transformers.ViTConfig)
    config = transformers.ViTConfig(hidden_size=48, num_hidden_layers=2)
    write_recipe(config, RECIPE)
    write_recipe(config, RECIPE)  # of a conversion that is widened
    assert type(config) is cls
    config.save_pretrained(tmp_path)
    loaded = transformers.AutoConfig.from_pretrained(tmp_path)
    assert (type(loaded), loaded.hidden_size) == (cls, 48)
    assert Recipe.from_config(loaded) == RECIPE
