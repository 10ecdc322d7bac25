from __future__ import annotations

import errno
import gzip
import io
import json
import os
import tracemalloc

import pytest

from liere.files import reading
from liere.files.reading import DamagedError, open_regular, read_bytes, read_gzip, read_json, stored_bytes, warn_once
from tests.sparse_files import BLOCK, make_sparse


@pytest.fixture
def strange_files(tmp_path):
    """Paths that exist but are not regular files."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    return [tmp_path / "pipe", tmp_path / "folder", tmp_path / "link", reading.Path("/dev/zero")]


@pytest.mark.parametrize(
    "read", [open_regular, lambda path: read_bytes(path, 10), lambda path: read_gzip(path, 10), read_json]
)
def test_only_regular_files_are_read_and_nothing_is_waited_for(strange_files, tmp_path, read):
    for path in strange_files:
        with pytest.raises(DamagedError, match=f"{path} is a .*, not a regular file: replace it"):
            read(path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(reading, "check_regular", lambda path: None)
    with pytest.raises(DamagedError, match="is a named pipe"):
        open_regular(tmp_path / "pipe")


def test_a_file_without_anything_to_read_yet_is_empty(tmp_path, monkeypatch):
    class Waiting(io.FileIO):
        def read(self, size: int = -1) -> None:
            return None

    (tmp_path / "kmsg").touch()
    monkeypatch.setattr("liere.files.reading.open_regular", lambda path: Waiting(path))
    assert read_bytes(tmp_path / "kmsg", 10) == b""


def test_more_bytes_than_allowed_are_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(10))
    assert read_bytes(file, 10) == bytes(10)
    with pytest.raises(DamagedError, match="file has 10 bytes, but at most 9 are read"):
        read_bytes(file, 9)


def test_gzip_may_grow_with_the_size_of_the_file(tmp_path):
    file = tmp_path / "file.gz"
    content = os.urandom(50_000)
    file.write_bytes(gzip.compress(content))
    assert read_gzip(file, allowance=10) == content
    file.write_bytes(gzip.compress(bytes(50_000)))
    assert read_gzip(file, allowance=50_000) == bytes(50_000)
    with pytest.raises(DamagedError, match=r"file\.gz expands to more than [\d,]+ bytes: if that is intended"):
        read_gzip(file, allowance=10)


def test_no_more_of_a_gzip_is_unpacked_than_allowed(tmp_path):
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(bytes(20_000_000), 1))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="expands to more than 1,000,000 bytes"):
            read_gzip(file, allowance=1_000, most=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_holes_do_not_count(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"start" + bytes(3 * BLOCK) + b"end" + bytes(5 * BLOCK))
    with open_regular(file) as stream:
        assert stored_bytes(stream) == 8 * BLOCK + 8  # zeros that were written do count
    make_sparse(file)
    with open_regular(file) as stream:
        assert stream.read(3) == b"sta"
        assert 0 < stored_bytes(stream) <= 2 * BLOCK
        assert stream.read(2) == b"rt"  # the place in the file is the same
    os.truncate(file, 0)
    os.truncate(file, 10**9)
    with open_regular(file) as stream:
        assert stored_bytes(stream) == 0


def test_all_bytes_count_where_holes_are_not_reported(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 1_000)
    lseek = os.lseek

    def without_holes(descriptor, place, how):
        if how in (os.SEEK_DATA, os.SEEK_HOLE):
            raise OSError(errno.EINVAL, "Invalid argument")
        return lseek(descriptor, place, how)

    with open_regular(tmp_path / "file") as stream:
        assert stored_bytes(stream) == 0
        monkeypatch.setattr(os, "lseek", without_holes)
        assert stored_bytes(stream) == 1_000
        monkeypatch.delattr(os, "SEEK_DATA")
        assert stored_bytes(stream) == 1_000


def test_a_hole_does_not_let_a_gzip_grow(tmp_path):
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(bytes(10_000_000)))
    os.truncate(file, 10_000_000)
    with pytest.raises(DamagedError, match="expands to more than"):
        read_gzip(file, allowance=10)


def test_zeros_without_end_after_a_gzip_are_not_read(tmp_path):
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(b"text"))
    os.truncate(file, 10**12)  # sparse: takes no space on disk
    with pytest.raises(DamagedError, match=r"file\.gz has 1,000,000,000,000 bytes, but at most 1,000 are read"):
        read_gzip(file, allowance=10, most=1_000)


@pytest.mark.parametrize(
    "content",
    [b"", b"text", gzip.compress(b"cut", mtime=0)[:-3], gzip.compress(bytes(100), mtime=0)[:10] + b"\xff" * 20],
)
def test_a_damaged_gzip_is_named(tmp_path, content):
    (tmp_path / "file.gz").write_bytes(content)
    if content:
        with pytest.raises(DamagedError, match=r"file\.gz is damaged \("):
            read_gzip(tmp_path / "file.gz", 1_000)


def test_json_is_read_with_and_without_a_mark_at_its_start(tmp_path):
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "file").write_bytes(mark + b'{"\xc3\xa4": [1, 2.5, null]}')
        assert read_json(tmp_path / "file") == {"ä": [1, 2.5, None]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property"),
        (b"\x00", "Expecting value"),
        (b'"\xff"', "utf-8"),
        ("{}".encode("utf-16"), "utf-8"),
        (b"1" * 10_000, "digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "duplicate field 'a'"),
        (b'[{"b": {"c": 1, "c": 1}}]', "duplicate field 'c'"),
    ],
)
def test_damaged_json_is_told_in_a_line(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DamagedError, match=rf"file is damaged \(.*{message}") as raised:
        read_json(tmp_path / "file")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_json_has_a_limit(tmp_path):
    (tmp_path / "file").write_text(json.dumps("x" * 100))
    with pytest.raises(DamagedError, match="has 102 bytes, but at most 50 are read"):
        read_json(tmp_path / "file", 50)


def test_a_warning_is_given_once(capsys):
    for _ in range(3):
        warn_once("something is odd")
    assert capsys.readouterr().err == "liere: warning: something is odd\n"
