"""Hostile files: with code, endless, much larger than they look, or nested too deeply."""

from __future__ import annotations

import os
import pickle
import random
import socket
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = [
    "ESCAPED",
    "TEXTS",
    "Code",
    "Maker",
    "hostile_images",
    "hostile_labels",
    "hostile_lists",
    "hostile_videos",
    "hostile_yaml",
    "sparse",
    "special_files",
    "write",
]

ESCAPED = "escaped-from-an-archive"  # name of a file that must not be written outside the folder
TEXTS: dict[str, bytes] = {
    "nested too deep for JSON": b"[" * 200_000,
    "nested and closed": b"[" * 50_000 + b"]" * 50_000,
    "a number without end": b"9" * 1_000_000,
    "not UTF-8": b"\xff\xfe\x00\x80step\n",
    "of zeros": bytes(10_000),
    "an empty list": b"[]",
    "an empty dict": b"{}",
    "null": b"null",
    "infinite": b'{"step": 1e999, "examples": NaN, "seconds": -Infinity, "best": {"accuracy": NaN}}',
    "of other fields": b'[{"weights": 3, "size": {}, "accuracy": []}]',
    "one long line": b"a," * 1_000_000,
    "a line with a quote without end": b'step,examples\n"1,2\n' + b"3,4\n" * 10_000,
}
Maker = Callable[[Path], None]


