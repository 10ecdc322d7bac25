"""The configuration of a run: data, model, optimizer, training and hardware, validated before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from liere.config_fields import Section
from liere.data.registry import DataConfig, data_fields
from liere.data.spatial import SpatialData
from liere.errors import InputError
from liere.layers import grid_shape
from liere.presets import image_and_patch
from liere.runs.hardware_config import HardwareConfig
from liere.runs.logger_config import LoggerConfig
from liere.runs.model_config import ModelConfig
from liere.runs.optimizer_config import OptimizerConfig
from liere.runs.training_config import TrainingConfig

# `liere.config_fields` reports if these are not installed.
import yaml  # isort: skip
from pydantic import model_validator  # isort: skip
from pydantic.fields import FieldInfo  # isort: skip

__all__ = ["RunConfig", "config_fields"]


class RunConfig(Section):
    """The configuration of a run."""

    title: str = ""
    """title of the run in reports"""
    data: DataConfig = SpatialData()
    model: ModelConfig = ModelConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    training: TrainingConfig = TrainingConfig()
    hardware: HardwareConfig = HardwareConfig()
    logger: LoggerConfig = LoggerConfig()

    @model_validator(mode="after")
    def _fits_devices(self) -> RunConfig:
        world = self.hardware.world_size
        if self.training.part_size % world:
            raise InputError(
                f"training.batch_size {self.training.batch_size} in {self.training.accumulate} parts cannot be divided "
                f"evenly among {world} devices: choose numbers that divide it"
            )
        return self

    def check_size(self, size: int) -> None:
        """Raise `ValueError` if this image size is not available, or not divisible into the model's patches."""
        facts = self.data.load("test", size=size, length=1).facts
        grid_shape(*image_and_patch(facts.image_size, self.model.patch_size))

    @property
    def fingerprint(self) -> str:
        """Digest of all fields that affect the weights: all but hardware, logger and frequency of saving.

        Fields with default values are left out, so that existing runs keep their fingerprint when a field is added. The
        location of a known data set does not matter, nor whether its default size is written out.
        """
        decisive = self.model_dump(
            mode="json",
            exclude={
                "hardware": True,
                "logger": True,
                "title": True,
                "data": True,
                "training": {"checkpoint_every", "log_every"},
            },
            exclude_defaults=True,
        )
        if data := self.data.decisive_fields():
            decisive["data"] = data
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def to_yaml(self) -> str:
        """Return the whole configuration as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


def config_fields() -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted name and the definition of every field; `data` has the fields of all data sets."""
    for section, part in RunConfig.model_fields.items():
        if isinstance(part.default, Section):
            fields = data_fields() if section == "data" else type(part.default).model_fields.items()
            for name, field in fields:
                yield f"{section}.{name}", field
        else:
            yield section, part
