from __future__ import annotations

import collections
import hashlib
import pickle
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from liere.data import SpatialReasoning
from liere.data.glyphs import CELL, DIRECTIONS, SYMBOLS, draw_symbols

ARROWS = "↑→↓←"
LETTERS = "ABCDE"
MOVES = {"↑": (-1, 0), "→": (0, 1), "↓": (1, 0), "←": (0, -1)}
SPLITS = ("train", "val", "test")
SIZES = (24, 36, 48, 60, 108, 168, 276)
seeds = st.integers(-(2**62), 2**62)


@st.composite
def data_sets(draw) -> SpatialReasoning:
    """Draw a data set of any size, with any number of symbols that fit."""
    size = draw(st.sampled_from(SIZES))
    side = size // CELL
    ends = sorted(draw(st.tuples(st.integers(1, side - 1), st.integers(1, side - 1))))
    free = side**2 - 1 - ends[1]
    arrows = draw(st.one_of(st.integers(0, min(free, 9)), st.integers(0, free)))
    return SpatialReasoning(
        size,
        draw(st.sampled_from(SPLITS)),
        draw(seeds),
        distance=ends[0] if ends[0] == ends[1] and draw(st.booleans()) else tuple(ends),
        distractor_arrows=arrows,
        distractor_letters=draw(st.integers(0, min(free - arrows, 40))),
        colors=draw(st.sampled_from(["black", "random"])),
    )


def solve(cells: list[list[str]]) -> tuple[int, int]:
    """Return the label and the distance, by walking from the Y in the direction of its base to the first arrow."""
    row, column, direction = find_y(cells)
    down, right = MOVES[direction]
    for walked in range(1, len(cells)):
        row, column = row + down, column + right
        assert 0 <= row < len(cells), "walked out of the grid"
        assert 0 <= column < len(cells), "walked out of the grid"
        if cells[row][column]:
            return ARROWS.index(cells[row][column]), walked  # fails on a letter, or on two symbols
    raise AssertionError("no arrow in a whole row")


def many_cells(data: SpatialReasoning, count: int) -> list[list[list[str]]]:
    """Return `cells` of the first samples, as a batch."""
    return [[[SYMBOLS[code] for code in row] for row in grid] for grid in data.codes(range(count)).tolist()]


def find_y(cells: list[list[str]]) -> tuple[int, int, str]:
    ((row, column, y),) = (
        (i, j, cell) for i, line in enumerate(cells) for j, cell in enumerate(line) if cell[:1] == "Y"
    )
    return row, column, y[1]


