"""Hostile files: with code, endless, much larger than they look, or nested too deeply."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import socket
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = [
    "ESCAPED",
    "TEXTS",
    "hostile_cifar",
    "hostile_images",
    "hostile_labels",
    "hostile_lists",
    "hostile_npz",
    "hostile_videos",
    "hostile_yaml",
    "special_files",
]

ESCAPED = "escaped-from-an-archive"  # name of a file that must not be written outside the folder
GIGABYTE = 2**30
HEADER = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }"
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


class _Code:
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
    return special_files() | {f"is {what}": _write(text) for what, text in TEXTS.items()} | _written(labels)


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
    return special_files() | {f"is {what}": _write(text) for what, text in TEXTS.items()} | _written(lines)


def _written(contents: dict[str, bytes]) -> dict[str, Maker]:
    return {what: _write(content) for what, content in contents.items()}


def _write(data: bytes) -> Maker:
    return lambda path: path.write_bytes(data) and None


def special_files() -> dict[str, Maker]:
    """Return makers of things that are not regular files, or that are empty or endless."""
    return {
        "is a FIFO": os.mkfifo,
        "is a folder": lambda path: path.mkdir(),
        "leads to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
        "leads to itself": lambda path: path.symlink_to(path),
        "leads nowhere": lambda path: path.symlink_to(path.with_name("nowhere")),
        "is empty": _write(b""),
        "is a terabyte of zeros": _sparse(b""),
        "is a socket": _socket,
    }


def _sparse(start: bytes, size: int = 10**12) -> Maker:
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
        "is PostScript": _write(postscript.encode()),
        "is a pickle": _write(pickle.dumps(_Code(canary))),
        "is a PNG of 60,000 x 60,000": _write(_png(60_000, 60_000)),
        "is a PNG of 13,000 x 13,000": _write(_png(13_000, 13_000)),
        "is a PNG with a text without end": _write(_png(8, 8, text=200_000_000)),
        "is a PNG of 1 x 79,000,000": _write(_png(1, 79_000_000)),
        "is a PNG with a chunk of 2 GB": _sparse(_png(8, 8)[:33] + struct.pack(">I", 2 * 10**9) + b"teSt", 3 * 10**9),
        "is a TIFF with a tag of 3 GB": _sparse(
            b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 40_000, 1, 3 * 10**9, 100), 4 * 10**9
        ),
        "is a WebP of 8,900 x 8,900": lambda path: _flat(8_900).save(path, "WEBP", quality=1, method=0),
        "is a TIFF of 8,900 x 8,900 in CMYK": lambda path: _flat(8_900, "CMYK").save(path, "TIFF", compression="lzma"),
        "is a TIFF of 64 x 64 with a tile of 20,000 x 20,000": _huge_tile,
        "is a GIF of 65,535 x 65,535": _write(
            b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b"," + bytes(10)
        ),
        "is a BMP of 30,000 x 30,000": _write(
            b"BM" + struct.pack("<IHHIIiiHHIIIIII", 54, 0, 0, 54, 40, 30_000, 30_000, 1, 24, 0, 0, 0, 0, 0, 0)[:52]
        ),
        "is a JPEG that says 65,000 x 65,000": _write(
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


def hostile_npz(canary: Path) -> dict[str, Maker]:
    """Return makers of invalid or hostile `.npz` archives."""
    shapes = {
        "says 10^18 examples": ("(1000000000000000000, 12, 12)", b""),
        "says a negative shape": ("(-5, 12, 12)", b""),
        "has a shape with code": (f"(__import__('os').mkdir('{canary}'), 12)", b""),
        "has a shape nested too deep": ("(" * 5_000, b""),
        "says more than it has": ("(400, 12, 12)", bytes(100)),
    }
    found: dict[str, Maker] = {
        what: _npz({"images.npy": _npy(HEADER % shape, data)}) for what, (shape, data) in shapes.items()
    }
    objects = (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", 72)
        + b"{'descr': '|O', 'fortran_order': False, 'shape': (), }".ljust(71)
        + b"\n"
    )
    return (
        special_files()
        | found
        | {
            "has objects with code": _npz({"images.npy": objects + pickle.dumps(_Code(canary)), "labels.npy": b""}),
            "is a pickle": _write(pickle.dumps(_Code(canary))),
            "unpacks to 3 GB": _zip_bomb,
            "has 3 GB of holes": _sparse_npz,
            "has a header of 3 GB": _npz({"images.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 3 * GIGABYTE) + b"{"}),
            "has members that lead out of it": _npz({f"../../{ESCAPED}": b"x", f"/tmp/../{ESCAPED}": b"x"}),
            "has 50,000 members": _npz({f"a{number}.npy": b"" for number in range(50_000)}),
        }
    )


def _npy(header: str, data: bytes) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + data


def _npz(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Maker:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return make


def _zip_bomb(path: Path) -> None:
    """Write an archive of arrays of zeros, a thousand times smaller than its content."""
    side = 1024
    examples = 3 * GIGABYTE // side**2
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("images.npy", "w", force_zip64=True) as file:
            file.write(_npy(HEADER % f"({examples}, {side}, {side})", b""))
            for _ in range(3 * 64):
                file.write(bytes(GIGABYTE // 64))
        labels = bytes(number % 2 for number in range(examples))
        archive.writestr("labels.npy", _npy(HEADER % f"({examples},)", labels))


def _sparse_npz(path: Path) -> None:
    """Write an archive whose last array is a hole of 3 GB, which takes no space on disk."""
    size = 3 * GIGABYTE
    header = _npy(HEADER % f"({size // 2**20}, 1024, 1024)", b"")
    labels = _npy(HEADER % f"({size // 2**20},)", bytes(number % 2 for number in range(size // 2**20)))
    _npz({"labels.npy": labels, "images.npy": header}, zipfile.ZIP_STORED)(path)
    data = path.read_bytes()
    start = data.index(b"PK\1\2")
    listed = bytearray(data[start:])
    struct.pack_into("<II", listed, listed.index(b"PK\1\2", 1) + 20, len(header) + size, len(header) + size)
    struct.pack_into("<I", listed, len(listed) - 6, start + size)
    with path.open("wb") as file:
        file.write(data[:start])
        file.seek(start + size)
        file.write(listed)


CIFAR_MEMBERS = {
    "cifar10": [f"cifar-10-batches-py/data_batch_{number}" for number in range(1, 6)]
    + ["cifar-10-batches-py/test_batch", "cifar-10-batches-py/batches.meta"],
    "cifar100": [f"cifar-100-python/{name}" for name in ("train", "test", "meta")],
}


def hostile_cifar(canary: Path, name: str) -> dict[str, Maker]:
    """Return makers of invalid or hostile CIFAR archives."""
    members = CIFAR_MEMBERS[name]
    code = pickle.dumps({b"data": _Code(canary), b"labels": [0]}, protocol=2)
    deep = b"\x80\x02" + b"(" * 100_000 + b"."
    return special_files() | {
        "has batches with code": _tar(dict.fromkeys(members, code)),
        "has batches nested too deep": _tar(dict.fromkeys(members, deep)),
        "has batches that ask for 10 GB": _tar(
            dict.fromkeys(members, b"\x80\x04\x8e" + struct.pack("<Q", 10 * GIGABYTE) + b".")
        ),
        "has members that lead out of it": _tar({f"{'../' * depth}{ESCAPED}": b"x" for depth in range(1, 5)}),
        "has links that lead out of it": lambda path: _tar_links(path, members),
        "unpacks to 3 GB": lambda path: _tar_bomb(path, members[0]),
        "is a pickle": _write(pickle.dumps(_Code(canary))),
        "is an archive and a terabyte of zeros": _sparse(gzip.compress(bytes(1024))),
    }


def _tar(members: dict[str, bytes]) -> Maker:
    def make(path: Path) -> None:
        with tarfile.open(path, "w:gz") as archive:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    return make


def _tar_links(path: Path, members: list[str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, "/dev/zero"
            archive.addfile(member)


def _tar_bomb(path: Path, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = 3 * GIGABYTE
    # A gzip file may consist of several compressed members, which are all identical here.
    path.write_bytes(gzip.compress(member.tobuf()) + 3 * 64 * gzip.compress(bytes(GIGABYTE // 64)))


def hostile_videos(canary: Path) -> dict[str, Maker]:
    """Return makers of files that are not videos."""
    playlist = f"#EXTM3U\n#EXTINF:1,\nfile://{canary}\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n"
    chance = random.Random(0)
    return special_files() | {
        "is a playlist": _write(playlist.encode()),
        "is a list of files": _write(b"ffconcat version 1.0\nfile '/etc/hostname'\nfile '/dev/zero'\n"),
        "is a pickle": _write(pickle.dumps(_Code(canary))),
        "is noise": _write(chance.randbytes(100_000)),
        "is a header alone": _write(b"RIFF\xff\xff\xff\x7fAVI LIST" + bytes(100)),
        "is a header and a terabyte of zeros": _sparse(b"RIFF\xff\xff\xff\x7fAVI LIST" + bytes(100)),
    }
