"""Estimates of the cost of a run before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch

from liere.flops import count_flops
from liere.presets import ViTSize, image_and_patch, resolve_size
from liere.runs.config import RunConfig
from liere.runs.model import count_parameters
from liere.vit import VisionTransformer

__all__ = [
    "Cost",
    "duration",
    "estimate_cost",
    "estimate_operations",
    "estimate_seconds",
    "forward_operations",
    "scaled",
]

PASSES = 3  # a backward pass costs as much as two forward passes
OF_PEAK = 0.5  # of the speed of a large matrix product; a guess, since it depends on the model
OVERHEAD = 1.1  # validation, loading, logs


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a run.

    Attributes:
        parameters: Parameters of the model.
        encoding_parameters: Parameters of its position encoding.
        forward: Multiply-adds of the forward pass of one image, including rotations and their exponential.
        operations: Floating-point operations of the whole run.
        seconds: Approximate time on this machine; None if unknown (several or other devices).
    """

    parameters: int
    encoding_parameters: int
    forward: float
    operations: float
    seconds: float | None

    def __str__(self) -> str:
        """Return the estimate as one line."""
        size = f"{self.parameters:,} parameters ({self.encoding_parameters:,} in the encoding)"
        work = f"{scaled(self.forward)} multiply-adds per image, {scaled(self.operations)} operations in total"
        if self.seconds is None:
            return f"{size}; {work}"
        return f"{size}; {work}: about {duration(self.seconds)} on this machine"


def estimate_cost(config: RunConfig, model: VisionTransformer) -> Cost:
    """Return the cost of a run, estimated from the formulas of `liere flops` and the speed of matrix products here."""
    operations = estimate_operations(config)
    here = config.hardware.world_size == 1 and (config.hardware.accelerator == "cpu" or not torch.cuda.is_available())
    seconds = estimate_seconds(operations, config.hardware.threads) if here else None
    return Cost(
        count_parameters(model), count_parameters(model.encoding), forward_operations(config), operations, seconds
    )


def forward_operations(config: RunConfig) -> float:
    """Return the multiply-adds of the forward pass of one image, including rotations and their exponential."""
    facts = config.data.facts
    image, patch = image_and_patch(facts.image_size, config.model.patch_size)
    size = resolve_size(config.model.size, config.model.model_dump(include=set(ViTSize._fields)))
    return count_flops(
        size,
        config.model.encoding,
        image_size=image,
        patch_size=patch,
        num_classes=len(facts.classes),
        in_channels=facts.channels,
        num_prefix_tokens=config.model.num_registers + (config.model.pool == "cls"),
        batch_size=config.training.part_size // config.hardware.world_size,
        **config.model.options,
    ).true


def estimate_operations(config: RunConfig) -> float:
    """Return the floating-point operations of training a run, including validation."""
    training = config.training
    validations = -(-training.steps // training.validate_every)
    views = validations * training.validation_examples * config.data.test_views
    images = PASSES * training.steps * training.batch_size + views
    return 2 * forward_operations(config) * images


def estimate_seconds(operations: float, threads: int | None = None) -> float:
    """Return the approximate time for a number of operations on the cores of this machine."""
    return OVERHEAD * operations / (OF_PEAK * _product_speed(threads))


@lru_cache
def _product_speed(threads: int | None, n: int = 768) -> float:
    """Return the measured operations per second of a large matrix product."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        a = torch.ones(n, n)
        best = min(_seconds(lambda: a @ a) for _ in range(20))
    finally:
        torch.set_num_threads(before)
    return 2 * n**3 / best


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def scaled(number: float) -> str:
    """Return a large number with its unit prefix, for example 3.4 T."""
    for power, letter in ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {letter}"
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Return a time in a suitable unit."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{max(round(seconds), 1)} s"
