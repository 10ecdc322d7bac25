"""Archives as torch writes them pass; archives in which torch and Python may find different members do not."""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from liere.files.reading import DamagedError
from liere.files.torch_archives import ALLOWANCE, END, LOCATOR, WIDE_END
from liere.files.torch_files import check_torch_file
from liere.files.weights import load_weights

PICKLE = pickle.dumps({"a": 0.5}, protocol=2)
LOCAL = b"PK\x03\x04"  # before each member


def written(path: Path, names: tuple[str, ...] = ("x/data.pkl", "x/version")) -> bytearray:
    """Write an archive with the given members, of which the first is the pickle; return its bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(zipfile.ZipInfo(name), PICKLE if number == 0 else b"3\n")
    return bytearray(path.read_bytes())


def listed(content: bytearray) -> int:
    """Return where the list of members starts."""
    return int(END.unpack(content[-END.size :])[6])


def widen(content: bytearray, **changes: int) -> bytearray:
    """Give an archive a 64-bit end of its list of members, as large ones have, with some fields changed."""
    end = list(END.unpack(content[-END.size :]))
    start = len(content) - END.size
    fields = {
        "count": end[3],
        "total": end[4],
        "size": end[5],
        "offset": end[6],
        "disk": 0,
        "place": start,
        "rest": 44,
    } | changes
    wide = WIDE_END.pack(
        b"PK\x06\x06",
        fields["rest"],
        *(45, 45),
        *(fields["disk"], 0),
        *(fields["count"], fields["total"], fields["size"], fields["offset"]),
    )
    locator = LOCATOR.pack(b"PK\x06\x07", 0, fields["place"], 1)
    narrow = END.pack(end[0], 0, 0, 2**16 - 1, 2**16 - 1, 2**32 - 1, 2**32 - 1, 0)
    return content[:start] + wide + locator + narrow


def lengthen(content: bytearray, size: int) -> bytearray:
    """Set both sizes of the first member, in the list of members."""
    return with_field(with_field(content, listed(content) + 20, "I", size), listed(content) + 24, "I", size)


def with_field(content: bytearray, place: int, kind: str, value: int) -> bytearray:
    """Return the bytes with a number in place."""
    struct.pack_into(f"<{kind}", content, place, value)
    return content


@pytest.mark.parametrize("name", ["w.pt", "größe.pt", "two words.v2.pt", "w"])
def test_archives_of_torch_pass(tmp_path: Path, name: str) -> None:
    """Whatever the name of the file, from which torch derives the names of the members."""
    weights = {f"layer.{number}": torch.randn(number, 3) for number in range(20)}
    torch.save(weights, tmp_path / name)
    check_torch_file(tmp_path / name)
    loaded = load_weights(tmp_path / name)
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[key], weights[key]) for key in weights)


def test_large_archives_have_a_wide_end(tmp_path: Path) -> None:
    """More members than 16 bits can count."""
    path = tmp_path / "w.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", PICKLE)
        for number in range(2**16):
            archive.writestr(f"x/data/{number}", b"")
    assert b"PK\x06\x06" in path.read_bytes()
    check_torch_file(path)


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (("x/data.pkl", "x/DATA.PKL"), "repeated names"),  # torch ignores case
        (("x/data.pkl", "x/data/0/"), "properties of 'x/data/0/'"),  # to torch, a folder without contents
        (("x/data.pkl", "x/größe"), "properties of 'x/größe'"),
    ],
)
def test_unusual_members_are_refused(tmp_path: Path, names: tuple[str, ...], what: str) -> None:
    """The message names the file and what is unusual."""
    written(tmp_path / "w.pt", names)
    with pytest.raises(DamagedError, match=rf"w\.pt is not laid out as by torch\.save \(.*{what}"):
        check_torch_file(tmp_path / "w.pt")


CHANGES: dict[str, tuple[Callable[[bytearray], bytes], str]] = {
    "bytes before the archive": (lambda content: LOCAL + content, "place of its list"),
    "a comment at the end": (lambda content: with_field(content, len(content) - 2, "H", 3) + b"abc", "end of its list"),
    "a member that is too long": (lambda content: lengthen(content, len(content) - 40), "overlaps"),
    "a list in another place": (
        lambda content: content[: listed(content)] + bytes(8) + content[listed(content) :],
        "place of its list",
    ),
    "another count on this disk": (lambda content: with_field(content, len(content) - 12, "H", 1), "place of its list"),
    "a second disk": (lambda content: with_field(content, len(content) - 18, "H", 1), "end of its list"),
    "fewer members": (lambda content: with_field(content, len(content) - 14, "H", 1), "place of its list"),
    "the bit of a folder": (lambda content: with_field(content, listed(content) + 38, "I", 0x10), "properties of"),
    "an encrypted member": (lambda content: with_field(content, listed(content) + 8, "H", 1), "properties of"),
    "another disk for a member": (lambda content: with_field(content, listed(content) + 34, "H", 1), "properties of"),
    "no header before a member": (
        lambda content: with_field(content, content.index(LOCAL, 4), "I", 0),
        "the header of",
    ),
    "a header that is too long": (lambda content: with_field(content, 28, "H", 60_000), "overlaps"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_unusual_layouts_are_refused(tmp_path: Path, change: str) -> None:
    """An archive with one such change is refused by both readers of weights and of checkpoints."""
    path = tmp_path / "w.pt"
    make, what = CHANGES[change]
    path.write_bytes(make(written(path)))
    for read in (check_torch_file, load_weights):
        with pytest.raises(DamagedError, match=rf"w\.pt is not laid out as by torch\.save \(.*{what}"):
            read(path)


def test_a_wide_end_must_agree_with_the_list(tmp_path: Path) -> None:
    """The same fields in 64 bits; a change of any of them is refused."""
    path = tmp_path / "w.pt"
    content = written(path)
    path.write_bytes(widen(content))
    check_torch_file(path)
    for name, value in {"count": 1, "total": 1, "size": 1, "offset": 1, "disk": 1, "place": 1, "rest": 60}.items():
        path.write_bytes(widen(content, **{name: value}))
        with pytest.raises((DamagedError, zipfile.BadZipFile)):
            check_torch_file(path)


def test_the_ends_in_32_and_64_bits_must_agree(tmp_path: Path) -> None:
    """Torch and Python might each believe another one."""
    path = tmp_path / "w.pt"
    content = widen(written(path))
    for place, kind in ((-14, "H"), (-12, "H"), (-10, "I"), (-6, "I")):
        path.write_bytes(with_field(content.copy(), len(content) + place, kind, 1))
        with pytest.raises((DamagedError, zipfile.BadZipFile)):
            check_torch_file(path)


@pytest.mark.parametrize("change", ["compressed", "with a comment", "with a field"])
def test_members_are_as_plain_as_those_of_torch(tmp_path: Path, change: str) -> None:
    """Each of them is stored as it is, with nothing but its name."""
    path, member = tmp_path / "w.pt", zipfile.ZipInfo("x/data.pkl")
    content = pickle.dumps(torch.randn(9).tolist(), protocol=2)
    if change == "compressed":
        member.compress_type = zipfile.ZIP_DEFLATED
    elif change == "with a comment":
        member.comment = b"comment"
    else:
        member.extra = struct.pack("<2H", 7, 0)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    assert path.stat().st_size > len(content)
    with pytest.raises(DamagedError, match="is compressed" if change == "compressed" else "properties of"):
        check_torch_file(path)


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    """One member inside of another would be read twice."""
    path = tmp_path / "w.pt"
    content = written(path, ("x/data.pkl", "x/version", "x/more"))
    second = content.index(b"PK\x01\x02", listed(content) + 1)
    third = content.index(b"PK\x01\x02", second + 1)
    first_size = struct.unpack_from("<I", content, second + 42)[0]
    path.write_bytes(with_field(content, third + 42, "I", first_size))
    with pytest.raises(DamagedError, match=r"overlaps|header"):
        check_torch_file(path)


def test_a_sparse_archive_takes_no_memory(tmp_path: Path) -> None:
    """An archive that claims more than is on the disk is refused before anything is read."""
    path, size = tmp_path / "w.pt", ALLOWANCE + 1
    content = written(path, ("x/data.pkl",))
    # The member is extended by a hole: its sizes in the list are changed, and the list is moved behind it.
    start = listed(content)
    list_and_end = bytearray(content[start:])
    for place in (20, 24):
        struct.pack_into("<I", list_and_end, place, size)
    struct.pack_into("<I", list_and_end, len(list_and_end) - 6, start + size)
    with path.open("wb") as file:
        file.write(content[:start])
        file.seek(start + size)
        file.write(list_and_end)
    assert 512 * path.stat().st_blocks < size
    with pytest.raises(DamagedError, match=r"has [\d,]+ bytes, but only [\d,]+ of them are on disk"):
        check_torch_file(path)


def test_programs_are_refused_without_a_warning_of_torch(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("x/data.pkl", "x/constants.pkl", "x/code/model.py"):
            archive.writestr(zipfile.ZipInfo(name), PICKLE)
    with pytest.raises(
        DamagedError, match=r"is a TorchScript archive, which contains code: save model.state_dict\(\)$"
    ):
        load_weights(path)
