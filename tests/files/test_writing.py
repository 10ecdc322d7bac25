from __future__ import annotations

import errno
import os
import resource
import sys
from pathlib import Path

import pytest

from liere.files.writing import check_replaceable, is_system_error, prepare_folder, write_atomically


@pytest.fixture
def limit_of_files():
    """Limit files to 1,000 bytes, like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("content", ["Ä text\n", b"bytes\x00\xff", "", b""])
def test_a_file_is_written_and_replaced(tmp_path, content):
    file = tmp_path / "file"
    for before in (None, b"something longer that was there before"):
        if before is not None:
            file.write_bytes(before)
        write_atomically(file, content)
        assert file.read_bytes() == (content.encode() if isinstance(content, str) else content)
        assert list(tmp_path.iterdir()) == [file]


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / f".note.txt.{os.getpid()}.tmp").symlink_to(tmp_path / "mine")
    write_atomically(tmp_path / "note.txt", "new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "note.txt").read_text() == "new"
    assert not (tmp_path / "note.txt").is_symlink()


def test_a_name_that_is_no_utf_8_can_be_part_of_a_text(tmp_path):
    write_atomically(tmp_path / "file", os.fsdecode(b"of \xff\n"))
    assert (tmp_path / "file").read_bytes() == b"of \\udcff\n"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, limit_of_files):
    file = tmp_path / "file"
    write_atomically(file, b"old")
    with pytest.raises(OSError, match=rf"{file} could not be written \(File too large\): free some space") as raised:
        write_atomically(file, bytes(5_000))
    assert raised.value.__cause__ is not None
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_an_error_about_another_file_keeps_its_message(tmp_path):
    def confirm():
        raise OSError("the lock could not be written: free some space")

    with pytest.raises(OSError, match=r"^the lock could not be written: free some space$"):
        write_atomically(tmp_path / "file", "text", confirm)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_at_any_moment_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    file = tmp_path / "file"
    write_atomically(file, "old")

    def fail(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="Input/output error"):
            write_atomically(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_was_wrong_first_is_told_where_nothing_can_be_removed_either(tmp_path, monkeypatch):
    def fail(*_, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(os, "unlink", fail)
    with pytest.raises(OSError, match=r"file could not be written \(Read-only file system\): free some space"):
        write_atomically(tmp_path / "file", "new")


def test_the_new_content_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    file, calls = tmp_path / "file", []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (calls.append("fsync"), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda *names: (calls.append("replace"), replace(*names)))
    write_atomically(file, "new")
    assert calls[:2] == ["fsync", "replace"]
    if sys.platform == "linux":
        assert calls == ["fsync", "replace", "fsync"]  # and then the name


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(OSError, match=r"could not be written .*: create the folder"):
        write_atomically(tmp_path / "missing" / "file", "content")


def test_a_folder_is_made_and_tried(tmp_path):
    prepare_folder(tmp_path / "new" / "folder", "--out")
    prepare_folder(tmp_path / "new" / "folder", "--out")
    assert list((tmp_path / "new" / "folder").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (os.fsdecode(b"\xff"), r"--out '.*\\udcff' is not valid UTF-8 text: choose another name"),
        ("/".join(1_500 * "a"), "--out is nested in 1,5.. folders: use at most 200"),
    ],
)
def test_a_folder_with_an_invalid_name_is_refused(tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        prepare_folder(tmp_path / name, "--out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named_with_its_argument(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=f"--out {folder} cannot be written to .*: choose another folder"):
            prepare_folder(folder, "--out")


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name, kind in (
        ("pipe", "a device, pipe or socket"),
        ("link", "a device, pipe or socket"),
        ("folder", "a folder"),
    ):
        before = (tmp_path / name).lstat()
        with pytest.raises(OSError, match=rf"{name} could not be written \(it is {kind}, not a regular file\): choose"):
            write_atomically(tmp_path / name, "new")
        assert (tmp_path / name).lstat() == before
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(OSError, match=r"/dev/null could not be written \(it is a device"):
        check_replaceable(Path("/dev/null"))


def test_links_to_files_are_replaced_and_not_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    for target in ("mine", "missing", "link"):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(tmp_path / target)
        write_atomically(tmp_path / "link", "new")
        assert not (tmp_path / "link").is_symlink()
        assert (tmp_path / "link").read_text() == "new"
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EISDIR, errno.EOVERFLOW, None])
def test_what_damaged_contents_cause_is_no_trouble_of_the_system(number):
    error = ValueError("damaged") if number is None else OSError(number, os.strerror(number))
    assert not is_system_error(error)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOSPC, errno.ENOENT, errno.EDQUOT, errno.EMFILE])
def test_trouble_of_the_system_is_recognized(number):
    assert is_system_error(OSError(number, os.strerror(number)))
