from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data.arrays import ArrayData, resize
from liere.data.augmentation import Augmentation
from liere.data.facts import DataFacts

FACTS = DataFacts(("a", "b"), 2, (6, 5), (0.5,) * 2, (0.5,) * 2)


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def make_data(**options) -> ArrayData:
    return ArrayData(noise(9, 2, 6, 5), torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 1]), FACTS, **options)


class TestExamples:
    def test_a_batch_is_the_images_and_labels_asked_for(self):
        data = make_data()
        ids, images, labels = data.load([7, 0, 7])
        assert ids.tolist() == [7, 0, 7]
        assert torch.equal(images, data.images[[7, 0, 7]])
        assert labels.tolist() == [1, 0, 1]
        assert len(data) == 9
        assert data.facts is FACTS

    def test_items_and_batches_are_the_same(self):
        data = make_data()
        images, labels = data.batch(torch.tensor([3, 4]))
        assert torch.equal(data[3][0], images[0])
        assert (data[3][1], data[4][1]) == (0, 1) == tuple(labels.tolist())

    def test_it_is_not_changed_by_what_is_done_to_a_batch(self):
        data = make_data()
        before = data.images.clone()
        data.load([0, 1])[1].zero_()
        assert torch.equal(data.images, before)

    def test_an_example_too_many_is_an_error(self):
        with pytest.raises(IndexError):
            make_data().batch([9])

    def test_lengths_that_differ_are_reported(self):
        with pytest.raises(ValueError, match="got 3 images and 2 labels"):
            ArrayData(noise(3, 2, 6, 5), torch.tensor([0, 1]), FACTS)

    def test_only_examples_with_random_bits_are_changed(self):
        data = make_data(augmentation=Augmentation(padding=2, flip=True))
        words = torch.arange(9) * 7919
        assert torch.equal(data.load(range(9))[1], data.images)
        assert torch.equal(data.batch(range(9))[0], data.images)
        assert torch.equal(data.load(range(9), words)[1], data.augmentation(data.images, words))
        assert not torch.equal(data.load(range(9), words)[1], data.images)

    def test_they_are_changed_before_they_are_resized(self):
        augmentation = Augmentation(padding=2, flip=True)
        large = DataFacts(("a", "b"), 2, (12, 10), (0.5,) * 2, (0.5,) * 2)
        data = ArrayData(noise(4, 2, 6, 5), torch.tensor([0, 1, 0, 1]), large, augmentation)
        words = torch.tensor([3, 1, 4, 1])
        assert torch.equal(data.load(range(4), words)[1], resize(augmentation(data.images, words), (12, 10)))


def interpolated(image: torch.Tensor, size: tuple[int, ...]) -> torch.Tensor:
    """Interpolate linearly along one axis after the other, one number at a time, without antialiasing."""
    for axis, (old, new) in enumerate(zip(image.shape, size, strict=True)):
        slices = []
        for place in range(new):
            at = min(max((place + 0.5) * old / new - 0.5, 0), old - 1)
            low = int(at)
            high, share = min(low + 1, old - 1), at - low
            slices.append((1 - share) * image.select(axis, low) + share * image.select(axis, high))
        image = torch.stack(slices, dim=axis)
    return image


class TestResizing:
    @given(height=st.integers(1, 6), width=st.integers(1, 6), factors=st.tuples(st.integers(1, 3), st.integers(1, 3)))
    def test_larger_images_are_interpolated(self, height, width, factors):
        images = noise(2, 3, height, width).double()
        size = (height * factors[0], width * factors[1])
        found = resize(images, size)
        for image, expected in zip(found.flatten(0, 1), images.flatten(0, 1), strict=True):
            assert torch.allclose(image.double(), interpolated(expected, size), atol=1e-3)

    def test_volumes_are_interpolated_on_every_axis(self):
        images = noise(2, 1, 3, 4, 5)
        found = resize(images, (6, 5, 9))
        assert found.dtype == torch.uint8
        for image, expected in zip(found, images, strict=True):
            assert (image[0].double() - interpolated(expected[0].double(), (6, 5, 9))).abs().max() <= 0.501

    def test_smaller_flat_images_are_averages(self):
        images = noise(3, 3, 32, 32)
        small = resize(images, (4, 4))
        # Antialiasing filters with a triangle two new pixels wide: noise becomes gray, not other noise.
        assert small.dtype == torch.uint8
        assert small.float().std() < 0.25 * images.float().std()

    def test_the_same_size_is_the_same_image(self):
        images = noise(2, 3, 4, 5)
        assert resize(images, (4, 5)) is images

    def test_bytes_do_not_overflow(self):
        images = torch.tensor([[[[0, 255], [255, 0]]]], dtype=torch.uint8)
        large = resize(images, (16, 16))
        assert (int(large.min()), int(large.max())) == (0, 255)
        assert torch.equal(large[0, 0, 0, [0, -1]], images[0, 0, 0])

    def test_floats_stay_floats_of_any_range(self):
        images = torch.tensor([[[[-1000.0, 3000.0]]]])
        assert resize(images, (1, 4)).tolist() == [[[[-1000, 0, 2000, 3000]]]]
