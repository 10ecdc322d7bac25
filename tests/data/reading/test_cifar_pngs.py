from __future__ import annotations

import pytest

pytest.importorskip("numpy")
pytest.importorskip("PIL")
from PIL import Image

from liere.data.reading import cifar_pngs
from liere.data.reading.cifar_pngs import PNG_FILES, PNG_FOLDER, read_pngs
from tests.data.archives import assert_same_examples, write_cifar_pngs


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_pixel_of_the_pngs_is_as_written(tmp_path, split):
    expected = write_cifar_pngs(tmp_path)
    assert_same_examples(read_pngs(tmp_path / PNG_FOLDER, split, 10, verify=False), expected[split])


@pytest.mark.parametrize("split", ["train", "test"])
def test_another_sum_of_a_png_is_reported(tmp_path, split):
    write_cifar_pngs(tmp_path)
    with pytest.raises(ValueError, match=r"is damaged: its SHA-256 checksum is not .*--data\.verify false"):
        read_pngs(tmp_path / PNG_FOLDER, split, 10, verify=True)


@pytest.mark.parametrize("file", ["data_batch_4.png", "train_lables.json"])
def test_a_missing_or_damaged_png_is_named(tmp_path, file):
    write_cifar_pngs(tmp_path)
    path = tmp_path / PNG_FOLDER / file
    for content in (path.read_bytes()[:-200], b"no such thing"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{file} is damaged"):
            read_pngs(tmp_path / PNG_FOLDER, "train", 10, verify=False)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"{file} is missing"):
        read_pngs(tmp_path / PNG_FOLDER, "train", 10, verify=False)


def test_pngs_without_a_label_each_are_reported(tmp_path):
    write_cifar_pngs(tmp_path)
    (tmp_path / PNG_FOLDER / "test_lables.json").write_text("[1, 2, 3]")
    with pytest.raises(ValueError, match="20 images but 3 labels"):
        read_pngs(tmp_path / PNG_FOLDER, "test", 10, verify=False)


@pytest.mark.parametrize("labels", ["[]", "[[1]]", "{}", "null", "[1e400]", "[10]", "[-1]", "[NaN]", "[" * 99_999])
def test_labels_of_the_pngs_must_be_classes(tmp_path, labels):
    write_cifar_pngs(tmp_path)
    (tmp_path / PNG_FOLDER / "test_lables.json").write_text(labels)
    with pytest.raises(ValueError, match=r"test_lables\.json is damaged"):
        read_pngs(tmp_path / PNG_FOLDER, "test", 10, verify=False)


@pytest.mark.parametrize("size", [(1024, 10_001), (20_000, 10_000), (1023, 10)])
def test_pngs_have_the_size_of_real_ones(tmp_path, size):
    Image.new("1", size).save(tmp_path / "file.png")
    with pytest.raises(
        (ValueError, Image.DecompressionBombError), match=r"pixels, not 1,024 x 10,000 at most|decompression bomb"
    ):
        cifar_pngs._read_rows((tmp_path / "file.png").read_bytes())


def test_files_of_both_splits_of_the_pngs_have_sums():
    assert [len(files) for files in PNG_FILES.values()] == [6, 2]
    assert all(len(sha256) == 64 for files in PNG_FILES.values() for sha256 in files.values())
