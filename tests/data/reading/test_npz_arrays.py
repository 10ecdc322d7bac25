from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

pytest.importorskip("numpy")
import numpy as np

from liere.data.reading.npz_arrays import read_npz
from tests.data.npz_files import save, three_splits


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_files_are_read_compressed_or_not(tmp_path, write):
    write(tmp_path / "file.npz", **three_splits())
    assert len(read_npz(tmp_path / "file.npz").splits["train"][0]) == 6


class TestCache:
    def test_a_file_that_changed_is_read_again(self, tmp_path):
        file = save(tmp_path / "file.npz", **three_splits())
        before = read_npz(file).splits["train"][0].clone()
        time = file.stat().st_mtime_ns
        arrays = three_splits()
        arrays["train_images"] = 255 - arrays["train_images"]
        os.utime(save(file, **arrays), ns=(time + 1_000_000, time + 1_000_000))
        assert torch.equal(read_npz(file).splits["train"][0], 255 - before)

    def test_a_relative_path_is_of_the_folder_one_is_in(self, tmp_path, monkeypatch):
        for name, shape in (("one", (4, 4)), ("two", (6, 6))):
            file = save(tmp_path / name / "file.npz", **three_splits(shape))
            os.utime(file, ns=(0, 0))
            monkeypatch.chdir(tmp_path / name)
            assert read_npz(Path("file.npz")).facts.image_size == shape


def test_it_does_not_depend_on_how_arrays_are_packed(tmp_path):
    arrays = {"images": np.arange(20 * 16, dtype=np.uint8).reshape(20, 4, 4), "labels": np.arange(20) % 2}
    np.savez(tmp_path / "one.npz", **arrays)
    np.savez_compressed(tmp_path / "other.npz", **arrays)
    assert read_npz(tmp_path / "one.npz").sha256 == read_npz(tmp_path / "other.npz").sha256
    arrays["images"][3, 2, 1] ^= 1
    np.savez(tmp_path / "changed.npz", **arrays)
    assert read_npz(tmp_path / "changed.npz").sha256 != read_npz(tmp_path / "one.npz").sha256
