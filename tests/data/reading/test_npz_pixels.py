from __future__ import annotations

import pytest
import torch

pytest.importorskip("numpy")
import numpy as np

from liere.data.reading import npz_pixels
from liere.data.reading.npz_arrays import read_npz
from tests.data.npz_files import noise, save, three_splits


class TestAxes:
    @pytest.mark.parametrize(
        ("kind", "shape", "channels", "size"),
        [
            ("images", (5, 6), 1, (5, 6)),
            ("images", (5, 6, 1), 1, (5, 6)),
            ("images", (5, 6, 4), 4, (5, 6)),
            ("images", (2, 6, 3), 3, (2, 6)),
            ("images", (5, 6, 7), 1, (5, 6, 7)),
            ("images", (5, 6, 7, 2), 2, (5, 6, 7)),
            ("volumes", (5, 6, 7), 1, (5, 6, 7)),
            ("volumes", (5, 6, 3), 1, (5, 6, 3)),
            ("volumes", (2, 6, 7), 1, (2, 6, 7)),
            ("volumes", (5, 6, 7, 2), 2, (5, 6, 7)),
            ("videos", (3, 6, 7), 1, (3, 6, 7)),
            ("videos", (3, 6, 7, 3), 3, (3, 6, 7)),
        ],
    )
    def test_channels_come_first_and_every_pixel_is_kept(self, tmp_path, kind, shape, channels, size):
        arrays = three_splits(shape, kind)
        data = read_npz(save(tmp_path / "file.npz", **arrays))
        images = data.splits["train"][0]
        assert images.shape == (6, channels, *size)
        assert (data.facts.channels, data.facts.image_size) == (channels, size)
        given_ = arrays[f"train_{kind}"].reshape(6, *size, channels)
        for channel in range(channels):
            assert np.array_equal(images[:, channel].numpy(), given_[..., channel])

    @pytest.mark.parametrize(
        ("kind", "shape", "message"),
        [
            ("images", (5,), r"train_images must be \[examples, height, width\].*got shape \(6, 5\)"),
            ("images", (3, 8, 9), r"shape \(6, 3, 8, 9\): put channels last with np.moveaxis.*'volumes'.* 3 slices"),
            ("images", (1, 8, 9), "put channels last"),
            ("images", (8, 8, 8, 8), "at most 4 channels"),
            ("volumes", (8, 8), r"\[examples, depth, height, width\]"),
            ("volumes", (1, 8, 8, 8), "at most 4 channels"),
            ("videos", (8, 8), r"\[examples, frames, height, width\]"),
            ("images", (0, 8), "with an empty axis"),
        ],
    )
    def test_other_shapes_are_reported(self, tmp_path, kind, shape, message):
        with pytest.raises(ValueError, match=message):
            read_npz(save(tmp_path / "file.npz", **three_splits(shape, kind)))


class TestPixels:
    def test_bytes_stay_as_they_are(self, tmp_path):
        assert read_npz(save(tmp_path / "file.npz", **three_splits())).splits["train"][0].dtype == torch.uint8

    def test_bools_become_black_and_white(self, tmp_path):
        arrays = three_splits()
        masks = {key: value > 99 if key.endswith("images") else value for key, value in arrays.items()}
        images = read_npz(save(tmp_path / "file.npz", **masks)).splits["train"][0]
        assert images.dtype == torch.uint8
        assert np.array_equal(images[:, 0].numpy(), np.where(arrays["train_images"] > 99, 255, 0))

    @pytest.mark.parametrize(
        "dtype", ["int8", "int16", "uint16", "int64", "float16", "float32", "float64", ">f4", ">i2"]
    )
    def test_other_numbers_become_float32(self, tmp_path, dtype):
        arrays = three_splits(dtype=np.dtype(dtype))
        images = read_npz(save(tmp_path / "file.npz", **arrays)).splits["train"][0]
        assert images.dtype == torch.float32
        assert np.array_equal(images[:, 0].numpy(), arrays["train_images"].astype(np.float32))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    def test_what_is_not_finite_is_reported_with_the_number_of_examples(self, tmp_path, value):
        arrays = three_splits(dtype=np.float64)
        arrays["train_images"][[1, 4, 4], [0, 1, 2], 3] = value
        with pytest.raises(ValueError, match="train_images has NaN or infinity in 2 of 6 examples"):
            read_npz(save(tmp_path / "file.npz", **arrays))

    @pytest.mark.parametrize("dtype", ["complex64", "U3", "datetime64[s]"])
    def test_what_is_no_number_is_reported(self, tmp_path, dtype):
        with pytest.raises(ValueError, match="train_images must contain numbers, got"):
            read_npz(save(tmp_path / "file.npz", **three_splits(dtype=np.dtype(dtype))))


class TestStatistics:
    @pytest.mark.parametrize("dtype", [np.uint8, np.float32])
    def test_mean_and_deviation_are_those_of_the_training_split(self, tmp_path, dtype):
        arrays = three_splits((4, 5, 3), dtype=dtype)
        facts = read_npz(save(tmp_path / "file.npz", **arrays)).facts
        pixels = arrays["train_images"].astype(np.float64) / (255 if dtype == np.uint8 else 1)
        assert facts.mean == pytest.approx(pixels.mean((0, 1, 2)), rel=1e-12)
        assert facts.std == pytest.approx(pixels.std((0, 1, 2)), rel=1e-12)

    @pytest.mark.parametrize("value", [np.uint8(0), np.uint8(100), np.float32(0.1)])
    def test_a_channel_that_is_constant_does_not_blow_up(self, tmp_path, value):
        arrays = three_splits()
        for key in arrays:
            if key.endswith("images"):
                arrays[key] = np.full(arrays[key].shape, value)
        assert read_npz(save(tmp_path / "file.npz", **arrays)).facts.std == (1.0,)

    def test_levels_are_counted_in_parts(self, monkeypatch):
        images = noise(7, 3, 5, 5)
        whole = npz_pixels.statistics(images)
        monkeypatch.setattr(npz_pixels, "COUNTED_AT_ONCE", 60)
        assert npz_pixels.statistics(images) == whole
