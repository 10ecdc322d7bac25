"""A sheet of examples of a data set, each with its label."""

from __future__ import annotations

import math
from pathlib import Path

from liere.data import SpatialReasoning
from liere.evaluation.figures import canvas

__all__ = ["draw_contact_sheet"]

COLUMNS = 6


def draw_contact_sheet(data: SpatialReasoning, count: int, path: Path) -> None:
    """Draw the first examples of a data set to a picture.

    Raises:
        ImportError: Where matplotlib is not installed.
        OSError: If the picture cannot be written.
    """
    images, labels = data.batch(range(count))
    columns = min(COLUMNS, count)
    with canvas(path, math.ceil(count / columns), columns, cell=(1.9, 2.15)) as (figure, axes):
        figure.suptitle(
            f"{type(data).__name__}, {data.split}, {data.size} px: which way points the arrow at the Y's base?"
        )
        for place, ax in enumerate(axes.flat):
            if place >= count:
                ax.set_axis_off()
                continue
            ax.imshow(images[place].permute(1, 2, 0).numpy(), interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.set_title(f"{place}: {data.classes[labels[place]]}", fontsize=9)
