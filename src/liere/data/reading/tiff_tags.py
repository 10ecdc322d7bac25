"""Checks of the tags of a TIFF, which can make a small file take gigabytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import BinaryIO, Literal

from PIL import TiffImagePlugin

from liere.data.reading.decoded_files import UnreadableError

__all__ = ["check_tags", "check_tiles"]

BIG = 43  # the version in the header of a BigTIFF
VERSIONS = {42, BIG}
LAYOUTS = {False: (2, 12), True: (8, 20)}
"""The bytes of the number of tags, and of each tag, by whether it is a BigTIFF."""
TILE_TAGS = (322, 323)
"""Width and length of the tiles."""
MOST_TAGS = 2**16 - 1
BYTE_TYPES = {1, 2, 7}
"""Types of values that are kept as bytes or text; each value of another type becomes a Python object."""
MOST_BYTES, MOST_VALUES = 100_000_000, 1_000_000
"""Maximum number of values of a tag; the largest image has 312,500 tiles."""


def check_tags(file: BinaryIO) -> None:
    """Raise `UnreadableError` if a file is a TIFF with tags that take much memory, before Pillow reads them.

    Also if there are two sizes of tiles, of which Pillow takes the first or last, and libtiff the other.
    """
    start = file.read(16)
    order: Literal["little", "big"] = "little" if start[:2] == b"II" else "big"
    if start[:2] in (b"II", b"MM") and VERSIONS & {*start[2:4]}:
        if start.startswith(b"MM\0+"):  # libtiff would read other tags than Pillow
            raise UnreadableError("it is a BigTIFF in big-endian order: save it as a TIFF")
        is_big = start[2] == BIG
        file.seek(int.from_bytes(start[8:] if is_big else start[4:8], order))
        found = []
        for tag, kind, values in _tags(file, order, is_big=is_big):
            if values > (MOST_BYTES if kind in BYTE_TYPES else MOST_VALUES):
                raise UnreadableError(f"its tag {tag} has {values:,} values: save it without this tag")
            found.append(tag)
        if any(found.count(tag) > 1 for tag in TILE_TAGS):
            raise UnreadableError("it has several sizes of tiles: save it again")
    file.seek(0)


def _tags(file: BinaryIO, order: Literal["little", "big"], *, is_big: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the number, the type and the number of values of each tag."""
    wide, entry = LAYOUTS[is_big]
    count = int.from_bytes(file.read(wide), order)
    if count > MOST_TAGS:
        raise UnreadableError(f"it has {count:,} tags: save it again")
    listed = file.read(entry * count)
    for place in range(0, len(listed), entry):
        parts = listed[place : place + 2], listed[place + 2 : place + 4], listed[place + 4 : place + 4 + entry // 3]
        tag, kind, values = (int.from_bytes(part, order) for part in parts)
        yield tag, kind, values


def check_tiles(image: TiffImagePlugin.TiffImageFile, most: int) -> None:
    """Raise `UnreadableError` if the tiles of a TIFF, which are decoded as a whole, are much larger than the image.

    Args:
        image: The TIFF, checked by `check_tags`.
        most: Maximum number of pixels.
    """
    sides = [max(side, image.tag_v2.get(tag, 1)) for side, tag in zip(image.size, TILE_TAGS, strict=True)]
    if math.prod(sides) > most:
        raise UnreadableError(
            f"its tiles cover {sides[0]:,} x {sides[1]:,} pixels, more than {most:,}: save it with smaller tiles"
        )
