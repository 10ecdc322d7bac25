"""How much time does each position encoding add to a train step and to inference of ViT-S?

With random placement, the time of a train step also depends on the random offset: rotations far from the origin need
more squarings, and a moved grid has fewer positions that are multiples of each other. So all models with placement use
the same fixed sequence of draws, one per step, which covers the range evenly; the median over the rounds is that of a
typical draw. Each is compared with the same encoding without placement, in the same rounds.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from liere.bench.models import inference, random_batch, train_step
from liere.bench.race import Race, race
from liere.bench.record import Answer, Settings
from liere.optional.torchvision_ops import import_with_torchvision
from liere.presets import create_model

__all__ = ["ENCODINGS", "PLACED", "QUICK_SITUATIONS", "SITUATIONS", "Situation", "measure"]

ENCODINGS = ("absolute", "none", "sincos", "visionllama", "rope_mixed", "liere8", "liere64")
PLACED = ("rope_mixed", "liere8", "liere64")
"""Encodings that are also timed with random placement."""
SHIFT = 1.75
# With these seeds, one draw falls into each seventh of the range on both axes: seven rounds cover the range.
PLACEMENT_SEEDS = (21, 60, 55, 19, 148, 6, 90)
NUM_CLASSES = 100


@dataclass(frozen=True)
class Situation:
    """Input and depth of the models.

    Attributes:
        image_size: Side of the square images, in pixels.
        patch_size: Side of a patch, in pixels.
        batch_size: Images per step.
        depth: Number of layers of the models.
    """

    image_size: int
    patch_size: int
    batch_size: int
    depth: int = 12

    @property
    def name(self) -> str:
        """Name of the situation in tables."""
        depth = "" if self.depth == 12 else f", {self.depth} layers"
        return f"{self.image_size} px, patch {self.patch_size}, batch {self.batch_size}{depth}"


SITUATIONS = [Situation(32, 4, 64), Situation(224, 16, 8)]
QUICK_SITUATIONS = [Situation(32, 4, 4, depth=2), Situation(224, 16, 1, depth=2)]


def measure(settings: Settings) -> Answer:
    """Time a train step and inference in every situation, also for timm's models if timm is installed."""
    has_timm = importlib.util.find_spec("timm") is not None
    notes = [] if has_timm else ["timm is not installed, so its models are left out: pip install 'liere[timm]'"]
    rounds = settings.choose_rounds(full=7, quick=3)
    rows: list[dict[str, Any]] = []
    for situation in QUICK_SITUATIONS if settings.quick else SITUATIONS:
        rows += _measure_situation(situation, has_timm, rounds, settings)
    return Answer(rounds, rows, notes)


def _measure_situation(situation: Situation, has_timm: bool, rounds: int, settings: Settings) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    models: dict[str, nn.Module] = {encoding: _own_model(encoding, situation) for encoding in ENCODINGS}
    twins = {f"{encoding} placed": encoding for encoding in PLACED if encoding in models}
    models |= {name: _own_model(encoding, situation, position_shift=SHIFT) for name, encoding in twins.items()}
    if has_timm:
        models |= _timm_models(situation)
    models = {name: model.to(settings.device) for name, model in models.items()}
    images, labels = random_batch(
        situation.batch_size, situation.image_size, num_classes=NUM_CLASSES, device=settings.device
    )

    def run(what: str, contestants: dict[str, Callable[[], Any]]) -> Race:
        return race(contestants, rounds, name=f"{situation.name}, {what}", watch=settings.watch)

    steps = {name: train_step(model.train(), images, labels) for name, model in models.items()}
    train = run("train step", steps | {name: _with_draws(steps[name]) for name in twins})
    infer = run("inference", {name: inference(model.eval(), images) for name, model in models.items()})
    return [
        {
            "situation": situation.name,
            "image_size": situation.image_size,
            "patch_size": situation.patch_size,
            "batch_size": situation.batch_size,
            "depth": situation.depth,
            "model": name,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "rounds": rounds,
            "train": train.summary(name),
            "inference": infer.summary(name),
            "placement": _placement(train, name, twins.get(name)),
        }
        for name, model in models.items()
    ]


def _placement(result: Race, name: str, twin: str | None) -> dict[str, Any] | None:
    """Return the cost of placement relative to the same encoding without it; None for models without placement."""
    return None if twin is None else {"shift": SHIFT, "of": twin, "ratio": result.ratio(name, to=twin).as_dict()}


def _with_draws(step: Callable[[], Any]) -> Callable[[], Any]:
    """Return a step that draws the same sequence of offsets in every run."""
    seeds = itertools.cycle(PLACEMENT_SEEDS)

    def placed() -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(next(seeds))
            step()

    return placed


def _own_model(encoding: str, situation: Situation, **options: Any) -> nn.Module:
    return create_model(
        "vit_small",
        encoding=encoding,
        image_size=situation.image_size,
        patch_size=situation.patch_size,
        num_classes=NUM_CLASSES,
        depth=situation.depth,
        **options,
    )


def _timm_models(situation: Situation) -> dict[str, nn.Module]:
    """Return timm's models of the same size, with absolute positions and with RoPE-Mixed."""
    timm = import_with_torchvision("timm")
    same = {
        "img_size": situation.image_size,
        "patch_size": situation.patch_size,
        "num_classes": NUM_CLASSES,
        "depth": situation.depth,
        "qkv_bias": False,
        "init_values": None,
    }
    return {
        "timm absolute": timm.create_model("vit_small_patch16_224", **same),
        "timm rope_mixed": timm.create_model("vit_small_patch16_rope_mixed_224", **same),
    }
