from __future__ import annotations

import re

import pytest
import torch

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.runs import cost
from liere.runs.config_file import parse_config
from liere.runs.cost import (
    Cost,
    duration,
    estimate_cost,
    estimate_operations,
    estimate_seconds,
    forward_operations,
    scaled,
)
from liere.runs.model import build_model, count_parameters

CONTENT = {
    "data": {"size": 60},
    "model": {"encoding": "liere8", "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32},
    "training": {"examples": 80, "batch_size": 8, "validate_every": 4, "validation_examples": 10},
    "hardware": {"accelerator": "cpu", "threads": 1},
}


def config(**training):
    return parse_config(CONTENT | {"training": CONTENT["training"] | training})


@pytest.fixture
def slow_machine(monkeypatch):
    """A machine with a million operations per second."""
    monkeypatch.setattr(cost, "_product_speed", lambda threads: 1e6)


def test_a_cost_is_that_of_the_model_and_the_whole_run(slow_machine):
    model = build_model(config())
    found = estimate_cost(config(), model)
    assert found.parameters == count_parameters(model)
    assert found.encoding_parameters == sum(p.numel() for p in model.encoding.parameters()) > 0
    assert found.forward == forward_operations(config())
    assert found.operations == estimate_operations(config())
    assert found.seconds == estimate_seconds(found.operations)


def test_validations_count_and_training_counts_three_times():
    # 10 steps of 8 images, forward and backward, and 3 validations of 10: after steps 4, 8 and 10.
    assert estimate_operations(config()) == pytest.approx(2 * forward_operations(config()) * (3 * 80 + 3 * 10))
    assert estimate_operations(config(validate_every=10)) < estimate_operations(config())


def test_time_follows_from_the_speed_of_the_machine(slow_machine):
    assert estimate_seconds(1e6) == pytest.approx(1.1 / 0.5)


def test_time_is_unknown_on_several_devices():
    several = parse_config(CONTENT | {"hardware": {"accelerator": "cpu", "devices": 2}})
    assert estimate_cost(several, build_model(config())).seconds is None


def test_the_speed_is_measured_with_the_threads_asked_for_and_leaves_them_alone():
    before = torch.get_num_threads()
    assert 1e6 < cost._product_speed(1, 64) < 1e15
    assert torch.get_num_threads() == before


def test_it_is_reported_in_a_line():
    known = str(Cost(1_234, 56, 2.5e6, 3.4e12, 7_200.0))
    assert known == (
        "1,234 parameters (56 in the encoding); 2.5 M multiply-adds per image, 3.4 T operations in total: "
        "about 2.0 hours on this machine"
    )
    assert re.fullmatch(r".* 3\.4 T operations in total", str(Cost(1_234, 56, 2.5e6, 3.4e12, None)))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (119, "119 s"), (120, "2.0 minutes"), (660, "11 minutes"), (7_199, "120 minutes"), (9e5, "10 days")],
)
def test_durations_are_in_the_unit_that_suits(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(999_999, "999,999"), (1e6, "1.0 M"), (2.54e9, "2.5 G"), (1e15, "1.0 P"), (3e18, "3.0 E")]
)
def test_large_numbers_have_letters(number, text):
    assert scaled(number) == text
