"""What a run will cost, before it begins."""

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

PASSES = 3  # a backward pass is two forward passes
OF_PEAK = 0.5  # of the speed of a large matrix product: a guess, since it depends on the model
OVERHEAD = 1.1  # validation, loading, logs


@dataclass(frozen=True)
class Cost:
    """An estimate.

    Attributes:
        parameters: Of the model.
        encoding_parameters: Of its position encoding.
        forward: Multiply-adds of an image's forward pass, with rotations and their exponential.
        operations: Floating-point operations of the whole run.
        seconds: Time on this machine, roughly; None where that is not known (several or other devices).
    """

    parameters: int
    encoding_parameters: int
    forward: float
    operations: float
    seconds: float | None

    def __str__(self) -> str:
        """Say it in a line."""
        size = f"{self.parameters:,} parameters ({self.encoding_parameters:,} of the encoding)"
        work = f"{scaled(self.forward)} multiply-adds an image, {scaled(self.operations)} operations in all"
        if self.seconds is None:
            return f"{size}; {work}"
        return f"{size}; {work}: about {duration(self.seconds)} on this machine"


def estimate_cost(config: RunConfig, model: VisionTransformer) -> Cost:
    """Estimate the cost of a run from the formulas of `liere flops` and the speed of a matrix product here."""
    operations = estimate_operations(config)
    here = config.hardware.devices * config.hardware.nodes == 1 and (
        config.hardware.accelerator == "cpu" or not torch.cuda.is_available()
    )
    seconds = estimate_seconds(operations, config.hardware.threads) if here else None
    return Cost(
        count_parameters(model), count_parameters(model.encoding), forward_operations(config), operations, seconds
    )


def forward_operations(config: RunConfig) -> float:
    """Return the multiply-adds of an image's forward pass, with rotations and their exponential."""
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
        batch_size=config.training.part_size // (config.hardware.devices * config.hardware.nodes),
        **config.model.options,
    ).true


def estimate_operations(config: RunConfig) -> float:
    """Return the floating-point operations of training a run, validations included."""
    training = config.training
    validations = -(-training.steps // training.validate_every)
    views = validations * training.validation_examples * config.data.test_views
    images = PASSES * training.steps * training.batch_size + views
    return 2 * forward_operations(config) * images


def estimate_seconds(operations: float, threads: int | None = None) -> float:
    """Return how long so many operations take on the cores of this machine, roughly."""
    return OVERHEAD * operations / (OF_PEAK * _product_speed(threads))


@lru_cache
def _product_speed(threads: int | None, n: int = 768) -> float:
    """Measure the operations a second of a large matrix product."""
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
    """Return a large number with its letter, like 3.4 T."""
    for power, letter in ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {letter}"
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{max(round(seconds), 1)} s"