def p_of_chi_square(counts: list[int], expected: list[float]) -> float:
    """Return the probability of counts at least as extreme as these."""
    chi = sum((count - mean) ** 2 / mean for count, mean in zip(counts, expected, strict=True))
    halves = torch.tensor([(len(counts) - 1) / 2, chi / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(halves[0], halves[1]))


def p_of_uniform(values: list, kinds: int) -> float:
    counts = collections.Counter(values)
    assert len(counts) <= kinds
    return p_of_chi_square(list(counts.values()) + [0] * (kinds - len(counts)), [len(values) / kinds] * kinds)


def digest(images: torch.Tensor) -> str:
    assert images.dtype == torch.uint8
    return hashlib.sha256(bytes(images.flatten().tolist())).hexdigest()


class TestGrids:
    @given(data=data_sets(), index=st.integers(0, 9_999))
    def test_the_label_is_the_arrow_that_the_base_of_the_y_points_at(self, data, index):
        label, distance = solve(data.cells(index))
        assert label == data[index][1] == int(data.batch([index])[1])
        assert data.distance[0] <= distance <= data.distance[1]
        assert data.classes[label] == ("up", "right", "down", "left")[label]

    @given(data=data_sets(), index=st.integers(0, 9_999))
    def test_a_grid_holds_what_was_asked_for(self, data, index):
        cells = data.cells(index)
        assert len(cells) == data.size // 12
        assert all(len(row) == len(cells) for row in cells)
        counts = collections.Counter(cell for row in cells for cell in row)
        assert set(counts) <= set(SYMBOLS)
        assert sum(count for cell, count in counts.items() if cell[:1] == "Y") == 1
        assert sum(counts[arrow] for arrow in ARROWS) == 1 + data.distractor_arrows
        expected = collections.Counter(LETTERS[i % 5] for i in range(data.distractor_letters))
        assert {letter: counts[letter] for letter in LETTERS if counts[letter]} == expected

    @pytest.mark.parametrize("size", [48, 108, 168, 276])
    def test_labels_at_the_sizes_of_the_paper_are_right_for_many_samples(self, size):
        data = SpatialReasoning(size, "test")
        _, labels = data.batch(range(300))
        assert [solve(cells)[0] for cells in many_cells(data, 300)] == labels.tolist()

    def test_a_full_grid_is_possible(self):
        data = SpatialReasoning(36, distractor_arrows=4, distractor_letters=3)
        assert all(cell for row in data.cells(5) for cell in row)
        assert solve(data.cells(5))[0] == data[5][1]

    def test_codes_are_places_among_the_symbols(self):
        data = SpatialReasoning(60, distractor_letters=3)
        for index, grid in enumerate(data.codes(range(20)).tolist()):
            assert [[SYMBOLS[code] for code in row] for row in grid] == data.cells(index)


MANY = 20_000


@pytest.fixture(scope="module")
def grids():
    return SpatialReasoning(108, "train", 0, MANY).codes(range(MANY))


@pytest.fixture(scope="module")
def ys(grids):
    """(row, column, direction of the base, direction of the target) of every sample."""
    found = []
    for sample, row, column in ((grids >= 5) & (grids <= 8)).nonzero().tolist():
        heading = int(grids[sample, row, column]) - 5
        down, right = MOVES[ARROWS[heading]]
        found.append((row, column, heading, int(grids[sample, row + down, column + right]) - 1))
    assert len(found) == MANY
    return found


class TestChance:
    def test_classes_are_balanced(self, ys):
        assert p_of_uniform([label for *_, label in ys], 4) > 1e-3

    @pytest.mark.parametrize("split", ["val", "test"])
    def test_classes_are_balanced_in_the_other_splits(self, split):
        data = SpatialReasoning(48, split, seed=3)
        assert p_of_uniform([solve(cells)[0] for cells in many_cells(data, 5_000)], 4) > 1e-3

    def test_the_direction_of_the_y_tells_nothing_of_the_target(self, ys):
        assert p_of_uniform([heading for _, _, heading, _ in ys], 4) > 1e-3
        assert p_of_uniform([(heading, label) for _, _, heading, label in ys], 16) > 1e-3

    def test_the_place_of_the_y_tells_nothing_of_the_target(self, ys):
        for row, column in [(0, 0), (4, 4), (8, 3)]:
            assert p_of_uniform([label for r, c, _, label in ys if (r, c) == (row, column)], 4) > 1e-3

    def test_the_y_is_anywhere_where_its_target_is_inside(self, ys):
        room = Fraction(1, 4) / (8 * 9)
        probabilities = {
            (row, column, heading): float(room)
            for row in range(9)
            for column in range(9)
            for heading, (down, right) in enumerate(MOVES.values())
            if 0 <= row + down < 9 and 0 <= column + right < 9
        }
        counts = collections.Counter((row, column, heading) for row, column, heading, _ in ys)
        assert set(counts) == set(probabilities)
        ordered = [counts[place] for place in probabilities]
        assert p_of_chi_square(ordered, [MANY * p for p in probabilities.values()]) > 1e-3

    def test_every_cell_holds_every_arrow_and_every_letter_in_some_sample(self, grids):
        for code in [*range(5), *range(9, len(SYMBOLS))]:
            assert bool((grids == code).any(0).all()), SYMBOLS[code]

    def test_distractors_point_anywhere(self, grids, ys):
        directions = collections.Counter(grids[(grids >= 1) & (grids <= 4)].tolist())
        directions.subtract(1 + label for *_, label in ys)
        counts = list(directions.values())
        assert sum(counts) == 7 * MANY
        assert p_of_chi_square(counts, [7 * MANY / 4] * 4) > 1e-3

    def test_counting_arrows_gives_some_45_percent(self, grids, ys):
        counts = torch.stack([(grids == code).flatten(1).sum(1) for code in (1, 2, 3, 4)], 1)
        right = sum(int(row.argmax()) == label for row, (*_, label) in zip(counts, ys, strict=True))
        assert 0.43 < right / MANY < 0.47

    def test_distances_of_a_range_are_equally_frequent(self):
        data = SpatialReasoning(108, distance=(2, 5))
        distances = [solve(cells)[1] for cells in many_cells(data, 2_000)]
        assert set(distances) == {2, 3, 4, 5}
        assert p_of_uniform(distances, 4) > 1e-3

    def test_the_ink_tells_nothing_of_the_label(self):
        data = SpatialReasoning(36, colors="random", distractor_arrows=2, distractor_letters=0)
        images, labels = data.batch(range(1_500))
        grids, seen = many_cells(data, 1_500), []
        for index, label in enumerate(labels.tolist()):
            row, column, direction = find_y(grids[index])
            down, right = MOVES[direction]
            top, left = CELL * (row + down) + 5, CELL * (column + right) + 5
            seen.append((tuple(images[index, :, top, left].tolist()), label))
        assert len({ink for ink, _ in seen}) == 6
        assert p_of_uniform(seen, 6 * 4) > 1e-3


class TestSplits:
    @pytest.mark.parametrize(
        ("size", "arrows", "letters"), [(36, 0, 0), (36, 1, 0), (36, 1, 1), (48, 0, 0), (48, 2, 0), (48, 2, 1)]
    )
    def test_splits_have_no_grid_in_common_whatever_their_seeds(self, size, arrows, letters):
        options = {"distractor_arrows": arrows, "distractor_letters": letters}
        found = {
            split: {
                bytes(grid)
                for seed in (0, 1)
                for grid in SpatialReasoning(size, split, seed, 4_000, **options)
                .codes(range(4_000))
                .flatten(1)
                .tolist()
            }
            for split in SPLITS
        }
        # There are so few grids that those of a split repeat: naive splits would overlap.
        assert sum(map(len, found.values())) < 3 * 2 * 4_000
        assert all(found.values())
        for one, other in [("train", "val"), ("train", "test"), ("val", "test")]:
            assert not found[one] & found[other]

    def test_all_grids_belong_to_some_split(self):
        found = set()
        for split in SPLITS:
            data = SpatialReasoning(36, split, distractor_arrows=0, distractor_letters=0)
            found |= {bytes(grid) for grid in data.codes(range(6_000)).flatten(1).tolist()}
        assert len(found) == 4 * 4 * 6  # headings, targets, places where the target is inside

    def test_splits_stay_apart_when_other_options_make_the_same_grids(self):
        near = SpatialReasoning(36, "test", distractor_arrows=1, distractor_letters=0, distance=1)
        any_distance = SpatialReasoning(36, "train", distractor_arrows=1, distractor_letters=0, distance=(1, 2))
        grids = [
            {bytes(grid) for grid in data.codes(range(5_000)).flatten(1).tolist()} for data in (near, any_distance)
        ]
        assert not grids[0] & grids[1]

    def test_splits_at_the_size_of_the_paper_are_apart(self):
        grids = [
            {bytes(grid) for grid in SpatialReasoning(108, split).codes(range(3_000)).flatten(1).tolist()}
            for split in SPLITS
        ]
        assert len(set.union(*grids)) == 9_000


class TestSamplesAreFunctionsOfTheirPlace:
    @given(data=data_sets(), indices=st.lists(st.integers(0, 9_999), min_size=1, max_size=6))
    def test_a_sample_is_the_same_alone_and_in_any_batch(self, data, indices):
        images, labels = data.batch(indices)
        assert images.shape == (len(indices), 3, data.size, data.size)
        for index, image, label in zip(indices, images, labels, strict=True):
            alone, its_label = data.batch([index])
            assert torch.equal(image, alone[0])
            assert int(label) == int(its_label)

    def test_a_sample_is_the_same_in_any_order_and_after_others(self):
        data = SpatialReasoning(60, "val", seed=4)
        forwards = data.batch(range(200))
        backwards = data.batch(range(199, -1, -1))
        assert torch.equal(forwards[0], backwards[0].flip(0))
        assert torch.equal(forwards[1], backwards[1].flip(0))

    def test_a_shorter_data_set_is_the_beginning_of_a_longer_one(self):
        assert torch.equal(
            SpatialReasoning(length=5).batch(range(5))[0], SpatialReasoning(length=50).batch(range(5))[0]
        )

    def test_seeds_and_splits_are_other_data_sets(self):
        grids = {
            bytes(SpatialReasoning(108, split, seed).codes([0]).flatten().tolist())
            for split in SPLITS
            for seed in (0, 1, -1, 2**40)
        }
        assert len(grids) == 12

    def test_the_global_generator_is_neither_asked_nor_moved(self):
        torch.manual_seed(1)
        before = torch.get_rng_state()
        one = SpatialReasoning(colors="random")[3][0]
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(2)
        assert torch.equal(SpatialReasoning(colors="random")[3][0], one)

    def test_samples_are_what_they_were_when_this_was_written(self):
        # Runs on other machines and checkpoints of earlier versions depend on these.
        data = SpatialReasoning(108, "test")
        assert [" ".join(cell.rjust(2, ".") for cell in row) for row in data.cells(0)] == [
            ".. .. .→ .. .. .. .→ Y← ..",
            ".. .. .. .. .. .D .. .A ..",
            ".↑ .↓ .. .. .. .. .. .. ..",
            ".. .. .. .. .. .. .B .. ..",
            ".. .. .. .. .. .. .. .. ..",
            ".. .. .. .. .. .E .. .. .←",
            ".. .. .. .. .. .. .↑ .↓ ..",
            ".. .← .. .. .. .. .C .. ..",
            ".. .. .. .. .. .. .. .. ..",
        ]
        assert data.batch(range(10))[1].tolist() == [1, 2, 1, 3, 1, 0, 0, 1, 3, 1]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"split": "train"}, "0ee4ab93f40cb658c442e98acd371b8002d501f1a451f3a362fafa3937cb66ac"),
            ({"split": "val"}, "234e2265b6d54dab3b71102fc068bbc380538e57af35dfade9946b679cbb5262"),
            ({"split": "test"}, "a054a5e82c786d7a9542aa18d6dcf356400ab7434162960b858b04da296bde4d"),
            (
                {"size": 60, "split": "val", "seed": 7, "distance": (1, 3), "colors": "random"},
                "fd4a15bc7f7a49524cc85778567585375df2be979c394282c96223d63224120e",
            ),
        ],
    )
    def test_images_are_what_they_were_when_this_was_written(self, options, expected):
        assert digest(SpatialReasoning(**options).batch(range(10))[0]) == expected


