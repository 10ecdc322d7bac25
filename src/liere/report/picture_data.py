"""Pictures that a report shows and does not draw: images of the task, and what models attend to."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["AttentionRow", "Pictures", "Sample"]


@dataclass(frozen=True)
class Sample:
    """An image of the task.

    Attributes:
        caption: What is to be seen, as plain text.
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
        layers: One PNG file a layer, from blue (least) to red (most), each rescaled to [0, 1] by itself.
    """

    encoding: str
    size: int
    layers: list[bytes]


@dataclass(frozen=True)
class Pictures:
    """All pictures of a report; either list may be empty."""

    samples: list[Sample] = field(default_factory=list)
    attention: list[AttentionRow] = field(default_factory=list)

    def attention_by_size(self) -> dict[int, list[AttentionRow]]:
        """Return the rows of every size, smallest first."""
        sizes = sorted({row.size for row in self.attention})
        return {size: [row for row in self.attention if row.size == size] for size in sizes}
