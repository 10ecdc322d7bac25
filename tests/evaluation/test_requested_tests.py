"""The requested test conditions of a run."""

from __future__ import annotations

import dataclasses

import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.evaluation.requested_tests import make_conditions, on_devices
from liere.runs.conditions import Condition
from tests.training.tiny import make_run


def test_all_combinations_are_tested_and_what_is_shuffled_is_tested_as_it_is_too():
    assert make_conditions([36]) == [Condition(36)]
    found = make_conditions([36, 48], policies=["extend", "rescale"], shuffle=["patches"])
    assert [one.name for one in found] == [
        f"{size}-{policy}{shuffled}"
        for size in (36, 48)
        for policy in ("extend", "rescale")
        for shuffled in ("", "-shuffled-patches")
    ]
    assert {one.attention_scale for one in make_conditions([36], attention_scales=["", "log"])} == {"", "log"}
    assert [one.placement for one in make_conditions([36], placements=["", "0,8"])] == ["", "0,8"]


def test_what_nobody_knows_is_reported():
    with pytest.raises(ValueError, match=r"unknown policy 'rescal': did you mean 'rescale'\?"):
        make_conditions([36], policies=["rescal"])


def test_devices_are_those_asked_for_and_the_run_stays_what_it_is(tmp_path):
    run = make_run(tmp_path / "run")
    other = on_devices(run, 2, None)
    assert (other.config.hardware.devices, other.config.hardware.accelerator) == (2, "cpu")
    assert on_devices(run, 1, "auto").config.hardware.accelerator == "auto"
    assert run.config.hardware.devices == 1
    assert other.config.fingerprint == run.config.fingerprint


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("devices", "accelerator", "message"),
    [
        (0, None, "devices must be at least 1, got 0"),
        (1.5, None, "devices must be an int, got 1.5"),
        (1, "tpu", "unknown accelerator 'tpu': choose from auto, cpu, gpu"),
    ],
)
def test_devices_that_cannot_be_are_reported(tmp_path, devices, accelerator, message):
    with pytest.raises((TypeError, ValueError), match=message):
        on_devices(make_run(tmp_path / "run"), devices, accelerator)


def test_a_run_of_a_large_machine_uses_the_cores_of_this_one(tmp_path, monkeypatch):
    monkeypatch.setattr("liere.evaluation.requested_tests.available_cores", lambda: 2)
    run = make_run(tmp_path / "run")
    for threads, used in ((512, 2), (1, 1), (None, None)):
        hardware = run.config.hardware.model_copy(update={"threads": threads})
        trained = dataclasses.replace(run, config=run.config.model_copy(update={"hardware": hardware}))
        assert on_devices(trained, 1, None).config.hardware.threads == used


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(ValueError, match="accelerator"):
        on_devices(make_run(tmp_path / "run"), 1, "gpu")
