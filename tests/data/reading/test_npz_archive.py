from __future__ import annotations

import io
import os
import zipfile

import pytest

pytest.importorskip("numpy")
import numpy as np

from liere.data.reading import npz_archive
from liere.data.reading.npz_arrays import read_npz
from tests.data.npz_files import PLAIN, noise, save
from tests.sparse_files import make_sparse


class TestBadFiles:
    @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.99])
    def test_a_truncated_file_is_reported(self, tmp_path, share):
        file = save(tmp_path / "file.npz", **PLAIN)
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=r"file\.npz is damaged or not a \.npz file \(.*\): write it again"):
            read_npz(file)

    @pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("place", range(20, 700, 40))
    def test_wrong_bytes_are_reported_in_a_line(self, tmp_path, write, place):
        write(tmp_path / "file.npz", **PLAIN)
        content = bytearray((tmp_path / "file.npz").read_bytes())
        content[place : place + 30] = bytes(byte ^ 0x5A for byte in content[place : place + 30])
        (tmp_path / "file.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"file\.npz") as raised:
            read_npz(tmp_path / "file.npz")
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize("content", [b"", b"text", b"\x80\x04N.", b"PK\x03\x04", b"\x93NUMP"])
    def test_another_file_is_reported(self, tmp_path, content):
        (tmp_path / "file.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"is damaged or not a \.npz file"):
            read_npz(tmp_path / "file.npz")

    def test_a_single_array_is_reported(self, tmp_path):
        np.save(tmp_path / "file.npy", PLAIN["images"])
        with pytest.raises(ValueError, match="contains a single array: write images and labels to one file"):
            read_npz(tmp_path / "file.npy")

    def test_a_zip_of_other_things_is_reported(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
            archive.writestr("images", b"raw")
            archive.writestr("labels", b"raw")
        with pytest.raises(ValueError, match=r"is damaged or not a \.npz file \(.*magic string"):
            read_npz(tmp_path / "file.npz")

    def test_nothing_is_unpickled(self, tmp_path):
        class Wicked:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "executed"),)

        save(tmp_path / "file.npz", images=np.array([Wicked()] * 3, dtype=object), labels=np.arange(3))
        with pytest.raises(ValueError, match="images contains Python objects"):
            read_npz(tmp_path / "file.npz")
        assert not (tmp_path / "executed").exists()

    @pytest.mark.parametrize("dtype", ["<U1", ">U1"])
    def test_text_of_impossible_characters_is_reported(self, tmp_path, dtype):
        labels = np.full(60, 0x7FFFFFFF, dtype.replace("U1", "u4")).view(dtype)
        file = write_zip(tmp_path / "file.npz", images=array(noise(60, 4, 4)), labels=array(labels))
        with pytest.raises(ValueError, match=r"file\.npz is damaged .* \(labels contains invalid characters\)"):
            read_npz(file)

    def test_images_of_several_shapes_are_reported(self, tmp_path):
        ragged = np.empty(2, dtype=object)
        ragged[:] = [np.zeros((2, 2)), np.zeros((3, 3))]
        with pytest.raises(ValueError, match="give all examples the same shape"):
            read_npz(save(tmp_path / "file.npz", images=ragged, labels=np.arange(2)))


def test_the_header_of_an_array_cannot_ask_for_more_than_there_is(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)})
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue())
        archive.writestr("labels.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"is damaged or not a \.npz file"):
        read_npz(tmp_path / "file.npz")


def test_a_header_that_is_too_much_for_pythons_parser_is_not_a_lack_of_memory(tmp_path):
    text = b"-" * 9_000 + b"1\n"
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.writestr("images.npy", b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(ValueError, match=r"file\.npz is damaged"):
        read_npz(tmp_path / "file.npz")


def header(shape, dtype: str) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def array(values) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def write_zip(path, method=zipfile.ZIP_DEFLATED, **contents: bytes):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return path


class TestMemory:
    """A small file cannot take much memory, whatever it claims or expands to."""

    @pytest.fixture(autouse=True)
    def allowance(self, monkeypatch):
        monkeypatch.setattr(npz_archive, "ALLOWANCE", 400_000)

    def refuse(self, file, message=r"would need [\d,]+ bytes of memory, more than the 400,000 allowed .* np\.savez "):
        with pytest.raises(ValueError, match=message):
            read_npz(file)

    def test_what_expands_is_refused_before_it_is_unpacked(self, tmp_path, monkeypatch):
        np.savez_compressed(tmp_path / "file.npz", images=np.zeros((30, 200, 200), np.uint8), labels=PLAIN["labels"])
        monkeypatch.delattr(np.lib.format, "read_array")
        self.refuse(tmp_path / "file.npz")

    def test_it_may_be_as_large_as_the_file_is(self, tmp_path):
        images = noise(30, 200, 200)
        file = save(tmp_path / "file.npz", images=images, labels=PLAIN["labels"])
        assert read_npz(file).facts.image_size == (200, 200)
        np.savez_compressed(file, images=images // 16, labels=PLAIN["labels"])
        assert read_npz(file).facts.image_size == (200, 200)

    def test_holes_do_not_count(self, tmp_path):
        file = save(tmp_path / "file.npz", images=np.zeros((30, 600, 600), np.uint8), labels=PLAIN["labels"])
        assert read_npz(file).facts.image_size == (600, 600)
        self.refuse(make_sparse(file), r"would need [\d,]+ bytes of memory, more than the [\d,]+ allowed .* on disk")

    def test_pixels_count_as_they_are_kept(self, tmp_path):
        images = np.zeros((30, 60, 60))
        np.savez_compressed(tmp_path / "bytes.npz", images=images.astype(np.uint8), labels=PLAIN["labels"])
        assert read_npz(tmp_path / "bytes.npz").facts.image_size == (60, 60)
        np.savez_compressed(tmp_path / "short.npz", images=images.astype(np.int8), labels=PLAIN["labels"])
        self.refuse(tmp_path / "short.npz")

    @pytest.mark.parametrize("name", ["images", "labels", "classes"])
    def test_many_tiny_examples_count_too(self, tmp_path, name):
        arrays = PLAIN | {name: np.zeros((5_000, 1, 1) if name == "images" else 5_000, np.uint8)}
        np.savez_compressed(tmp_path / "file.npz", **arrays)
        self.refuse(tmp_path / "file.npz")

    def test_arrays_that_are_not_read_do_not_count(self, tmp_path):
        np.savez_compressed(tmp_path / "file.npz", **PLAIN, masks=np.zeros(10**7))
        assert read_npz(tmp_path / "file.npz").facts.image_size == (4, 4)

    @pytest.mark.parametrize(
        ("shape", "dtype"),
        [((10**9, 10**9), "|u1"), ((-30, 4, 4), "|u1"), ((10**18,), "<U0"), ((30, 4, 4), "|V2000000000"), ((), "<f8")],
    )
    def test_claims_are_not_believed(self, tmp_path, shape, dtype):
        file = write_zip(tmp_path / "file.npz", images=header(shape, dtype) + bytes(480), labels=header((30,), "|u1"))
        self.refuse(file, "would need|is damaged")

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_ways_to_compress_that_expand_without_bounds_are_refused(self, tmp_path, method):
        images = header((30, 4, 4), "|u1") + bytes(480)
        self.refuse(write_zip(tmp_path / "file.npz", method, images=images, labels=images), "numpy does not use")
