"""The training section of a configuration."""

from __future__ import annotations

from liere.config_fields import Count, Section, Seed, Share, Switch
from liere.errors import InputError

from pydantic import model_validator  # isort: skip  (`liere.config_fields` reports it if it is missing)

__all__ = ["TrainingConfig"]


class TrainingConfig(Section):
    """Length, batches, validation and checkpoints of training."""

    examples: Count = 800_000
    """number of examples to train on, counting repeats"""
    batch_size: Count = 128
    """examples per step, over all devices and parts"""
    accumulate: Count = 1
    """parts per batch whose gradients are accumulated, to save memory"""
    validate_every: Count = 100
    """steps between validations"""
    validation_examples: Count = 10_000
    """number of validation examples"""
    checkpoint_every: Count = 100
    """steps between checkpoints; each validation also writes one"""
    log_every: Count = 10
    """steps between log entries"""
    stop_at_accuracy: Share | None = None
    """stop once validation accuracy reaches this value; null: never"""
    start_from: str | None = None
    """folder of a finished run whose final weights to start from; null: new weights"""
    seed: Seed = 0
    """seed of the initialization, dropout, augmentation and order of examples"""
    deterministic: Switch = False
    """whether to allow only deterministic algorithms"""

    @property
    def steps(self) -> int:
        """Number of steps, rounded up to whole batches."""
        return -(-self.examples // self.batch_size)

    @property
    def part_size(self) -> int:
        """Examples per part of a batch, over all devices."""
        return self.batch_size // self.accumulate

    @model_validator(mode="after")
    def _parts_are_equal(self) -> TrainingConfig:
        if self.batch_size % self.accumulate:
            raise InputError(
                f"training.batch_size {self.batch_size} cannot be divided into training.accumulate {self.accumulate} "
                "equal parts: choose a divisor"
            )
        return self
