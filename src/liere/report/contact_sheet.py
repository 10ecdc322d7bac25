"""Contact sheet: examples of a data set with their labels."""

from __future__ import annotations

import math
from pathlib import Path

from liere.data.examples import ExampleSet
from liere.errors import visible
from liere.files.reading import shorten
from liere.report.drawing import canvas
from liere.report.pixels import flat_picture

__all__ = ["draw_contact_sheet"]

COLUMNS = 6


def draw_contact_sheet(data: ExampleSet, count: int, path: Path, title: str) -> None:
    """Write a picture of evenly spaced examples of a data set, each with its label.

    Raises:
        ImportError: If matplotlib is not installed.
        OSError: If the picture cannot be written.
    """
    ids, images, labels = data.load([place * len(data) // count for place in range(count)])
    axes_of_an_image = len(data.facts.image_size)
    columns = min(COLUMNS, len(ids))
    with canvas(path, math.ceil(len(ids) / columns), columns, cell=(1.9, 2.15)) as (figure, axes):
        figure.suptitle(title)
        for place, ax in enumerate(axes.flat):
            if place >= len(ids):
                ax.set_axis_off()
                continue
            picture = flat_picture(images[place], axes_of_an_image)
            ax.imshow(picture.permute(1, 2, 0).numpy(), interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            name = visible(shorten(data.facts.classes[labels[place]]))
            ax.set_title(f"{ids[place]}: {name}", fontsize=9, parse_math=False)
