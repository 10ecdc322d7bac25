"""The hardware section, and its check against this machine."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

import torch

from liere.runs import hardware_config
from liere.runs.hardware_config import HardwareConfig


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that there are this many GPUs."""

    def pretend(number: int) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)

    return pretend


def test_a_gpu_that_is_not_there_is_reported(gpus):
    gpus(0)
    HardwareConfig(accelerator="auto", devices=4).check()  # processes on the CPU
    with pytest.raises(ValueError, match=r"hardware.accelerator is gpu, but torch finds no GPU: use cpu or auto"):
        HardwareConfig(accelerator="gpu").check()


def test_more_gpus_than_there_are_are_reported(gpus):
    gpus(2)
    HardwareConfig(accelerator="gpu", devices=2).check()
    HardwareConfig(accelerator="cpu", devices=8).check()
    with pytest.raises(ValueError, match=r"hardware.devices is 3, but torch finds 2: use at most that many"):
        HardwareConfig(accelerator="auto", devices=3).check()


@pytest.mark.parametrize(("name", "most"), [("workers", 64), ("devices", 8), ("threads", 128)])
def test_far_too_many_processes_or_threads_are_refused(gpus, monkeypatch, name, most):
    gpus(0)
    monkeypatch.setattr(hardware_config, "available_cores", lambda: 2)
    HardwareConfig(**{name: most}).check()
    with pytest.raises(ValueError, match=rf"hardware.{name} is {most + 1}, too many for 2 cores: use at most {most}$"):
        HardwareConfig(**{name: most + 1}).check()


@pytest.mark.parametrize("precision", [32, "32"])
def test_precision_may_be_written_as_a_number(precision):
    assert HardwareConfig(precision=precision).precision == "32"
