"""Pictures that are passed to a report: images of the task, and attention maps."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ATTENTION_NOTE", "AttentionRow", "Pictures", "Sample"]

ATTENTION_NOTE = (
    "Attention of the CLS token over the image, from blue (lowest) to red (highest). Each map is rescaled to [0, 1] "
    "separately: colors show where a layer attends, but cannot be compared between maps."
)


@dataclass(frozen=True)
class Sample:
    """An image of the task.

    Attributes:
        caption: What it shows, as plain text.
        png: The image as a PNG file.
    """

    caption: str
    png: bytes


@dataclass(frozen=True)
class AttentionRow:
    """Attention of the CLS token of one model over one image.

    Attributes:
        encoding: The model's position encoding.
        size: Pixels along a side of the image.
        layers: One PNG file per layer, from blue (lowest) to red (highest), each rescaled to [0, 1] separately.
    """

    encoding: str
    size: int
    layers: list[bytes]


@dataclass(frozen=True)
class Pictures:
    """Pictures of a report; either list may be empty."""

    samples: list[Sample] = field(default_factory=list)
    attention: list[AttentionRow] = field(default_factory=list)

    def attention_by_size(self) -> dict[int, list[AttentionRow]]:
        """Return the rows by image size, smallest first."""
        sizes = sorted({row.size for row in self.attention})
        return {size: [row for row in self.attention if row.size == size] for size in sizes}
