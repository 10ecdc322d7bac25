from __future__ import annotations

import importlib.util

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data.arrays import ArrayData
from liere.data.augmentation import Augmentation, rand_augment
from liere.data.batches import ExampleOrder, TrainingBatches
from liere.data.counter_random import random_below, random_bits
from liere.data.facts import DataFacts
from liere.data.loader import make_loader
from liere.optional.torchvision_ops import import_with_torchvision

needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)
words_of_batches = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6).map(torch.tensor)
FACTS = DataFacts(("a", "b"), 3, (8, 8), (0.5,) * 3, (0.5,) * 3)


def noise(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def slowly(image: torch.Tensor, word: int, padding: int, flip: bool) -> torch.Tensor:
    """Flip and crop an image `[channels, *rest, height, width]`, one pixel at a time."""
    draws = random_bits(torch.tensor([word]), 3)[0]
    mirrored = flip and int(draws[0]) % 2 == 1
    down, right = (int(random_below(draw, 2 * padding + 1)) - padding for draw in draws[1:])
    height, width = image.shape[-2:]
    found = torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            y, x = row + down, column + right
            if 0 <= y < height and 0 <= x < width:
                found[..., row, column] = image[..., y, width - 1 - x if mirrored else x]
    return found


class TestFlipsAndCrops:
    @given(
        words=words_of_batches,
        padding=st.integers(0, 3),
        flip=st.booleans(),
        height=st.integers(1, 5),
        width=st.integers(1, 5),
        depth=st.sampled_from([None, 1, 3]),
        dtype=st.sampled_from([torch.uint8, torch.float32]),
    )
    def test_every_pixel_is_where_a_slow_loop_puts_it(self, words, padding, flip, height, width, depth, dtype):
        images = noise(len(words), 2, *([] if depth is None else [depth]), height, width).to(dtype)
        found = Augmentation(padding, flip)(images, words)
        assert found.dtype == dtype
        for image, word, result in zip(images, words.tolist(), found, strict=True):
            assert torch.equal(result, slowly(image, word, padding, flip))

    def test_every_offset_occurs_about_as_often_as_others(self):
        count, padding = 5000, 2
        # Pixel values encode their original positions.
        image = (1 + torch.arange(25, dtype=torch.uint8)).view(1, 1, 5, 5)
        found = Augmentation(padding)(image.expand(count, -1, -1, -1), torch.arange(count))
        centers = found[:, 0, 2, 2].long() - 1
        counts = torch.bincount(centers, minlength=25)
        assert counts.shape == (25,)
        assert counts.min() > 0.7 * count / 25
        assert counts.max() < 1.3 * count / 25

    def test_about_half_of_the_images_are_mirrored(self):
        image = torch.tensor([1, 2], dtype=torch.uint8).view(1, 1, 1, 2)
        found = Augmentation(flip=True)(image.expand(4000, -1, -1, -1), torch.arange(4000))
        assert 1800 < (found[:, 0, 0, 0] == 2).sum() < 2200

    def test_a_flip_does_not_tell_the_crop(self):
        draws = random_bits(torch.arange(4000), 3)
        mirrored, down = (draws[:, 0] & 1).bool(), random_below(draws[:, 1], 9)
        for part in (down[mirrored], down[~mirrored]):
            assert torch.bincount(part, minlength=9).min() > 0.7 * len(part) / 9

    def test_without_anything_to_do_it_is_false_and_changes_nothing(self):
        images = noise(3, 3, 4, 4)
        assert not Augmentation()
        assert torch.equal(Augmentation()(images, torch.arange(3)), images)
        assert all([Augmentation(padding=1), Augmentation(flip=True), Augmentation(rand_augment=(1, 0))])

    @given(words=words_of_batches, padding=st.integers(0, 3), flip=st.booleans())
    def test_an_image_is_changed_in_the_same_way_in_any_batch(self, words, padding, flip):
        images = noise(len(words), 3, 6, 6)
        change = Augmentation(padding, flip)
        whole = change(images, words)
        alone = [change(images[place : place + 1], words[place : place + 1])[0] for place in range(len(words))]
        assert torch.equal(whole, torch.stack(alone))


@needs_torchvision
class TestRandAugment:
    WORDS = torch.tensor([0, 1, -1, 2**63 - 1, -(2**63), 12345])

    def test_torchs_generators_are_left_as_they_were(self, monkeypatch):
        def seeded(seed):
            pytest.fail("the generators of GPUs were given another seed")

        monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded)
        before = torch.get_rng_state()
        Augmentation(rand_augment=(2, 9))(noise(6, 3, 8, 8), self.WORDS)
        assert torch.equal(torch.get_rng_state(), before)

    def test_the_word_alone_decides(self):
        image = noise(3, 16, 16)
        torch.manual_seed(0)
        one = [rand_augment(image, word) for word in self.WORDS.tolist()]
        torch.manual_seed(1)
        assert all(
            torch.equal(rand_augment(image, word), each) for word, each in zip(self.WORDS.tolist(), one, strict=True)
        )
        assert len({each.numpy().tobytes() for each in one}) > 1

    def test_it_is_torchvisions(self):
        RandAugment = import_with_torchvision("torchvision.transforms").RandAugment
        image = noise(3, 16, 16)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(77)
            expected = RandAugment(3, 15)(image)
        assert torch.equal(rand_augment(image, 77, 3, 15), expected)
        assert not torch.equal(expected, image)

    def test_it_comes_before_flip_and_crop(self):
        images = noise(6, 3, 8, 8)
        changed = torch.stack([rand_augment(*pair, 2, 9) for pair in zip(images, self.WORDS.tolist(), strict=True)])
        found = Augmentation(2, True, (2, 9))(images, self.WORDS)
        assert torch.equal(found, Augmentation(2, True)(changed, self.WORDS))

    def test_an_image_is_changed_in_the_same_way_in_any_batch(self):
        images = noise(6, 3, 8, 8)
        change = Augmentation(1, True, (2, 9))
        backwards = change(images.flip(0), self.WORDS.flip(0)).flip(0)
        assert torch.equal(change(images, self.WORDS), backwards)
        assert torch.equal(change(images[2:4], self.WORDS[2:4]), backwards[2:4])

    def test_batches_are_the_same_for_any_number_of_workers(self):
        data = ArrayData(noise(12, 3, 8, 8), torch.arange(12) % 2, FACTS, Augmentation(2, True, (2, 9)))
        seen = []
        for workers in (0, 1, 2):
            batches = TrainingBatches(ExampleOrder(12, 5), range(4), batch_size=4)
            seen.append(list(make_loader(data, batches, workers=workers)))
        for other in seen[1:]:
            assert len(other) == 4
            for one, two in zip(seen[0], other, strict=True):
                assert all(torch.equal(*pair) for pair in zip(one, two, strict=True))

    def test_a_step_is_the_same_for_any_number_of_parts(self):
        data = ArrayData(noise(12, 3, 8, 8), torch.arange(12) % 2, FACTS, Augmentation(2, True, (2, 9)))
        whole, parts = (
            torch.cat(
                [
                    data.load(*draw).images
                    for draw in TrainingBatches(ExampleOrder(12, 5), range(3), batch_size=4, accumulate=accumulate)
                ]
            )
            for accumulate in (1, 4)
        )
        assert torch.equal(whole, parts)
