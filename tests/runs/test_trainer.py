"""The trainer of a run: which strategy it has, and who it thinks started its processes."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

import yaml
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, SingleDeviceStrategy
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from liere.runs.config_file import parse_config
from liere.runs.hardware_config import HardwareConfig
from liere.runs.trainer import make_environment, make_trainer
from tests.training.tiny import CONFIG, quiet

pytestmark = quiet


@pytest.mark.parametrize(
    ("hardware", "strategy"),
    [
        ({"strategy": "auto"}, SingleDeviceStrategy),
        ({"strategy": "ddp"}, SingleDeviceStrategy),
        ({"strategy": "fsdp"}, SingleDeviceStrategy),  # for example a run resumed with one device
        ({"devices": 2}, DDPStrategy),
        ({"devices": 2, "strategy": "ddp"}, DDPStrategy),
        ({"devices": 2, "strategy": "fsdp"}, ModelParallelStrategy),
    ],
)
def test_strategies(hardware, strategy, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    content = yaml.safe_load(CONFIG)
    content["hardware"] |= hardware
    trainer = make_trainer(parse_config(content))
    assert type(trainer.strategy) is strategy
    assert trainer.world_size == hardware.get("devices", 1)


def test_a_task_of_slurm_with_one_device_is_the_first_process_of_its_run(monkeypatch):
    for name, value in {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 1)  # as Lightning has read it
    trainer = make_trainer(parse_config(yaml.safe_load(CONFIG)))
    assert trainer.is_global_zero
    assert rank_zero_only.rank == 0


def test_environments(monkeypatch):
    two = HardwareConfig(accelerator="cpu", devices=2)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert type(make_environment(two)).__name__ == "LightningEnvironment"
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "")  # so that what is set is removed in the end
    monkeypatch.delenv("SLURM_NTASKS_PER_NODE")
    for name, value in {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}.items():
        monkeypatch.setenv(name, value)
    environment = make_environment(two)
    assert type(environment).__name__ == "SLURMEnvironment"
    assert (environment.global_rank(), environment.world_size()) == (1, 2)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert type(make_environment(two)).__name__ == "TorchElasticEnvironment"
