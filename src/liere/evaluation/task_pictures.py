"""Pictures for a report: examples of the task, and where each encoding's model looks."""

from __future__ import annotations

import io
from collections.abc import Sequence

import torch
from torch import Tensor

from liere.evaluation.attention_maps import cls_attention, overlay_png
from liere.evaluation.report import AttentionRow, Pictures, Sample
from liere.evaluation.summary import encoding_names
from liere.training.images import to_float
from liere.training.model import load_model
from liere.training.runs import Run

__all__ = ["attention_of", "make_pictures", "png"]

SAMPLES = 4
EXAMPLE = 0  # of the test split, whose attention is shown


def make_pictures(runs: Sequence[Run], sizes: Sequence[int]) -> Pictures:
    """Return examples at the training size, and attention maps of one run an encoding at each size.

    Args:
        runs: Finished runs of one task.
        sizes: Image sizes of the attention maps.
    """
    data = runs[0].config.data.load("test")
    images, labels = data.batch(range(SAMPLES))
    samples = [
        Sample(f"The Y's base points at the arrow that points {data.facts.classes[label]}.", png(image))
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
    ]
    return Pictures(samples, attention)


def png(image: Tensor) -> bytes:
    """Return an image `[3, height, width]`, uint8, as a PNG file."""
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, image.permute(1, 2, 0).contiguous().numpy(), format="png")
    return file.getvalue()


def attention_of(run: Run, size: int) -> list[bytes]:
    """Return a run's attention maps over a test example, a PNG file a layer."""
    data, model = run.config.data.load("test", size=size), load_model(run.config, run.final_weights)
    images, _ = data.batch([EXAMPLE])
    mean, std = torch.tensor(data.facts.mean), torch.tensor(data.facts.std)
    layers = cls_attention(model, to_float(images, mean=mean, std=std))
    return [overlay_png(images[0], layer[0]) for layer in layers]
