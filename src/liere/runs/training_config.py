"""The training of a run, as its configuration has it."""

from __future__ import annotations

from liere.config_fields import Count, Section, Seed, Share, Switch
from liere.errors import InputError

from pydantic import model_validator  # isort: skip  (`liere.config_fields` has told what to install)

__all__ = ["TrainingConfig"]


class TrainingConfig(Section):
    """How long, in what portions, and what happens in between."""

    examples: Count = 800_000
    """examples to train on, repeats counted"""
    batch_size: Count = 128
    """examples a step, over all devices and parts"""
    accumulate: Count = 1
    """parts that a step's batch is cut into, to save memory"""
    validate_every: Count = 100
    """steps from one validation to the next"""
    validation_examples: Count = 10_000
    """examples of a validation"""
    checkpoint_every: Count = 100
    """steps from one checkpoint to the next; there is one at each validation, too"""
    log_every: Count = 10
    """steps from one line of the log to the next"""
    stop_at_accuracy: Share | None = None
    """stop once validation accuracy is as good; null: never"""
    start_from: str | None = None
    """folder of a finished run whose final weights to begin with; null: new weights"""
    seed: Seed = 0
    """seed of weights, dropout, augmentation and the order of examples"""
    deterministic: Switch = False
    """allow deterministic algorithms only"""

    @property
    def steps(self) -> int:
        """Number of steps: the last batch is whole."""
        return -(-self.examples // self.batch_size)

    @property
    def part_size(self) -> int:
        """Examples of a part of a step, over all devices."""
        return self.batch_size // self.accumulate

    @model_validator(mode="after")
    def _parts_are_equal(self) -> TrainingConfig:
        if self.batch_size % self.accumulate:
            raise InputError(
                f"training.batch_size {self.batch_size} cannot be cut into training.accumulate {self.accumulate} "
                "equal parts: choose numbers that divide"
            )
        return self
