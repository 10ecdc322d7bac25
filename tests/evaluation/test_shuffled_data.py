from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from liere.data.counter_random import random_bits
from liere.evaluation.shuffled_data import shuffle_frames, shuffle_patches

# Chi-square quantiles with 23 and 5 degrees of freedom, exceeded in one of 10,000 cases.
CHI_SQUARE_23, CHI_SQUARE_5 = 53.0, 25.7


def order(word: int, places: int) -> list[int]:
    """Return places sorted by their random words."""
    keys = [int(key) for key in random_bits(torch.tensor([word]), places)[0]]
    return sorted(range(places), key=lambda place: keys[place])


def moved(image: torch.Tensor, patch_size: tuple[int, ...], sources: list[int]) -> torch.Tensor:
    """Shuffle patches by copying value by value."""
    size, out = image.shape[1:], torch.zeros_like(image)
    grid = [n // p for n, p in zip(size, patch_size, strict=True)]
    places = list(itertools.product(*map(range, grid)))
    for place, source in zip(places, [places[number] for number in sources], strict=True):
        for offset in itertools.product(*map(range, patch_size)):
            to = tuple(g * p + o for g, p, o in zip(place, patch_size, offset, strict=True))
            at = tuple(g * p + o for g, p, o in zip(source, patch_size, offset, strict=True))
            for channel in range(len(image)):
                out[(channel, *to)] = image[(channel, *at)]
    return out


def numbered(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.arange(math.prod(shape)).view(shape).to(dtype)


AXES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=2, max_size=3)
WORD = st.integers(-(2**63), 2**63 - 1)


class TestPatches:
    @given(axes=AXES, channels=st.integers(1, 3), words=st.lists(WORD, min_size=1, max_size=3))
    def test_every_value_is_where_a_loop_puts_it(self, axes, channels, words):
        patch_size = tuple(patch for _, patch in axes)
        images = numbered(len(words), channels, *[grid * patch for grid, patch in axes])
        found = shuffle_patches(images, patch_size, torch.tensor(words))
        places = math.prod(grid for grid, _ in axes)
        for image, word, result in zip(images, words, found, strict=True):
            assert torch.equal(result, moved(image, patch_size, order(word, places)))

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float32, torch.bfloat16, torch.int64])
    def test_any_dtype_stays_what_it_is(self, dtype):
        images = numbered(2, 3, 4, 6, dtype=dtype)
        found = shuffle_patches(images, (2, 2), torch.tensor([1, 2]))
        assert found.dtype == dtype
        assert torch.equal(found[1], moved(images[1], (2, 2), order(2, 6)))

    def test_patches_are_the_same_and_elsewhere(self):
        images = torch.rand(3, 2, 4, 6, 8, generator=torch.Generator().manual_seed(0))
        before, after = (
            [sorted(x.unfold(1, 2, 2).unfold(2, 3, 3).unfold(3, 4, 4).permute(1, 2, 3, 0, 4, 5, 6).flatten(3).reshape(
                -1, 48).tolist()) for x in batch]
            for batch in (images, shuffle_patches(images, (2, 3, 4), torch.arange(3)))
        )  # fmt: skip
        assert before == after
        assert not torch.equal(images, shuffle_patches(images, (2, 3, 4), torch.arange(3)))

    def test_every_order_is_as_frequent(self):
        count = 24_000
        images = numbered(1, 1, 2, 2).expand(count, 1, 2, 2)
        found = Counter(map(tuple, shuffle_patches(images, (1, 1), torch.arange(count)).flatten(1).tolist()))
        assert len(found) == 24
        assert sum((seen - 1_000) ** 2 / 1_000 for seen in found.values()) < CHI_SQUARE_23

    def test_an_image_does_not_depend_on_its_batch(self):
        images, words = numbered(5, 2, 8, 8), torch.tensor([3, 1, 4, 1, 5])
        whole = shuffle_patches(images, (2, 2), words)
        for place in range(5):
            alone = shuffle_patches(images[place : place + 1], (2, 2), words[place : place + 1])
            assert torch.equal(whole[place], alone[0])

    def test_images_of_a_batch_have_orders_of_their_own(self):
        images = numbered(1, 1, 8, 8).expand(6, 1, 8, 8)
        found = shuffle_patches(images, (2, 2), torch.arange(6))
        assert len({tuple(image.flatten().tolist()) for image in found}) == 6

    def test_the_global_generator_is_left_alone_and_not_asked(self):
        images, words = numbered(2, 1, 8, 8), torch.arange(2)
        torch.manual_seed(1)
        state = torch.get_rng_state()
        first = shuffle_patches(images, (2, 2), words)
        assert torch.equal(torch.get_rng_state(), state)
        torch.manual_seed(2)
        assert torch.equal(shuffle_patches(images, (2, 2), words), first)

    def test_the_images_given_are_not_changed(self):
        images = numbered(2, 1, 4, 4)
        shuffle_patches(images, (2, 2), torch.arange(2))
        assert torch.equal(images, numbered(2, 1, 4, 4))

    def test_images_need_not_be_contiguous(self):
        images = numbered(2, 4, 6, 3).permute(0, 3, 1, 2)
        found = shuffle_patches(images, (2, 2), torch.arange(2))
        assert torch.equal(found, shuffle_patches(images.contiguous(), (2, 2), torch.arange(2)))

    def test_no_images_are_no_images(self):
        assert shuffle_patches(torch.zeros(0, 3, 4, 4), (2, 2), torch.arange(0)).shape == (0, 3, 4, 4)

    @pytest.mark.parametrize(
        ("size", "patch_size", "words", "message"),
        [
            ((8, 9), (4, 4), 2, "9 is not a multiple of 4"),
            ((8, 8), (4, 4, 4), 2, "give both one entry per axis"),
            ((8, 8), (0, 4), 2, "at least 1"),
            ((8, 8), (4, 4), 3, "one entry per image, 2 in total"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, size, patch_size, words, message):
        with pytest.raises(ValueError, match=message):
            shuffle_patches(torch.zeros(2, 3, *size), patch_size, torch.arange(words))


class TestFrames:
    @given(groups=st.integers(1, 5), length=st.integers(1, 3), words=st.lists(WORD, min_size=1, max_size=3))
    def test_groups_of_frames_are_where_a_loop_puts_them(self, groups, length, words):
        clips = numbered(len(words), 2, groups * length, 4, 2)
        found = shuffle_frames(clips, (length, 2, 2), torch.tensor(words))
        for clip, word, result in zip(clips, words, found, strict=True):
            for place, source in enumerate(order(word, groups)):
                for frame in range(length):
                    assert torch.equal(result[:, place * length + frame], clip[:, source * length + frame])

    def test_every_order_is_as_frequent(self):
        clips = numbered(1, 1, 6, 1, 1).expand(6_000, 1, 6, 1, 1)
        found = Counter(map(tuple, shuffle_frames(clips, (2, 1, 1), torch.arange(6_000)).flatten(1).tolist()))
        assert len(found) == 6
        assert sum((seen - 1_000) ** 2 / 1_000 for seen in found.values()) < CHI_SQUARE_5

    def test_single_frames_move_where_a_patch_has_one(self):
        found = shuffle_frames(numbered(1, 1, 5, 1, 1), (1, 1, 1), torch.tensor([9]))
        assert found.flatten().tolist() == order(9, 5)

    @pytest.mark.parametrize(
        ("shape", "patch_size", "message"),
        [
            ((2, 3, 8, 8), (4, 4), "use shuffle_patches for images"),
            ((2, 3, 5, 8, 8), (2, 4, 4), "5 is not a multiple of 2"),
            ((2, 3, 4, 8, 9), (2, 4, 4), "9 is not a multiple of 4"),
            ((2, 3, 4, 8, 8), (2, 4), "give both one entry per axis"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, shape, patch_size, message):
        with pytest.raises(ValueError, match=message):
            shuffle_frames(torch.zeros(shape), patch_size, torch.arange(2))