class TestImages:
    @given(
        seed=seeds,
        index=st.integers(0, 9_999),
        size=st.sampled_from([36, 60]),
        arrows=st.integers(0, 4),
        letters=st.integers(0, 3),
    )
    def test_an_image_is_its_cells_drawn_one_by_one(self, seed, index, size, arrows, letters):
        data = SpatialReasoning(size, "val", seed, distractor_arrows=arrows, distractor_letters=letters)
        glyphs = draw_symbols().tolist()
        cells = data.cells(index)
        image = data.batch([index])[0][0].tolist()
        for y in range(size):
            for x in range(size):
                inked = glyphs[SYMBOLS.index(cells[y // CELL][x // CELL])][y % CELL][x % CELL]
                for channel in range(3):
                    assert image[channel][y][x] == (0 if inked else 255)

    @given(seed=seeds, index=st.integers(0, 9_999))
    def test_each_symbol_of_a_coloured_image_has_one_ink(self, seed, index):
        options = {"distractor_arrows": 3, "distractor_letters": 2}
        data = SpatialReasoning(60, "val", seed, colors="random", **options)
        cells, (image,) = data.cells(index), data.batch([index])[0]
        assert cells == SpatialReasoning(60, "val", seed, **options).cells(index)
        for row, line in enumerate(cells):
            for column, symbol in enumerate(line):
                glyph = draw_symbols()[SYMBOLS.index(symbol)].bool()
                cell = image[:, CELL * row : CELL * (row + 1), CELL * column : CELL * (column + 1)]
                assert bool((cell[:, ~glyph] == 255).all())
                assert len(set(map(tuple, cell[:, glyph].mT.tolist()))) == bool(symbol)
                assert bool((cell[:, glyph].amin(0) < 100).all())

    def test_inks_vary_within_an_image(self):
        images, _ = SpatialReasoning(60, colors="random").batch(range(20))
        pixels = {tuple(pixel) for pixel in images.permute(0, 2, 3, 1).flatten(0, 2).unique(dim=0).tolist()}
        assert len(pixels) == 6 + 1
        assert (0, 0, 0) in pixels
        assert all(len(image.flatten(1).unique(dim=1).mT) > 2 for image in images)

    def test_images_are_floats_from_0_to_1_or_bytes(self):
        data = SpatialReasoning(108)
        image, label = data[11]
        assert image.shape == (3, 108, 108)
        assert image.dtype == torch.float32
        assert set(image.unique().tolist()) == {0.0, 1.0}
        assert type(label) is int
        in_bytes, same_label = SpatialReasoning(108, dtype=torch.uint8)[11]
        assert in_bytes.dtype == torch.uint8
        assert torch.equal(in_bytes.float() / 255, image)
        assert same_label == label

    def test_batches_are_bytes_of_their_own(self):
        images, labels = SpatialReasoning(48).batch(range(3))
        assert (images.dtype, labels.dtype) == (torch.uint8, torch.int64)
        assert images.is_contiguous()
        kept = images.clone()
        images[0, 0] = 7  # no channel or sample is a view of another
        assert torch.equal(images[0, 1:], kept[0, 1:])
        assert torch.equal(images[1:], kept[1:])
        assert torch.equal(SpatialReasoning(48).batch(range(3))[0], kept)


class TestSequence:
    def test_it_has_a_length_by_split(self):
        assert [len(SpatialReasoning(split=split)) for split in SPLITS] == [800_000, 10_000, 10_000]
        assert len(SpatialReasoning(length=7)) == 7

    def test_negative_indices_count_from_the_end(self):
        data = SpatialReasoning(48, length=9)
        for index in range(-9, 0):
            assert torch.equal(data[index][0], data[9 + index][0])
        assert data.cells(-1) == data.cells(8)

    @pytest.mark.parametrize("index", [9, -10, 10**12])
    def test_an_index_out_of_range_is_named(self, index):
        data = SpatialReasoning(48, length=9)
        for call in (lambda: data[index], lambda: data.batch([0, index]), lambda: data.cells(index)):
            with pytest.raises(IndexError, match=rf"index {index} is out of range for 9 samples"):
                call()

    def test_nothing_is_in_an_empty_data_set(self):
        data = SpatialReasoning(48, length=0)
        assert len(data) == 0
        assert list(data) == []
        with pytest.raises(IndexError, match="index 0 is out of range for 0 samples"):
            data[0]

    def test_a_loop_ends(self):
        assert len(list(SpatialReasoning(48, length=3))) == 3

    def test_indices_may_be_a_tensor(self, no_shape_checks):
        data = SpatialReasoning(48)
        assert torch.equal(data.batch(torch.tensor([5, 2]))[0], data.batch([5, 2])[0])

    @pytest.mark.parametrize("index", [0.5, "1", None])
    def test_an_index_that_is_no_number_is_named(self, index, no_shape_checks):
        with pytest.raises(TypeError, match="index must be an int, got"):
            SpatialReasoning(48).batch([index])

    def test_indices_in_a_tensor_of_floats_are_refused(self, no_shape_checks):
        with pytest.raises(TypeError, match=r"index must be an int, got 0\.5"):
            SpatialReasoning(48).batch(torch.tensor([0.5]))

    @pytest.mark.parametrize("arrows", [0, 3])
    def test_no_indices_give_an_empty_batch(self, arrows):
        data = SpatialReasoning(48, distractor_arrows=arrows)
        images, labels = data.batch([])
        assert images.shape == (0, 3, 48, 48)
        assert labels.shape == (0,)
        assert data.__getitems__([]) == []

    def test_samples_can_be_had_several_at_a_time(self):
        data = SpatialReasoning(48, "test", seed=2)
        for index, (image, label) in zip([4, 0, -1], data.__getitems__([4, 0, -1]), strict=True):
            assert torch.equal(image, data[index][0])
            assert label == data[index][1]

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_data_loader_loads_it(self, workers):
        data = SpatialReasoning(48, "val", seed=3, length=11)
        batches = list(DataLoader(data, batch_size=4, num_workers=workers))
        assert [len(images) for images, _ in batches] == [4, 4, 3]
        images, labels = map(torch.cat, zip(*batches, strict=True))
        expected, expected_labels = data.batch(range(11))
        assert torch.equal(images, expected.float() / 255)
        assert torch.equal(labels, expected_labels)

    def test_it_can_be_pickled(self):
        data = SpatialReasoning(48, "val", seed=3, distance=(1, 2), colors="random")
        assert torch.equal(pickle.loads(pickle.dumps(data))[5][0], data[5][0])


@pytest.mark.parametrize(
    ("options", "error", "parts"),
    [
        ({"size": 100}, ValueError, ["size", "multiple of 12 px", "got 100", "use 96"]),
        ({"size": 0}, ValueError, ["size", "multiple of 12 px", "got 0", "use 48"]),
        ({"size": -12}, ValueError, ["size", "got -12", "use 48"]),
        ({"size": "108"}, TypeError, ["size must be an int", "'108'"]),
        ({"size": 108.0}, TypeError, ["size must be an int", "108.0"]),
        ({"split": "tran"}, ValueError, ["unknown split 'tran'", "did you mean 'train'?"]),
        ({"split": "xyz"}, ValueError, ["unknown split 'xyz'", "choose from 'train', 'val', 'test'"]),
        ({"colors": "blck"}, ValueError, ["unknown colors 'blck'", "did you mean 'black'?"]),
        ({"colors": "red"}, ValueError, ["unknown colors 'red'", "choose from 'black', 'random'"]),
        ({"distance": 0}, ValueError, ["distance must be between 1 and 8", "got 0", "choose"]),
        ({"distance": 9}, ValueError, ["distance must be between 1 and 8", "9 x 9", "got 9", "larger size"]),
        ({"distance": (3, 2)}, ValueError, ["distance", "got (3, 2)"]),
        ({"distance": (1, 9)}, ValueError, ["distance must be between 1 and 8", "got (1, 9)"]),
        ({"distance": (1, 2, 3)}, ValueError, ["distance", "a pair (minimum, maximum)", "(1, 2, 3)"]),
        ({"distance": "1"}, TypeError, ["distance must be an int", "'1'"]),
        ({"distractor_arrows": -1}, ValueError, ["distractor_arrows must be at least 0", "got -1"]),
        ({"distractor_letters": -1}, ValueError, ["distractor_letters must be at least 0", "got -1"]),
        (
            {"size": 36, "distractor_arrows": 5, "distractor_letters": 3},
            ValueError,
            ["size 36", "3 x 3 cells", "5 distractor_arrows", "3 distractor_letters", "choose a larger size"],
        ),
        ({"length": -1}, ValueError, ["length must be at least 0", "got -1"]),
        ({"length": "many"}, TypeError, ["length must be an int", "'many'"]),
        ({"seed": 0.5}, TypeError, ["seed must be an int", "0.5"]),
        ({"dtype": torch.float64}, ValueError, ["dtype must be torch.float32 or torch.uint8", "torch.float64"]),
        ({"seed": 2**63}, ValueError, ["seed", str(2**63)]),
    ],
)
def test_what_does_not_fit_is_named_with_its_value_and_a_remedy(options, error, parts, no_shape_checks):
    with pytest.raises(error) as raised:
        SpatialReasoning(**options)
    message = str(raised.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_as_many_symbols_as_fit_are_allowed_and_one_more_is_not():
    SpatialReasoning(36, distractor_arrows=4, distractor_letters=3, distance=1)[0]
    SpatialReasoning(36, distractor_arrows=4, distractor_letters=2, distance=2)[0]
    with pytest.raises(ValueError, match="too few"):
        SpatialReasoning(36, distractor_arrows=4, distractor_letters=3, distance=2)


class TestGlyphs:
    def test_there_is_one_for_every_symbol_and_all_differ(self):
        glyphs = draw_symbols()
        assert (glyphs.shape, glyphs.dtype) == ((len(SYMBOLS), 12, 12), torch.uint8)
        assert glyphs.unique().tolist() == [0, 1]
        assert len(glyphs.flatten(1).unique(dim=0)) == len(SYMBOLS) == 14
        assert not glyphs[0].any()
        assert all(glyph.sum() >= 20 for glyph in glyphs[1:])

    def test_each_direction_is_the_one_before_it_turned_clockwise(self):
        glyphs = dict(zip(SYMBOLS, draw_symbols(), strict=True))
        for kind in ("", "Y"):
            for before, after in zip("↑→↓←", "→↓←↑", strict=True):
                mask, turned = glyphs[kind + before].tolist(), glyphs[kind + after].tolist()
                # Clockwise, the top row becomes the right column.
                assert all(turned[x][11 - y] == mask[y][x] for y in range(12) for x in range(12))
        assert DIRECTIONS == ("up", "right", "down", "left")

    def test_the_head_of_an_arrow_is_where_it_points_and_the_fork_of_a_y_where_it_does_not(self):
        glyphs = dict(zip(SYMBOLS, draw_symbols().float(), strict=True))
        halves = {"↑": slice(0, 6), "↓": slice(6, 12)}
        for direction, half in halves.items():
            assert glyphs[direction][half].sum() > glyphs[direction].sum() / 2
            assert glyphs["Y" + direction][half].sum() < glyphs["Y" + direction].sum() / 2
        for direction, half in {"←": slice(0, 6), "→": slice(6, 12)}.items():
            assert glyphs[direction][:, half].sum() > glyphs[direction].sum() / 2
            assert glyphs["Y" + direction][:, half].sum() < glyphs["Y" + direction].sum() / 2

    def test_neighbours_do_not_touch(self):
        for glyph in draw_symbols():
            for edge in (glyph[0], glyph[-1], glyph[:, 0], glyph[:, -1]):
                assert not edge.any()


def test_counting_arrows_is_right_in_44_percent_of_cases(grids):
    """With eight arrows, any may be the target: the most frequent direction is right as often as it occurs."""
    counts = torch.stack([(grids == SYMBOLS.index(arrow)).sum((1, 2)) for arrow in ARROWS])
    assert (counts.amax(0) / counts.sum(0)).mean().item() == pytest.approx(0.44, abs=0.005)
