"""Torch files: those written by torch pass; those that would crash or block the process are rejected unread."""

from __future__ import annotations

import contextlib
import pickle
import resource
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from liere.files.reading import DamagedError
from liere.files.torch_files import check_torch_file
from liere.files.weights import load_weights
from liere.runs.checkpoints import CheckpointError, load_checkpoint

NESTED = b"\x80\x02})" + 200_000 * b"\x85" + b"K\x01s."
"""A dictionary whose key is a deeply nested tuple: hashing it crashes the process."""
DOUBLED = b"\x80\x02}K\x01" + b"".join(b"q%ch%c\x86" % (number, number) for number in range(64)) + b"K\x01s."
"""A dictionary whose key is a pair of twice the same pair, and so on: hashing it takes 2^64 steps."""


def lists(levels: int, uses: int) -> bytes:
    """Return a list in a list and so on; each contains the previous one several times, added after it was memorized."""
    memorize = [b"r" + number.to_bytes(4, "little") for number in range(levels)]
    added = [b"", *(uses * (b"j" + number.to_bytes(4, "little") + b"a") for number in range(levels - 1))]
    return b"\x80\x02" + b"".join(b"]" + one + other for one, other in zip(memorize, added, strict=True)) + b"."


def colliding(count: int) -> bytes:
    """Return a dictionary of integers that all have the same hash."""
    return pickle.dumps({number * (2**61 - 1): 0 for number in range(count)}, protocol=2)


HOSTILE = {
    "nested": NESTED,
    "doubled": DOUBLED,
    "colliding": colliding(50),
    "nested lists": lists(101, 1),
    "doubled lists": lists(30, 2),
}


def archive(path: Path, content: bytes, name: str = "data.pkl") -> Path:
    """Write an archive like torch's, with a given pickle."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"x/{name}", content)
        file.writestr("x/version", b"3\n")
    return path


@pytest.mark.parametrize("new", [True, False], ids=["archive", "before 1.6"])
def test_files_of_torch_pass(tmp_path: Path, new: bool) -> None:
    """Plain state dicts, and Lightning checkpoints with everything in them."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.randn(2, 3, 8)).sum().backward()
    optimizer.step()
    nested = OrderedDict(
        losses=[0.5] * 10_000,
        seed=2**64 - 1,
        shape=torch.Size((2, 3)),
        pairs={(1, "a"): (2, 3)},
        names={"a", 2},
        none=set(),
        one=1j,
    )
    content = {"state_dict": layer.state_dict(), "optimizer": optimizer.state_dict(), "more": [nested, nested]}
    torch.save(content, tmp_path / "w.pt", _use_new_zipfile_serialization=new)
    check_torch_file(tmp_path / "w.pt")
    weights = load_weights(tmp_path / "w.pt")
    assert weights.keys() == layer.state_dict().keys()


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["data.pkl", "DATA.PKL"])
def test_hostile_pickles_are_refused(tmp_path: Path, content: bytes, name: str) -> None:
    """Both readers reject them in an archive."""
    path = archive(tmp_path / "w.pt", content, name)
    with pytest.raises(DamagedError, match=r"w\.pt contains"):
        load_weights(path)
    with pytest.raises(CheckpointError, match=r"w\.pt"):
        load_checkpoint(path)


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pickles_before_an_archive_are_refused(tmp_path: Path, content: bytes) -> None:
    """Torch reads a file that does not start as an archive in the old format, even if an archive follows."""
    harmless = archive(tmp_path / "harmless.pt", pickle.dumps({}, protocol=2))
    path = tmp_path / "w.pt"
    start = b"".join(pickle.dumps(one, protocol=2) for one in (0x1950A86A20F9469CFC6C, 1001, {}))
    path.write_bytes(start + content + harmless.read_bytes())
    with pytest.raises(DamagedError, match=r"w\.pt contains"):
        load_weights(path)
    with pytest.raises(CheckpointError, match=r"w\.pt"):
        load_checkpoint(path)


FOREIGN = {
    "bytes": ("_codecs.encode", b"c_codecs\nencode\nX\x01\0\0\0aX\x06\0\0\0latin1\x86R"),
    "a byte array of 4 GB": ("builtins.bytearray", b"cbuiltins\nbytearray\n\x8a\x05\0\0\0\0\x01\x85R"),
    "a set": ("EMPTY_SET", b"\x8f"),
    "a module that is not imported": ("numpy.core.multiarray.scalar", b"cnumpy.core.multiarray\nscalar\n"),
    "a size of another size": ("a call", b"ctorch\nSize\nctorch\nSize\nK\x02\x85R\x85R"),
    "a counter of a number": ("a call", b"ccollections\nCounter\nK\x02\x85R"),
    "a set of tuples": ("a call", b"c__builtin__\nset\n]K\x01\x85a\x85R"),
    "a call of a tensor": ("a call", b"K\x02)R"),
    "the state of a number": ("BUILD of another object", b"K\x02}b"),
    "an item of a list": ("SETITEM of another object", b"]K\x00K\x01s"),
    "an element of a dictionary": ("APPEND of another object", b"}K\x01a"),
    "a reference to a string": ("references", b"X\x01\0\0\0aQ"),
    "a tuple of tuples of tuples as a key": ("keys", b"}K\x01\x85\x85\x85K\x01s"),
    "a type as a key": ("keys", b"}ctorch\nfloat32\nK\x01s"),
}
"""Objects that torch can read, or only seems to, but that are in no file of tensors."""


