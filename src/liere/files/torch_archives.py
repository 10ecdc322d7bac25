"""Check that an archive is laid out as `torch.save` does, so that Python and torch find the same members in it.

Python verifies checksums and sizes, but torch reads the archive with a parser of its own. In an unusual archive, the
two may find different lists of members, or torch may take a file for a folder and leave its tensor uninitialized.
"""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO

from liere.files.reading import DamagedError, check_stored

__all__ = ["ALLOWANCE", "UnusualFileError", "check_archive"]

END = struct.Struct("<4s4H2LH")  # end of the list of members
LOCATOR = struct.Struct("<4sLQL")  # where the 64-bit end of the list is
WIDE_END = struct.Struct("<4sQ2H2L4Q")
LOCAL = struct.Struct("<4s5H3L2H")  # header before the contents of a member
USED_FLAGS = 0x808  # sizes after the contents, names in UTF-8
WIDE_FIELD = 1  # of a list entry: sizes and offsets beyond 32 bits
ALLOWANCE = 256 * 2**20
"""Bytes that may be read from any file, however little of it is on disk; see `liere.files.reading`."""


class UnusualFileError(DamagedError):
    """A file that `torch.save` did not write, or not from tensors.

    Attributes:
        what: What is unusual about it, as the middle of a sentence that begins with its name.
    """

    def __init__(self, path: Path, what: str, remedy: str = "save it again with torch.save") -> None:
        super().__init__(f"{path} {what}: {remedy}")
        self.what = what


def check_archive(path: Path, file: BinaryIO, archive: zipfile.ZipFile) -> None:
    """Check an open archive.

    Raises:
        UnusualFileError: If it is laid out in any other way.
        DamagedError: If it is larger than what is on disk justifies.
    """
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    claimed = sum(member.file_size for member in members)
    size = os.fstat(file.fileno()).st_size
    if claimed > size:  # torch neither compresses nor repeats members
        raise UnusualFileError(path, f"has {size:,} bytes, but claims {claimed:,}")
    check_stored(path, file, ALLOWANCE)
    if any(member.filename.lower().endswith("/constants.pkl") for member in members):
        raise UnusualFileError(path, "is a TorchScript archive, which contains code", "save model.state_dict()")
    wrong = _wrong_end(file, len(members), archive.start_dir) or _wrong_members(file, members, archive.start_dir)
    if wrong is not None:
        raise UnusualFileError(path, f"is not laid out as by torch.save ({wrong})")


def _wrong_end(file: BinaryIO, count: int, start: int) -> str | None:
    """Return what is unusual about the end of the list of members, which must directly follow it; None for nothing."""
    file.seek(-END.size, os.SEEK_END)
    place = file.tell()
    signature, *disks, here, total, size, offset, comment = END.unpack(file.read(END.size))
    if signature != b"PK\x05\x06" or any(disks) or comment:
        return "the end of its list of members"
    file.seek(max(place - LOCATOR.size - WIDE_END.size, 0))
    wide = file.read(LOCATOR.size + WIDE_END.size)
    if wide[WIDE_END.size :].startswith(b"PK\x06\x07"):
        _, disk, place_of_wide, number_of_disks = LOCATOR.unpack(wide[WIDE_END.size :])
        place -= LOCATOR.size + WIDE_END.size
        signature, rest, _, _, *wide_disks, wide_here, wide_total, wide_size, wide_offset = WIDE_END.unpack(
            wide[: WIDE_END.size]
        )
        pairs = ((here, wide_here, 16), (total, wide_total, 16), (size, wide_size, 32), (offset, wide_offset, 32))
        agree = all(narrow in (wide, 2**bits - 1) for narrow, wide, bits in pairs)
        is_usual = signature == b"PK\x06\x06" and rest == WIDE_END.size - 12 and place_of_wide == place
        if not (agree and is_usual) or disk or any(wide_disks) or number_of_disks > 1:
            return "the 64-bit end of its list of members"
        here, total, size, offset = wide_here, wide_total, wide_size, wide_offset
    if here != total or total != count or offset != start or offset + size != place:
        return "the place of its list of members"
    return None


def _wrong_members(file: BinaryIO, members: list[zipfile.ZipInfo], start: int) -> str | None:
    """Return what is unusual about members, which must be plain files one after the other; None for nothing."""
    names = {member.filename.lower() for member in members}  # torch ignores case
    if len(names) < len(members):
        return "repeated names"
    ends = [member.header_offset for member in members[1:]] + [start]
    for number, (member, end) in enumerate(zip(members, ends, strict=True)):
        name = member.filename
        is_plain = name == member.orig_filename and name.isascii() and not name.endswith("/")
        is_file = not member.external_attr & 0xFFFF and not member.flag_bits & ~USED_FLAGS and not member.volume
        if not is_plain or not is_file or member.comment or _has_other_fields(member.extra):
            return f"the properties of {name!r}"
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            return f"{name!r} is compressed"
        if number == 0 and member.header_offset:
            return "something before its first member"
        file.seek(member.header_offset)
        header = file.read(LOCAL.size)
        if len(header) < LOCAL.size or not header.startswith(b"PK\x03\x04"):
            return f"the header of {name!r}"
        *_, length, more = LOCAL.unpack(header)
        if member.header_offset + LOCAL.size + length + more + member.file_size > end:
            return f"{name!r} overlaps another member"
    return None


def _has_other_fields(extra: bytes) -> bool:
    """Return whether additional fields of a list entry are anything but one with 64-bit sizes and offsets."""
    if not extra:
        return False
    kind, size = struct.unpack_from("<2H", extra) if len(extra) >= 4 else (0, 0)
    return kind != WIDE_FIELD or size != len(extra) - 4
