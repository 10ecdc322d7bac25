from __future__ import annotations

import os
import struct
import zlib

import pytest

pytest.importorskip("PIL")
from PIL import Image

from liere.data.reading.decoded_files import UnreadableError
from liere.data.reading.image_files import read_image


def write_tiff(path, tags: list[tuple[int, int]], data: bytes, *, is_big: bool = False):
    """Write a compressed grayscale TIFF of 64 x 64 pixels with one tile, and any tags in addition."""
    base = [(256, 64), (257, 64), (258, 8), (259, 8), (262, 1), (277, 1), *tags, (324, 0), (325, len(data))]
    entry = "<HHQQ" if is_big else "<HHII"
    start = b"II+\0" + struct.pack("<HHQ", 8, 0, 16) if is_big else b"II*\0" + struct.pack("<I", 8)
    count = struct.pack("<Q" if is_big else "<H", len(base))
    place = len(start) + len(count) + len(base) * struct.calcsize(entry) + 8
    listed = b"".join(struct.pack(entry, tag, 4, 1, place if tag == 324 else value) for tag, value in base)
    path.write_bytes(start + count + listed + bytes(8) + data)
    return path


@pytest.mark.parametrize("is_big", [False, True])
def test_tiles_that_are_much_larger_than_the_image_are_refused(tmp_path, is_big):
    tile = zlib.compress(bytes(128 * 128))
    file = write_tiff(tmp_path / "image.tif", [(322, 128), (323, 128)], tile, is_big=is_big)
    assert read_image(file).size == (64, 64)
    for size, message in (
        ([(322, 20_000), (323, 20_000)], "its tiles cover 20,000 x 20,000 pixels, more than 80,000,000: save it with"),
        ([(322, 16), (323, 2**31)], r"its tiles cover 64 x 2,147,483,648 pixels"),
        ([(322, 20_000), (322, 128), (323, 128)], "it has several sizes of tiles: save it again"),
    ):
        with pytest.raises(UnreadableError, match=message):
            read_image(write_tiff(tmp_path / "image.tif", size, tile, is_big=is_big))


def test_unusual_headers_of_tiffs_are_read(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "image.tif")
    content = (tmp_path / "image.tif").read_bytes()
    (tmp_path / "image.tif").write_bytes(b"II\x00\x2a" + content[4:])
    assert read_image(tmp_path / "image.tif").size == (8, 8)


@pytest.mark.parametrize(("kind", "size"), [(2, 1), (3, 2), (5, 8), (12, 8)])
@pytest.mark.parametrize("tag", [273, 282])
def test_tags_of_very_many_values_are_refused_before_they_are_read(tmp_path, monkeypatch, tag, kind, size):
    """A sparse file of 400 MB took 4 GB."""
    monkeypatch.setattr(Image, "open", None)
    Image.new("L", (8, 8)).save(tmp_path / "image.tif", resolution=72)
    content = bytearray((tmp_path / "image.tif").read_bytes())
    place = int.from_bytes(content[4:8], "little") + 2
    while content[place : place + 2] != struct.pack("<H", tag):
        place += 12
    content[place : place + 12] = struct.pack("<HHII", tag, kind, values := 400_000_000 // size, 1_000)
    (tmp_path / "image.tif").write_bytes(content)
    os.truncate(tmp_path / "image.tif", 400_100_000)
    with pytest.raises(UnreadableError, match=f"its tag {tag} has {values:,} values: save it without this tag"):
        read_image(tmp_path / "image.tif")


def test_a_header_that_pillow_and_libtiff_read_differently_is_refused(tmp_path):
    (tmp_path / "image.tif").write_bytes(b"MM\0+" + bytes(100))
    with pytest.raises(UnreadableError, match="it is a BigTIFF in big-endian order: save it as a TIFF"):
        read_image(tmp_path / "image.tif")


@pytest.mark.parametrize(
    "content", [b"II*\0", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\xff\xff", b"II+\0" + b"\xff" * 12]
)
def test_truncated_tags_are_reported(tmp_path, content):
    (tmp_path / "image.tif").write_bytes(content)
    with pytest.raises(UnreadableError):
        read_image(tmp_path / "image.tif")