@pytest.mark.parametrize("kind", FOREIGN)
def test_only_what_files_of_tensors_contain_is_read(tmp_path: Path, kind: str) -> None:
    """Both formats are rejected before torch reads them."""
    what, content = FOREIGN[kind]
    path, pickled = tmp_path / "w.pt", b"\x80\x02" + content + b"."
    for write in (lambda: archive(path, pickled), lambda: path.write_bytes(pickled)):
        write()
        with pytest.raises(
            DamagedError, match=rf"w\.pt contains .*{what}.*: save plain tensors, as in model\.state_dict"
        ):
            check_torch_file(path)


def test_dictionaries_have_few_keys_that_are_tuples(tmp_path: Path) -> None:
    """The hashes of tuples can be made to collide, so that a dictionary of many takes hours to read."""
    path = tmp_path / "w.pt"
    for count, passes in ((1_000, True), (1_001, False)):
        torch.save({"pairs": {(number, "a"): 0 for number in range(count)}}, path)
        with contextlib.nullcontext() if passes else pytest.raises(DamagedError, match="keys that no file"):
            check_torch_file(path)


@pytest.mark.parametrize("tensor", [torch.ones(3, device="meta"), torch.eye(3).to_sparse()], ids=["meta", "sparse"])
def test_tensors_without_plain_memory_are_refused(tmp_path: Path, tensor: torch.Tensor) -> None:
    """No weights are stored like that."""
    torch.save({"weight": tensor}, tmp_path / "w.pt")
    with pytest.raises(DamagedError, match=r"w\.pt contains torch\._utils\._rebuild_"):
        check_torch_file(tmp_path / "w.pt")


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"\x80\x02.", b"\x80\x02a.", b"\x80\x02h\x07.", b"\x80\x02u."])
def test_broken_pickles_are_damage(tmp_path: Path, content: bytes) -> None:
    """The error is the same wherever the file is truncated, and names the file."""
    path = archive(tmp_path / "w.pt", content)
    with pytest.raises(ValueError, match=r"w\.pt is damaged"):
        load_weights(path)


@pytest.mark.parametrize("operation", [b"\x8d", b"\x8e", b"\x96", b"B", b"X", b"T", b"\x8b"])
@pytest.mark.parametrize("is_archive", [True, False], ids=["archive", "before 1.6"])
def test_what_a_pickle_claims_takes_no_memory(tmp_path: Path, operation: bytes, is_archive: bool) -> None:
    """A string that claims 2^46 bytes, or the maximum of its length field, but has three."""
    length = 2**46 if operation in b"\x8d\x8e\x96" else 2**31 - 1
    content = b"\x80\x05" + operation + length.to_bytes(8 if length > 2**32 else 4, "little") + b"abc"
    path = tmp_path / "w.pt"
    if is_archive:
        archive(path, content)
    else:
        path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"w\.pt is damaged"):
        load_weights(path)
    with pytest.raises(CheckpointError, match=r"w\.pt"):
        load_checkpoint(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100_000  # kilobytes


def test_other_files_are_named_as_such(tmp_path: Path) -> None:
    """A picture, or a file whose beginning is missing."""
    (tmp_path / "w.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(ValueError, match=r"w\.pt is not a file of torch: save it again with torch\.save"):
        load_weights(tmp_path / "w.pt")
    with pytest.raises(CheckpointError, match=r"w\.pt is damaged or not a checkpoint \(it is not a file of torch\)"):
        load_checkpoint(tmp_path / "w.pt")


def test_an_empty_file_is_damage(tmp_path: Path) -> None:
    """An empty file cannot be memory-mapped."""
    (tmp_path / "w.pt").touch()
    with pytest.raises(ValueError, match=r"w\.pt is empty"):
        load_weights(tmp_path / "w.pt")


def test_archives_hold_no_more_than_their_size(tmp_path: Path) -> None:
    """Torch does not compress, so a compressed member is rejected."""
    path, content = tmp_path / "w.pt", pickle.dumps(5_000 * "a", protocol=2)
    archive(path, content)
    check_torch_file(path)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(path, "w", method) as file:
            file.writestr("x/data.pkl", content)
        with pytest.raises(DamagedError, match=rf"w\.pt has [\d,]+ bytes, but claims {len(content):,}"):
            check_torch_file(path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(zipfile.BadZipFile):
        check_torch_file(path)
