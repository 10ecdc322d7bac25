"""Figures of tables show every seed, and no line crosses columns in which an encoding was not run."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("tests.training.requirements")

from liere.evaluation.intervals import Interval
from liere.reproduce import outcome_charts as figures
from liere.reproduce.measured import Measured
from liere.reproduce.outcome_charts import draw_columns

FOUND = {
    ("visionllama", "CIFAR-10"): Measured(Interval(0.54, 0.53, 0.55, "bootstrap"), [0.52, 0.54, 0.56]),
    ("liere8", "CIFAR-10"): Measured(Interval(0.57, 0.56, 0.58, "bootstrap"), [0.57, 0.58, 0.56]),
    ("liere8", "Atari clips"): Measured(Interval(0.9, 0.88, 0.92, "Jeffreys"), [0.9]),
}
ENCODINGS, COLUMNS = ["visionllama", "liere8"], ["CIFAR-10", "Atari clips"]


def ours(encoding: str, column: str) -> Measured | None:
    return FOUND.get((encoding, column))


@pytest.fixture
def kept(monkeypatch):
    """Capture the axes of the drawn figure."""
    axes = []

    def keep(ax, *args, **options):
        axes.append(ax)
        original(ax, *args, **options)

    original = figures.style_axes
    monkeypatch.setattr(figures, "style_axes", keep)
    return axes


def test_seeds_are_drawn_and_the_interval_is_over_them(kept):
    draw_columns("Accuracy, %", ENCODINGS, COLUMNS, ours, ordered=False)
    heights = {round(float(y), 1) for line in kept[0].lines for y in line.get_ydata()}
    assert {52.0, 54.0, 56.0, 57.0, 58.0, 90.0} <= heights
    assert {88.0, 92.0} <= heights  # one seed: interval over test examples
    assert not {53.0, 55.0} & heights  # several seeds: no interval over test examples


def test_data_sets_are_not_joined_and_nothing_crosses_a_column_that_was_not_run(kept):
    drawing = draw_columns("Accuracy, %", ENCODINGS, COLUMNS, ours, ordered=False)
    for line in kept[0].lines:
        places = {round(float(x)) for x in line.get_xdata()}
        assert len(places) == 1 or line.get_linestyle() == "None"
    assert not kept[0].texts
    assert "VisionLLaMA</text>" in drawing.svg


def test_an_encoding_that_lacks_the_last_of_ordered_columns_has_no_leader(kept):
    draw_columns("Accuracy, %", ENCODINGS, COLUMNS, ours)
    assert {text.get_text(): text.arrow_patch is not None for text in kept[0].texts} == {
        "VisionLLaMA": False,
        "LieRE₈": True,
    }


def test_one_column_has_one_row_per_encoding(kept):
    drawing = draw_columns("Accuracy, %", ENCODINGS, COLUMNS[:1], ours)
    assert [tick.get_text() for tick in kept[0].get_yticklabels()] == ["VisionLLaMA", "LieRE₈"]
    assert kept[0].get_title(loc="left") == "Accuracy, CIFAR-10, %"
    assert drawing.alt == "Accuracy, in percent, by encoding. Dots: seeds; bars: 95 % interval over seeds."
