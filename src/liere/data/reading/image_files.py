"""Images in files, such as those of ImageNet."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, TiffImagePlugin, UnidentifiedImageError
from torch import Tensor

from liere.data.augmentation import rand_augment
from liere.data.facts import DataFacts
from liere.data.reading.crops import BOX_DRAWS, crop_middle, crop_resize, draw_box, to_tensor, uniform_numbers
from liere.data.reading.decoded_files import DecodedFiles, UnreadableError
from liere.data.reading.file_table import FileTable
from liere.data.reading.tiff_tags import check_tags, check_tiles
from liere.errors import InputError
from liere.files.reading import open_regular
from liere.files.writing import is_system_error
from liere.shapes import UInt8

__all__ = ["ImageFiles", "read_image"]

IMAGE_FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
"""Formats that Pillow may try, whatever the suffix; others may run programs (PostScript) or open other files."""
MAX_PIXELS = 80_000_000
"""Largest image in pixels: even a small file can claim any number, and each pixel takes up to 16 bytes to decode."""
MAX_SIDE = 100_000
"""Largest width or height in pixels: each row takes memory in addition to its pixels."""
MAX_BYTES = 500_000_000
"""Largest file: a part of it that Pillow reads as a whole may be almost as large, even if the file is sparse."""
WIDE_MODES = ("I", "F")


class ImageFiles(DecodedFiles):
    """Images decoded from files.

    Training examples are random crops of an image, resized, mirrored and changed by RandAugment, in this order; test
    examples are center crops.

    Args:
        files: The files.
        facts: Facts of the data set; images are square, so both entries of `image_size` are equal.
        min_area: Minimum area of a random crop, as a fraction of the image.
        flip: Whether each training image is mirrored with probability 1/2.
        rand_augment: Operations per image and their magnitude; None for none.
        max_unreadable: Maximum number of skipped files.
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
        """Return a random crop of an image if random bits are given, else its center crop."""
        picture, size = read_image(path), self.facts.image_size[-1]
        if bits is None:
            return to_tensor(crop_middle(picture, size))
        side, *numbers = uniform_numbers(bits, 1 + BOX_DRAWS)
        box = draw_box(*picture.size, numbers, self.min_area)
        image = to_tensor(crop_resize(picture, box, size, mirrored=self.flip and side < 0.5))
        return image if self.rand_augment is None else rand_augment(image, bits, *self.rand_augment)


def read_image(path: Path) -> Image.Image:
    """Return an image as 8-bit RGB: 16-bit pixels keep their upper 8 bits, and transparency is ignored.

    Raises:
        UnreadableError: If it cannot be decoded.
    """
    try:
        # Pillow warns about broken metadata and lost transparency.
        with (
            warnings.catch_warnings(action="ignore"),
            open_regular(path) as file,
        ):
            if (size := os.fstat(file.fileno()).st_size) > MAX_BYTES:
                raise UnreadableError(f"it has {size:,} bytes, more than {MAX_BYTES:,}: compress it")  # noqa: TRY301
            check_tags(file)
            with Image.open(file, formats=IMAGE_FORMATS) as image:
                if isinstance(image, TiffImagePlugin.TiffImageFile):
                    check_tiles(image, MAX_PIXELS)
                return _to_rgb(image)
    except UnidentifiedImageError:
        raise UnreadableError(f"it is not in any of the formats {', '.join(IMAGE_FORMATS)}") from None
    except Image.DecompressionBombError:
        raise UnreadableError(f"it has more than {MAX_PIXELS:,} pixels: scale it down") from None
    except Exception as error:  # decoders raise many types of errors on damaged files
        if isinstance(error, UnreadableError) or is_system_error(error, with_access=False):
            raise
        raise UnreadableError(error) from None


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.width * image.height > MAX_PIXELS:  # Pillow has only read the header so far
        raise UnreadableError(
            f"it has {image.width:,} x {image.height:,} pixels, more than {MAX_PIXELS:,}: scale it down"
        )
    if max(image.size) > MAX_SIDE:
        raise UnreadableError(f"it has a side of {max(image.size):,} pixels, more than {MAX_SIDE:,}: scale it down")
    # Pillow keeps the 16 bits of a PGM in 32.
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in WIDE_MODES:
        raise InputError(f"its pixels have 32 bits (mode {image.mode}): convert it to 8 or 16 bits")
    return image.convert("RGB")
