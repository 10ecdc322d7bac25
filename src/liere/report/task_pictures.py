"""Pictures for a report: examples of the task, and attention maps of each encoding."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from liere.data.normalization import to_float
from liere.errors import visible
from liere.evaluation.attention_maps import cls_attention, overlay_png
from liere.files.reading import shorten
from liere.report.picture_data import AttentionRow, Pictures, Sample
from liere.report.pixels import flat_picture, png
from liere.runs.data_of_run import load_data
from liere.runs.encoding_names import encoding_names
from liere.runs.model import load_model
from liere.runs.run import Run

__all__ = ["attention_of", "make_pictures"]

SAMPLES = 4
EXAMPLE = 0  # index of the test example whose attention is shown
SPATIAL_CAPTION = "The Y's base points at the arrow that points {}."
CAPTION = "Class: {}."
MOST_SIDE = 2048
"""Largest image side for attention maps: memory and time grow with the square of the number of tokens."""


def make_pictures(runs: Sequence[Run], sizes: Sequence[int]) -> Pictures:
    """Return examples at the training size, and attention maps of one run per encoding at each size.

    Args:
        runs: Finished runs of one task.
        sizes: Image sizes of the attention maps; sizes that would take too long are skipped.
    """
    config = runs[0].config.data
    data = load_data(runs[0], "test")
    _, images, labels = data.load(list(range(min(SAMPLES, len(data)))))
    caption = SPATIAL_CAPTION if config.name == "spatial" else CAPTION
    names = [visible(shorten(name)) for name in data.facts.classes]
    samples = [
        Sample(caption.format(names[label]), png(flat_picture(image, len(data.facts.image_size))))
        for image, label in zip(images, labels.tolist(), strict=True)
    ]
    firsts: dict[str, Run] = {}
    for name, run in zip(encoding_names([run.config for run in runs]), runs, strict=True):
        firsts.setdefault(name, run)
    attention = [
        AttentionRow(name, size, attention_of(run, size))
        for name, run in firsts.items()
        if run.config.model.pool == "cls"
        for size in dict.fromkeys(sizes)
        if size <= MOST_SIDE
    ]
    return Pictures(samples, attention)


def attention_of(run: Run, size: int) -> list[bytes]:
    """Return a run's attention maps over a test example, one PNG file per layer, at the middle frame or slice."""
    data, model = load_data(run, "test", size=size), load_model(run.config, run.final_weights, run.facts)
    axes = len(data.facts.image_size)
    _, images, _ = data.load([EXAMPLE])
    first = images.flatten(0, -axes - 2)[:1]
    mean, std = torch.tensor(run.facts.mean), torch.tensor(run.facts.std)
    maps = [layer[0] for layer in cls_attention(model, to_float(first, mean=mean, std=std))]
    for _ in range(axes - 2):
        maps = [layer[len(layer) // 2] for layer in maps]
    picture = flat_picture(first[0], axes)
    return [overlay_png(picture, layer) for layer in maps]
