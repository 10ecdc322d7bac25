"""Writing to a full disk leaves the old file or none, never a broken one."""

from __future__ import annotations

import errno
import os

import pytest

pytest.importorskip("matplotlib")
from liere.bench.record import write_record
from liere.cli import main
from liere.report.drawing import canvas


@pytest.fixture
def full_disk(monkeypatch):
    """Make every flush to disk fail."""

    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


def draw(path):
    with canvas(path, 1, 1, cell=(1, 1)) as (_, axes):
        axes[0, 0].plot([1, 2])


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("a.pdf", b"%PDF"), ("a", b"\x89PNG")]
)
def test_the_kind_of_a_picture_follows_its_name(tmp_path, name, start):
    draw(tmp_path / "new" / name)
    assert (tmp_path / "new" / name).read_bytes().startswith(start)
    assert len(list((tmp_path / "new").iterdir())) == 1


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_full_disk_leaves_no_broken_picture(tmp_path, full_disk, old):
    file = tmp_path / "a.png"
    if old is not None:
        file.write_bytes(old)
    with pytest.raises(OSError, match=r"a\.png could not be written \(No space left on device\): free some space"):
        draw(file)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if old is None else [old])


def test_a_full_disk_leaves_no_broken_record(tmp_path, full_disk):
    with pytest.raises(OSError, match="No space left"):
        write_record({"question": "step"}, tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "data preview spatial --count 1 --size 108 --out sheet.png",
        "inspect vit_tiny --depth 1 --image-size 8 --out inspection",
    ],
)
def test_commands_leave_nothing_broken_behind(tmp_path, monkeypatch, capsys, full_disk, command):
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    assert "No space left on device" in capsys.readouterr().err.splitlines()[-1]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
