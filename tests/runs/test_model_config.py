from __future__ import annotations

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
import yaml

from liere.runs.config_file import parse_config

BASE = {"dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}


def test_positions_and_attention_are_as_configured():
    amounts = {"shift": 1.75, "stretch": 1.2, "zoom": 1.3, "noise": 0.5}
    fields = {f"position_{name}": amount for name, amount in amounts.items()}
    fields |= {"cls_position": "center", "attention_scale": "log"}
    config = parse_config({"model": {"encoding": "liere8", **BASE, **fields}})
    model = config.model.build(image_size=48, num_classes=4)
    assert model.position_augmentation.active == amounts
    assert (model.cls_position, model.attention_scale) == ("center", "log")
    assert parse_config(yaml.safe_load(config.to_yaml())) == config


@pytest.mark.parametrize(
    ("encoding", "unfit"),
    [
        ("absolute", {"model.position_shift": "0.0", "model.cls_position": "none"}),
        ("sincos", {"model.cls_position": "none"}),
        ("liere8", {}),
    ],
)
def test_a_recipe_for_several_encodings_leaves_out_what_one_of_them_cannot_have(encoding, unfit):
    model = {"encoding": encoding, "position_shift": 1.75, "cls_position": "unseen"}
    config = parse_config({"model": model})
    assert config.model.unsupported_fields() == unfit
    fitting = parse_config({"model": model | {"dim": 16, "depth": 1, "heads": 2, "mlp_dim": 8}}, unfit)
    fitting.model.build(image_size=24, num_classes=4)


@pytest.mark.parametrize("name", ["dim", "num_classes"])
def test_an_argument_of_the_model_is_not_an_option_of_its_encoding(name):
    config = parse_config({"model": {**BASE, "options": {name: 3}}})
    with pytest.raises(ValueError, match=rf"model\.options\.{name} is not an option of an encoding: {name} belongs to"):
        config.model.build(image_size=48, num_classes=4)
