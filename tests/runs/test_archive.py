from __future__ import annotations

import io
import lzma
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from liere.files.reading import DamagedError
from liere.runs import archive
from liere.runs.archive import SUFFIX, pack_files, read_archive, unpacked

FILES = {"config.yaml": b"model: {}\n", "predictions/final-test-32.csv": b"id,label\n", "result.json": b"{}"}


def tar_of(*members: tuple[str, bytes], **fields) -> bytes:
    """Return an archive with any members, as an attacker could write it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def write(folder: Path, content: bytes, name: str = "run") -> Path:
    (folder / f"{name}{SUFFIX}").write_bytes(content)
    return folder / f"{name}{SUFFIX}"


def test_what_is_packed_is_read_again(tmp_path):
    assert read_archive(write(tmp_path, pack_files(FILES))) == FILES


def test_the_same_files_give_the_same_bytes_in_any_order_at_any_time(monkeypatch):
    first = pack_files(FILES)
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert pack_files(dict(reversed(FILES.items()))) == first
    assert pack_files(FILES | {"result.json": b"[]"}) != first


class TestUnpacking:
    def test_a_folder_that_is_there_is_taken_as_it_is(self, tmp_path):
        write(tmp_path, pack_files(FILES))
        (tmp_path / "run").mkdir()
        assert unpacked(tmp_path / "run") == tmp_path / "run"
        assert unpacked(tmp_path / "none") == tmp_path / "none"

    def test_an_archive_is_unpacked_once_to_a_folder_of_its_name_elsewhere(self, tmp_path, monkeypatch):
        write(tmp_path, pack_files(FILES), "run-2.5")
        folder = unpacked(tmp_path / "run-2.5")
        assert folder.name == "run-2.5"
        assert not folder.is_relative_to(tmp_path)
        assert {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} == FILES.keys()
        assert (folder / "config.yaml").read_bytes() == FILES["config.yaml"]
        assert [path.name for path in tmp_path.iterdir()] == [f"run-2.5{SUFFIX}"]
        monkeypatch.setattr(archive, "read_archive", None)
        assert unpacked(tmp_path / "run-2.5") == folder

    def test_runs_of_one_folder_lie_beside_each_other_and_those_of_others_do_not(self, tmp_path):
        (tmp_path / "other").mkdir()
        for folder, name in ((tmp_path, "a"), (tmp_path, "b"), (tmp_path / "other", "a")):
            write(folder, pack_files(FILES), name)
        first, second, third = (unpacked(tmp_path / name) for name in ("a", "b", "other/a"))
        assert first.parent == second.parent != third.parent

    def test_an_archive_that_was_written_again_is_unpacked_again(self, tmp_path):
        write(tmp_path, pack_files(FILES))
        unpacked(tmp_path / "run")
        file = write(tmp_path, pack_files({"config.yaml": b"new"}))
        os.utime(file, ns=(1, 1))
        folder = unpacked(tmp_path / "run")
        assert [path.name for path in folder.iterdir()] == ["config.yaml"]
        assert (folder / "config.yaml").read_bytes() == b"new"

    def test_nothing_is_left_when_the_process_ends(self, tmp_path):
        write(tmp_path, pack_files(FILES))
        code = (
            "import sys, pathlib; from liere.runs.archive import unpacked; print(unpacked(pathlib.Path(sys.argv[1])))"
        )
        command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "run")]
        folder = Path(subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip())
        assert folder.name == "run"
        assert not folder.parent.exists()


class TestHostileArchives:
    """Malicious archives are rejected with one line that names the file, before memory is allocated."""

    @pytest.mark.parametrize(
        "name",
        [
            *(
                "../config.yaml",
                "/etc/passwd",
                "predictions/../../x",
                "predictions/..",
                "predictions/",
                "predictions/a/b",
                "predictions/a\x1b[2Jb",
            ),
            *("predictions", "final.safetensors", "predictions\\x", "predictions/c:x", "CONFIG.yaml", ""),
        ],
    )
    def test_only_files_of_a_run_are_taken(self, tmp_path, name):
        with pytest.raises(DamagedError, match=rf"run\{SUFFIX} is damaged \(.* is not a file of a run\): delete it"):
            read_archive(write(tmp_path, tar_of((name, b"x"))))
        with pytest.raises(ValueError, match="is not a file of a run"):
            pack_files({name: b"x"})

    def test_a_name_longer_than_file_systems_allow_is_damage(self, tmp_path):
        with pytest.raises(DamagedError, match=rf"run\{SUFFIX} is damaged \('predictions/xxx"):
            read_archive(write(tmp_path, tar_of(("predictions/" + 256 * "x", b"x"))))

    @pytest.mark.parametrize(
        "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
    )
    def test_only_regular_files_are_taken(self, tmp_path, kind):
        content = tar_of(("config.yaml", b""), type=kind, linkname="/etc/passwd")
        with pytest.raises(DamagedError, match=r"'config\.yaml' is not a regular file"):
            read_archive(write(tmp_path, content))

    def test_sparse_files_that_claim_any_size_are_not_taken(self, tmp_path):
        headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(10**15), "GNU.sparse.numblocks": "1"}
        content = tar_of(("config.yaml", b"x"), pax_headers=headers)
        with pytest.raises(DamagedError, match=r"'config\.yaml' is not a regular file"):
            read_archive(write(tmp_path, content))

    def test_a_file_that_is_there_twice_is_refused(self, tmp_path):
        with pytest.raises(DamagedError, match=r"'config\.yaml' is repeated"):
            read_archive(write(tmp_path, tar_of(("config.yaml", b"1"), ("config.yaml", b"2"))))

    def test_too_many_files_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
        files = [(f"predictions/{number}", b"") for number in range(4)]
        assert len(read_archive(write(tmp_path, tar_of(*files[:3])))) == 3
        with pytest.raises(DamagedError, match="more than 3 files"):
            read_archive(write(tmp_path, tar_of(*files)))

    def test_what_expands_beyond_its_size_is_not_read_to_the_end(self, tmp_path):
        file = write(tmp_path, tar_of(("metrics.csv", bytes(10**8))))
        assert file.stat().st_size < 10**5
        with pytest.raises(DamagedError, match=r"expands to more than 16,777,216 bytes, the limit for a run: delete"):
            read_archive(file)

    def test_a_hole_does_not_let_an_archive_grow(self, tmp_path):
        file = write(tmp_path, tar_of(("config.yaml", bytes(20 * 2**20))))
        os.truncate(file, 2 * 2**20)
        with pytest.raises(DamagedError, match="expands to more than"):
            read_archive(file)

    def test_a_decoder_that_wants_much_memory_is_refused(self, tmp_path):
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**29}]
        content = lzma.compress(lzma.decompress(pack_files(FILES)), filters=filters)
        with pytest.raises(DamagedError, match="is damaged"):
            read_archive(write(tmp_path, content))

    @pytest.mark.parametrize(
        "content", [b"", b"text", pack_files(FILES)[:-30], pack_files(FILES)[:100], lzma.compress(b"no tar" * 200)]
    )
    def test_damage_is_named(self, tmp_path, content):
        with pytest.raises(DamagedError, match=rf"run\{SUFFIX} is damaged \("):
            read_archive(write(tmp_path, content))

    def test_any_changed_byte_is_noticed_or_without_effect(self, tmp_path):
        content = pack_files(FILES)
        for place in range(0, len(content), 5):
            changed = bytearray(content)
            changed[place] ^= 0x41
            try:
                assert read_archive(write(tmp_path, bytes(changed))) == FILES
            except DamagedError:
                continue

    def test_pipes_are_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / f"run{SUFFIX}")
        with pytest.raises(DamagedError, match="is a named pipe"):
            unpacked(tmp_path / "run")
        with pytest.raises(FileNotFoundError):
            read_archive(tmp_path / "none")
