"""Does training wait for data? The time to load a batch, compared with a train step."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import torch

from liere.bench.models import random_batch, train_step
from liere.bench.race import race
from liere.bench.record import Answer, Settings
from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation
from liere.data.examples import ExampleSet
from liere.data.facts import DataFacts
from liere.data.spatial_scenes import SpatialReasoning
from liere.presets import create_model

__all__ = ["BATCH", "measure"]

BATCH = 128
QUICK_BATCH = 16
IMAGES = 10_000
# The transformer of experiments/recipes/small/cifar10.yaml.
MODEL = {"dim": 64, "depth": 4, "heads": 2, "mlp_dim": 128, "patch_size": 4, "image_size": 32, "num_classes": 10}
STEP = "train step"


def measure(settings: Settings) -> Answer:
    """Time a train step of a small model, and loading a batch of CIFAR-sized images or of the spatial task."""
    rounds = settings.choose_rounds(full=21, quick=3)
    batch = QUICK_BATCH if settings.quick else BATCH
    torch.manual_seed(0)
    model = create_model(None, encoding="liere8", **MODEL)  # type: ignore[arg-type]
    contestants: dict[str, Callable[[], Any]] = {STEP: train_step(model, *random_batch(batch, 32, num_classes=10))}
    contestants |= {name: _load(data, batch) for name, data in _data_sets().items()}
    result = race(contestants, rounds, name="loading", watch=settings.watch)
    rows = [
        {
            "case": name,
            "batch": batch,
            "seconds": result.times(name).as_dict(),
            "ratio": result.ratio(name).as_dict(),
            "images_a_second": batch / result.times(name).median,
        }
        for name in contestants
    ]
    return Answer(
        rounds, rows, [f"Batches of {batch} in one process; the train step is that of a model with 0.14 M parameters."]
    )


def _data_sets() -> dict[str, ExampleSet]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (IMAGES, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(10, (IMAGES,), generator=generator)
    facts = DataFacts(tuple(map(str, range(10))), 3, (32, 32), (0.5,) * 3, (0.25,) * 3)

    def cifar(**changes: Any) -> ExampleSet:
        return ArrayData(images, labels, facts, Augmentation(**changes))

    found: dict[str, ExampleSet] = {
        "CIFAR, as it is": cifar(),
        "CIFAR, crop and flip": cifar(padding=4, flip=True),
        "CIFAR, crop, flip and RandAugment": cifar(padding=4, flip=True, rand_augment=(2, 9)),
        "spatial task, 108 px": SpatialReasoning(108),
    }
    if importlib.util.find_spec("torchvision") is None:
        del found["CIFAR, crop, flip and RandAugment"]
    return found


def _load(data: ExampleSet, batch: int) -> Callable[[], Any]:
    """Return a function that loads a batch of random examples."""
    generator = torch.Generator().manual_seed(0)

    def load() -> None:
        data.load(
            torch.randint(len(data), (batch,), generator=generator).tolist(),
            torch.randint(2**62, (batch,), generator=generator),
        )

    return load
