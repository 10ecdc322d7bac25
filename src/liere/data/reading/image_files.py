"""Images in files, such as those of ImageNet: a folder a class."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from liere.data.augmentation import rand_augment
from liere.data.facts import DataFacts
from liere.data.reading.crops import BOX_DRAWS, crop_middle, crop_resize, draw_box, to_tensor, uniform_numbers
from liere.data.reading.decoded_files import DecodedFiles, UnreadableError
from liere.data.reading.file_table import FileTable
from liere.errors import InputError
from liere.files.reading import open_regular
from liere.files.writing import is_system_error
from liere.shapes import UInt8

__all__ = ["ImageFiles", "read_image"]

IMAGE_FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
"""What Pillow may take a file for, whatever its name: other formats start programs (PostScript) or fetch files."""
MAX_PIXELS = 100_000_000
"""Pixels of an image. A small file can hold any number of them, and each takes eight bytes while it is decoded."""
WIDE_MODES = ("I", "F")


class ImageFiles(DecodedFiles):
    """Images in files.

    Training examples are random parts of an image, resized, mirrored and changed by RandAugment, in this order; test
    examples are the middle of the image.

    Args:
        files: The files.
        facts: Of the data set; `image_size` is the side of the images, twice.
        min_area: Least share of an image that a random part takes.
        flip: Whether every other training image is mirrored.
        rand_augment: Operations an image and their magnitude.
        max_unreadable: How many files may be left out.
    """

    def __init__(
        self,
        files: FileTable,
        facts: DataFacts,
        *,
        min_area: float = 0.08,
        flip: bool = False,
        rand_augment: tuple[int, int] | None = None,
        max_unreadable: int = 10,
    ) -> None:
        super().__init__(files, facts, max_unreadable=max_unreadable)
        self.min_area, self.flip, self.rand_augment = min_area, flip, rand_augment

    def decode(self, path: Path, bits: int | None) -> UInt8[Tensor, "3 size size"]:
        """Return an image, a random part of it if there are random bits."""
        picture, size = read_image(path), self.facts.image_size[-1]
        if bits is None:
            return to_tensor(crop_middle(picture, size))
        side, *numbers = uniform_numbers(bits, 1 + BOX_DRAWS)
        box = draw_box(*picture.size, numbers, self.min_area)
        image = to_tensor(crop_resize(picture, box, size, mirrored=self.flip and side < 0.5))
        return image if self.rand_augment is None else rand_augment(image, bits, *self.rand_augment)


def read_image(path: Path) -> Image.Image:
    """Return an image as 8-bit RGB; of 16 bits the upper 8 are taken, and transparency is ignored.

    Raises:
        UnreadableError: If it cannot be decoded.
    """
    try:
        # Pillow warns of metadata that are broken and of transparency that gets lost.
        with (
            warnings.catch_warnings(action="ignore"),
            open_regular(path) as file,
            Image.open(file, formats=IMAGE_FORMATS) as image,
        ):
            return _to_rgb(image)
    except UnidentifiedImageError:
        raise UnreadableError(f"it is none of {', '.join(IMAGE_FORMATS)}") from None
    except Image.DecompressionBombError:
        raise UnreadableError(f"it has more than {MAX_PIXELS:,} pixels: scale it down") from None
    except Exception as error:  # decoders raise what they like on damaged files
        if isinstance(error, UnreadableError) or is_system_error(error, with_access=False):
            raise
        raise UnreadableError(error) from None


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.width * image.height > MAX_PIXELS:  # nothing has been decoded yet
        raise UnreadableError(
            f"it has {image.width:,} x {image.height:,} pixels, more than {MAX_PIXELS:,}: scale it down"
        )
    if image.mode in WIDE_MODES:
        raise InputError(f"its pixels have 32 bits, mode {image.mode}: use 8 or 16")
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    return image.convert("RGB")
