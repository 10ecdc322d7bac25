"""Conversions are saved and loaded by transformers itself, without remote code."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
import transformers

from liere import LieRE
from liere.integrations.transformers import convert, registration
from liere.integrations.transformers.models import rotated_class
from liere.integrations.transformers.recipe import Recipe, encoding_options
from tests.integrations.transformers.families import (
    FAMILIES,
    STARTS,
    assert_same,
    converted,
    inputs,
    make,
    run,
    with_random_generators,
)

ViT, Classifier = FAMILIES[:2]


def load(family, folder, **options):
    loader = rotated_class(family.model) if family.auto is None else getattr(transformers, family.auto)
    return loader.from_pretrained(folder, **options)


@pytest.mark.parametrize(("family", "start"), STARTS, ids=lambda value: getattr(value, "id", value))
def test_round_trip(family, start, tmp_path):
    rotated = with_random_generators(converted(family, start)[1])
    rotated.save_pretrained(tmp_path)
    loaded, report = load(family, tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    assert type(loaded) is type(rotated)
    assert not loaded.training
    given = inputs(family)
    with torch.no_grad():
        assert torch.equal(run(loaded, given), run(rotated, given))
    state, again = rotated.state_dict(), loaded.state_dict()
    assert list(state) == list(again)
    assert all(torch.equal(state[name], again[name]) for name in state)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.absolute], ids=lambda family: family.id)
def test_round_trip_without_absolute_embedding(family, tmp_path):
    rotated = with_random_generators(converted(family, keep_absolute=False)[1])
    rotated.save_pretrained(tmp_path)
    loaded = load(family, tmp_path)
    with torch.no_grad():
        assert torch.equal(run(loaded, inputs(family)), run(rotated, inputs(family)))


def test_originals_loaded_from_older_checkpoints_are_saved_under_their_new_names(tmp_path):
    make(Classifier).save_pretrained(tmp_path / "original")
    rotated = convert(load(Classifier, tmp_path / "original"))
    rotated.save_pretrained(tmp_path / "converted")
    loaded = load(Classifier, tmp_path / "converted")
    with torch.no_grad():
        assert torch.equal(run(loaded, inputs(Classifier)), run(rotated, inputs(Classifier)))


def test_the_tower_of_a_classifier_is_loaded(tmp_path):
    rotated = with_random_generators(convert(make(Classifier)))
    rotated.save_pretrained(tmp_path)
    tower = transformers.AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
    given = inputs(ViT)
    with torch.no_grad():
        assert_same(run(tower, given), rotated.vit(**given).last_hidden_state)


@pytest.mark.parametrize(("family", "start"), [STARTS[1], *[s for s in STARTS if s[1] == "rope"]], ids=str)
def test_missing_generators_start_as_in_a_new_conversion(family, start, tmp_path):
    from safetensors.torch import load_file, save_file

    rotated = converted(family, start)[1]
    rotated.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = {name: value for name, value in load_file(file).items() if "generators" not in name}
    save_file(weights, file, {"format": "pt"})
    loaded, report = load(family, tmp_path, output_loading_info=True)
    assert len(report["missing_keys"]) == 1
    assert_same(loaded.encoding.generators + 1, rotated.encoding.generators + 1, 1e-7)


def test_generators_stay_in_full_precision(tmp_path):
    convert(make(Classifier)).save_pretrained(tmp_path)
    loaded = load(Classifier, tmp_path, dtype=torch.bfloat16)
    assert loaded.encoding.generators.dtype == torch.float32
    assert loaded.classifier.weight.dtype == torch.bfloat16


def test_the_configuration_holds_the_recipe(tmp_path):
    own = LieRE(2, 16, num_heads=2, depth=2, block_size=4, share_layers=True)
    rotated = convert(make(ViT), own, keep_rope=False)
    rotated.save_pretrained(tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert type(config) is registration.CONFIGS[transformers.ViTConfig]
    assert config.liere["encoding"] == encoding_options(own)
    assert Recipe.from_config(config) == Recipe(encoding_options(own), "identity", True, False)
    assert pickle.loads(pickle.dumps(config)).liere == config.liere
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["model_type"] == "liere_vit"
    assert "auto_map" not in written


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    "change",
    [
        {"encoding": {"block_size": 8}},
        {"encoding": {"no": 1}},
        {"extra": 1},
        {"encoding": 3},
        {"keep_absolute": "no"},
        {"keep_rope": None},
    ],
    ids=["missing", "unknown", "extra", "type", "string", "null"],
)
def test_damaged_recipes_are_reported(change, tmp_path):
    convert(make(ViT)).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["liere"] |= change
    file.write_text(json.dumps(config))
    with pytest.raises(ValueError, match="entry 'liere' of the configuration is damaged"):
        load(ViT, tmp_path)
    del config["liere"]
    file.write_text(json.dumps(config))
    with pytest.raises(ValueError, match="describes no conversion: make the model with convert"):
        load(ViT, tmp_path)


def test_a_recipe_cannot_start_from_a_rope_that_is_not_there(tmp_path):
    convert(make(ViT)).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["liere"]["start"] = "rope"
    file.write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"start='rope' needs a model with RoPE, but .* has none: use start='ident"):
        load(ViT, tmp_path)


def test_encodings_of_others_are_not_saved():
    class Own(LieRE):
        pass

    with pytest.raises(ValueError, match="only LieRE encodings can be saved with a model, got Own"):
        convert(make(ViT), Own(2, 16, num_heads=2, depth=2))
