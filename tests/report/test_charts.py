"""Figures show every seed and intervals over seeds; labels neither overlap nor cross empty columns."""

from __future__ import annotations

import copy
from itertools import combinations, pairwise

import pytest

pytest.importorskip("matplotlib")

from liere.evaluation.seeds import seed_interval
from liere.report.chart_axes import size_places
from liere.report.chart_points import Point, plot_points
from liere.report.charts import draw_resolution
from liere.report.drawing import CELL, sheet
from liere.report.line_labels import label_ends
from liere.report.resolution_chart import point_at, resolution_alt, resolution_panel
from liere.report.side_by_side import COUNTING_ARROWS, draw_side_by_side, write_side_by_side
from tests.report.report_data import make_comparison

FIVE = [108, 168, 276, 372, 540]


def with_sizes(comparison: dict, sizes: list[int]) -> dict:
    """Return a comparison tested at these sizes, with the accuracies of its first size."""
    comparison = copy.deepcopy(comparison) | {"sizes": sizes}
    for row in comparison["encodings"]:
        row["evaluations"] = [copy.deepcopy(row["evaluations"][0]) | {"size": size} for size in sizes]
    return comparison


def drawn_heights(ax) -> list[float]:
    return [float(y) for line in ax.lines for y in line.get_ydata()]


def boxes(figure, texts) -> list:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure)
    figure.canvas.draw()
    return [Text.get_window_extent(text) for text in texts]  # an annotation's extent would include its leader


class TestPoints:
    def test_the_interval_is_over_seeds_where_there_are_several(self):
        comparison = make_comparison(["rope_mixed"])
        found = comparison["encodings"][0]["evaluations"][2]
        found["by_seed"] = [0.29, 0.60, 0.84]
        found["accuracy"] |= {"value": sum(found["by_seed"]) / 3, "low": 0.56, "high": 0.59}
        point = point_at(comparison, comparison["encodings"][0], 276)
        interval = seed_interval(found["by_seed"])
        assert (point.low, point.high) == pytest.approx((100 * interval.low, 100 * interval.high))
        assert point.seeds == pytest.approx([29, 60, 84])

    def test_with_one_seed_it_is_over_examples_and_beside_several_seeds_there_is_none(self):
        comparison = make_comparison(["absolute", "liere"], seeds=1)
        row = comparison["encodings"][0]
        accuracy = row["evaluations"][0]["accuracy"]
        assert point_at(comparison, row, 108)[2:] == pytest.approx((100 * accuracy["low"], 100 * accuracy["high"]))
        mixed = make_comparison(["absolute", "liere"])
        mixed["encodings"][0] = row
        assert point_at(mixed, row, 108)[2:] == (None, None)
        with pytest.raises(ValueError, match="absolute was not evaluated at 999 px"):
            point_at(mixed, row, 999)

    def test_every_seed_is_drawn(self):
        point = Point(50.0, [29.0, 60.0, 84.0], 10.0, 90.0)
        with sheet(1, 1, cell=CELL) as (_, axes):
            plot_points(axes[0, 0], [1.0], [point], color="#000000", marker="o", joined=False)
            assert set(drawn_heights(axes[0, 0])) == {50.0, 29.0, 60.0, 84.0, 10.0, 90.0}

    def test_every_seed_is_in_the_resolution_panel(self):
        comparison = make_comparison()
        with sheet(1, 1, cell=CELL) as (_, axes):
            resolution_panel(axes[0, 0], comparison)
            heights = drawn_heights(axes[0, 0])
        for row in comparison["encodings"]:
            for found in row["evaluations"]:
                assert all(any(abs(100 * value - y) < 1e-6 for y in heights) for value in found["by_seed"])


