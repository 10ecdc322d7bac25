"""Hostile archives: `.npz` files, and those of CIFAR."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

from tools.attacks.hostile import ESCAPED, Code, Maker, sparse, special_files, write

__all__ = ["hostile_cifar", "hostile_npz"]

HEADER = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }"
GIGABYTE = 2**30


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
            "has objects with code": _npz({"images.npy": objects + pickle.dumps(Code(canary)), "labels.npy": b""}),
            "is a pickle": write(pickle.dumps(Code(canary))),
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
    code = pickle.dumps({b"data": Code(canary), b"labels": [0]}, protocol=2)
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
        "is a pickle": write(pickle.dumps(Code(canary))),
        "is an archive and a terabyte of zeros": sparse(gzip.compress(bytes(1024))),
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
