"""What does converting a timm model cost? A train step and inference of the original and of its conversions."""

from __future__ import annotations

from typing import Any

import torch

from liere.bench.models import inference, random_batch, train_step
from liere.bench.race import race
from liere.bench.record import Answer, Settings
from liere.errors import InputError, suggest
from liere.optional.extras import require
from liere.optional.torchvision_ops import import_with_torchvision

__all__ = ["measure"]

BATCH_SIZE = 8
NUM_CLASSES = 100
QUICK_DEPTH = 2


def measure(name: str, settings: Settings) -> Answer:
    """Time a train step and inference of a timm model, and of its conversion to LieRE_8 from each possible start.

    Args:
        name: What `timm.create_model` calls the model.
        settings: How to measure.

    Raises:
        ImportError: Where timm is not installed.
        ValueError: If timm has no such model, or it cannot be converted.
    """
    require("timm")
    torch.manual_seed(0)
    models = {model: module.to(settings.device) for model, module in _models(name, settings.quick).items()}
    rounds = settings.choose_rounds(full=7, quick=3)
    size = _image_size(models["original"])
    batch_size = 1 if settings.quick else BATCH_SIZE
    images, labels = random_batch(batch_size, size, num_classes=NUM_CLASSES, device=settings.device)
    steps = {model: train_step(module.train(), images, labels) for model, module in models.items()}
    train = race(steps, rounds, name=f"{name}, train step", watch=settings.watch)
    calls = {model: inference(module.eval(), images) for model, module in models.items()}
    infer = race(calls, rounds, name=f"{name}, inference", watch=settings.watch)
    depth = len(models["original"].blocks)
    rows = [
        {
            "situation": f"{size[0]} x {size[1]} px, {depth} layers, batch {batch_size}",
            "name": name,
            "image_size": list(size),
            "batch_size": batch_size,
            "depth": depth,
            "model": model,
            "parameters": sum(parameter.numel() for parameter in module.parameters()),
            "rounds": rounds,
            "train": train.summary(model),
            "inference": infer.summary(model),
        }
        for model, module in models.items()
    ]
    return Answer(rounds, rows)


def _models(name: str, quick: bool) -> dict[str, Any]:
    """Return the original and its conversions."""
    timm = import_with_torchvision("timm")
    from liere.integrations.timm import convert

    if not timm.is_model(name):
        raise InputError(f"timm has no model {name!r}: {suggest(name, timm.list_models())[:200]}")
    original = timm.create_model(name, num_classes=NUM_CLASSES)
    if quick and hasattr(original, "blocks"):
        original.blocks = original.blocks[:QUICK_DEPTH]
    starts = ["identity"] if getattr(original, "rope", None) is None else ["identity", "rope"]
    return {"original": original} | {f"liere8 from {start}": convert(original, "liere8", start) for start in starts}


def _image_size(model: Any) -> tuple[int, int]:
    height, width = model.default_cfg["input_size"][1:]
    return height, width