class TestSizes:
    def test_five_sizes_have_ticks_that_do_not_overlap(self):
        with sheet(1, 2, cell=CELL) as (figure, axes):
            for ax in axes[0]:
                resolution_panel(ax, with_sizes(make_comparison(), FIVE))
            ticks = axes[0, 0].get_xticklabels()
            assert [tick.get_text() for tick in ticks] == ["108\n(training)", "168", "276", "372", "540"]
            found = boxes(figure, ticks)
        assert all(before.x1 < after.x0 for before, after in pairwise(found))

    def test_sizes_too_near_each_other_are_spaced_evenly(self):
        assert size_places([216, 224, 448]) == [0.0, 1.0, 2.0]
        assert size_places([216, 448]) != [0.0, 1.0]
        places = size_places(FIVE)
        assert places == sorted(places)
        assert places != [0.0, 1.0, 2.0, 3.0, 4.0]

    def test_one_size_has_no_axis_of_sizes(self):
        comparison = make_comparison(sizes=[276])
        with sheet(1, 1, cell=CELL) as (_, axes):
            resolution_panel(axes[0, 0], comparison)
            ax = axes[0, 0]
            assert [tick.get_text() for tick in ax.get_yticklabels()][-2:] == ["LieRE₈", "LieRE (dense)"]
            assert ax.get_title(loc="left") == "Accuracy at 276 px after training at 108 px, %"
            rows = {float(y) for line in ax.lines for y in line.get_ydata()}
        assert rows == {0.0, 1.0, 2.0, 3.0, 4.0}

    def test_what_is_drawn_is_told_to_those_who_cannot_see_it(self):
        assert "one dot per seed, and the 95 % confidence interval over seeds" in resolution_alt(make_comparison())
        one = make_comparison(seeds=1, sizes=[108])
        assert resolution_alt(one).startswith("Accuracy at 108 px: one model per encoding")
        assert resolution_alt(one) in draw_resolution(one).svg


class TestLabels:
    COLORS = dict.fromkeys("abcdefgh", "#123456")

    def test_they_do_not_overlap(self):
        with sheet(1, 1, cell=CELL) as (figure, axes):
            ax = axes[0, 0]
            ax.set_xlim(0, 2)
            ax.set_ylim(0, 100)
            label_ends(ax, {name: (2.0, 44.0 + i / 10) for i, name in enumerate(self.COLORS)}, self.COLORS)
            found = boxes(figure, ax.texts)
        assert len(found) == 8
        for one, other in combinations(found, 2):
            assert one.y0 >= other.y1 - 0.5 or other.y0 >= one.y1 - 0.5

    def test_a_line_that_ends_early_has_its_marker_beside_its_name_and_no_leader(self):
        with sheet(1, 1, cell=CELL) as (_, axes):
            ax = axes[0, 0]
            ax.set_ylim(0, 100)
            label_ends(ax, {"a": (2.0, 50.0), "b": (0.0, 40.0)}, self.COLORS, markers={"b": "s"}, last=1.5)
            leaders = {text.get_text(): text.arrow_patch is not None for text in ax.texts}
            assert leaders == {"a": True, "b": False}
            assert [line.get_marker() for line in ax.lines] == ["s"]


class TestSideBySide:
    @staticmethod
    def both() -> dict[str, dict]:
        comparison = with_sizes(make_comparison(["absolute", "liere8"]), FIVE)
        return {"as in the paper": comparison, "with random placement (ours)": copy.deepcopy(comparison)}

    def test_panels_share_an_axis_a_legend_and_the_line_of_counting_arrows(self):
        drawing = draw_side_by_side(self.both(), level=COUNTING_ARROWS)
        assert drawing.png.startswith(b"\x89PNG")
        for text in ("as in the paper", "with random placement (ours)", "counting arrows: 44 %", "540"):
            assert text in drawing.svg
        assert drawing.svg.count(">LieRE₈</text>") == 1
        assert "as in the paper: at 540 px, means over seeds, absolute 45 %, LieRE₈ 100 %." in drawing.alt

    def test_encodings_that_only_one_has_keep_their_color(self):
        comparisons = {"a": make_comparison(["absolute", "liere"]), "b": make_comparison(["rope_mixed", "liere"])}
        svg = draw_side_by_side(comparisons).svg
        for name in ("absolute", "RoPE-Mixed", "LieRE (dense)"):
            assert svg.count(f">{name}</text>") == 1
        assert "counting" not in svg

    @pytest.mark.parametrize(("name", "start"), [("two.png", b"\x89PNG"), ("two.svg", b"<?xml")])
    def test_files_are_the_same_every_time(self, tmp_path, name, start):
        files = [tmp_path / "new" / name, tmp_path / name]
        alts = {write_side_by_side(file, self.both()) for file in files}
        assert files[0].read_bytes() == files[1].read_bytes()
        assert files[0].read_bytes().startswith(start)
        assert len(alts) == 1

    def test_what_cannot_be_drawn_is_told(self, tmp_path):
        with pytest.raises(ValueError, match=r"path must end in \.png or \.svg, got"):
            write_side_by_side(tmp_path / "two.pdf", self.both())
        with pytest.raises(ValueError, match="comparisons is empty"):
            draw_side_by_side({})
        with pytest.raises(ValueError, match="comparison 'b' has not been evaluated"):
            draw_side_by_side({"a": make_comparison(["liere"]), "b": make_comparison([])})