class Code:
    """An object that creates the canary when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.canary),)


def hostile_yaml(canary: Path) -> dict[str, bytes]:
    """Return invalid or hostile configuration texts, by description."""
    laughs = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 30))
    return TEXTS | {
        "with code": f"data: !!python/object/apply:os.mkdir ['{canary}']\n".encode(),
        "with aliases of aliases": laughs,
        "nested too deep for YAML": b"{a: " * 5_000,
        "of a field twice": b"data: {size: 36}\ndata: {size: 48}\n",
        "of a number too large": b"training: {examples: %s}\n" % (b"9" * 5_000),
        "with a binary field": b"title: !!binary aGVsbG8=\n",
    }


def hostile_labels(canary: Path) -> dict[str, Maker]:
    """Return makers of JSON files that are not lists of labels."""
    labels = {
        "has a label of -1": b"[-1]",
        "has a label of a billion": b"[1000000000]",
        "has labels that are not integers": b'[1.5, true, null, "0", NaN, 1e999]',
        "has lists as labels": b"[" + b"[0]," * 1_000 + b"[0]]",
        "has a million labels": b"[" + b"0," * 1_000_000 + b"0]",
    }
    return special_files() | {f"is {what}": write(text) for what, text in TEXTS.items()} | _written(labels)


def hostile_lists(canary: Path) -> dict[str, Maker]:
    """Return makers of lists of videos with lines that do not name one in its folder."""
    lines = {
        "names a file outside": b"ApplyEyeMakeup/../../../../../../etc/hostname 1\n",
        "names an absolute path": b"/etc/hostname 1\n",
        "names a device": b"ApplyEyeMakeup/../../../../../../../../dev/zero 1\n",
        "names a file with a NUL": b"ApplyEyeMakeup/v\0.avi 1\n",
        "names an address": b"http://127.0.0.1:9/x.avi 1\n",
        "names a file of a million letters": b"ApplyEyeMakeup/" + b"v" * 1_000_000 + b".avi 1\n",
        "has numbers that are too large": b"9" * 5_000 + b" ApplyEyeMakeup\n",
        "has digits of another script": "\u0663 ApplyEyeMakeup\n".encode(),
        "has a million lines": b"ApplyEyeMakeup/v.avi 1\n" * 1_000_000,
    }
    return special_files() | {f"is {what}": write(text) for what, text in TEXTS.items()} | _written(lines)


def _written(contents: dict[str, bytes]) -> dict[str, Maker]:
    return {what: write(content) for what, content in contents.items()}


def write(data: bytes) -> Maker:
    """Return a maker of a file with these contents."""
    return lambda path: path.write_bytes(data) and None


def special_files() -> dict[str, Maker]:
    """Return makers of things that are not regular files, or that are empty or endless."""
    return {
        "is a FIFO": os.mkfifo,
        "is a folder": lambda path: path.mkdir(),
        "leads to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
        "leads to itself": lambda path: path.symlink_to(path),
        "leads nowhere": lambda path: path.symlink_to(path.with_name("nowhere")),
        "is empty": write(b""),
        "is a terabyte of zeros": sparse(b""),
        "is a socket": _socket,
    }


def sparse(start: bytes, size: int = 10**12) -> Maker:
    """Return a maker of a file that has a start and then nothing, which takes hardly any space on disk."""

    def make(path: Path) -> None:
        path.write_bytes(start)
        os.truncate(path, size)

    return make


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # a long path is not allowed


def hostile_images(canary: Path) -> dict[str, Maker]:
    """Return makers of files that are not images, or not what they claim to be."""
    postscript = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n({canary}) (w) file closefile\nshowpage\n"
    return special_files() | {
        "is PostScript": write(postscript.encode()),
        "is a pickle": write(pickle.dumps(Code(canary))),
        "is a PNG of 60,000 x 60,000": write(_png(60_000, 60_000)),
        "is a PNG of 13,000 x 13,000": write(_png(13_000, 13_000)),
        "is a PNG with a text without end": write(_png(8, 8, text=200_000_000)),
        "is a PNG of 1 x 79,000,000": write(_png(1, 79_000_000)),
        "is a PNG with a chunk of 2 GB": sparse(_png(8, 8)[:33] + struct.pack(">I", 2 * 10**9) + b"teSt", 3 * 10**9),
        "is a TIFF with a tag of 3 GB": sparse(
            b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 40_000, 1, 3 * 10**9, 100), 4 * 10**9
        ),
        "is a TIFF with a tag of 200 million numbers": sparse(
            b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 40_000, 3, 2 * 10**8, 100), 499_000_000
        ),
        "is a WebP of 8,900 x 8,900": lambda path: _flat(8_900).save(path, "WEBP", quality=1, method=0),
        "is a TIFF of 8,900 x 8,900 in CMYK": lambda path: _flat(8_900, "CMYK").save(path, "TIFF", compression="lzma"),
        "is a TIFF of 64 x 64 with a tile of 20,000 x 20,000": _huge_tile,
        "is a GIF of 65,535 x 65,535": write(
            b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b"," + bytes(10)
        ),
        "is a BMP of 30,000 x 30,000": write(
            b"BM" + struct.pack("<IHHIIiiHHIIIIII", 54, 0, 0, 54, 40, 30_000, 30_000, 1, 24, 0, 0, 0, 0, 0, 0)[:52]
        ),
        "is a JPEG that says 65,000 x 65,000": write(
            b"\xff\xd8\xff\xc0\x00\x11\x08"
            + struct.pack(">HH", 65000, 65000)
            + b"\x03\x01\x22\0\x02\x11\1\x03\x11\1\xff\xd9"
        ),
    }


def _huge_tile(path: Path) -> None:
    """Write a grayscale TIFF whose only tile, compressed to half a megabyte, is much larger than the image."""
    side, packer = 20_000, zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(1_000 * side)) for _ in range(0, side, 1_000)) + packer.flush()
    tags = {256: 64, 257: 64, 258: 8, 259: 8, 262: 1, 277: 1, 322: side, 323: side, 324: 0, 325: len(data)}
    tags[324] = 8 + 2 + 12 * len(tags) + 4
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data)


def _flat(side: int, mode: str = "RGBA") -> Any:
    from PIL import Image

    return Image.new(mode, (side, side))


def _png(width: int, height: int, text: int = 0) -> bytes:
    """Return a highly compressible PNG of black one-bit pixels, with a compressed comment of `text` bytes."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    packer, rows = zlib.compressobj(9), []
    line = bytes(1 + (width + 7) // 8)
    for _ in range(0, height, 1000):
        rows.append(packer.compress(line * min(1000, height)))
    data = b"".join(rows) + packer.flush()
    comment = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(text), 9)) if text else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + comment + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _large_frame(path: Path) -> None:
    """Write a video of 32 x 32 with a frame of 20,000 x 20,000, a PNG of 50 kB."""
    import av

    with av.open(str(path), "w", format="mov") as container:
        stream = container.add_stream("png", rate=25, width=32, height=32, pix_fmt="rgb24")
        packet = av.Packet(_png(20_000, 20_000))
        packet.stream, packet.pts, packet.dts = stream, 0, 0
        container.mux(packet)


def hostile_videos(canary: Path) -> dict[str, Maker]:
    """Return makers of files that are not videos."""
    playlist = f"#EXTM3U\n#EXTINF:1,\nfile://{canary}\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n"
    chance = random.Random(0)
    return special_files() | {
        "is a playlist": write(playlist.encode()),
        "is a list of files": write(b"ffconcat version 1.0\nfile '/etc/hostname'\nfile '/dev/zero'\n"),
        "is a pickle": write(pickle.dumps(Code(canary))),
        "is noise": write(chance.randbytes(100_000)),
        "has a frame much larger than its header says": _large_frame,
        "is a header alone": write(b"RIFF\xff\xff\xff\x7fAVI LIST" + bytes(100)),
        "is a header and a terabyte of zeros": sparse(b"RIFF\xff\xff\xff\x7fAVI LIST" + bytes(100)),
    }
