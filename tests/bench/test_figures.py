"""Figures of records: a bar for each model, as long as its median, with quartiles as whiskers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from liere.bench import figures
from liere.bench.figures import draw_record
from liere.report.drawing import canvas
from liere.report.encoding_style import COLORS


def spread(median: float, low: float, high: float) -> dict[str, Any]:
    return {"median": median, "quartiles": [low, high]}


def record(question: str, rows: list[dict[str, Any]], *, quick: bool = False) -> dict[str, Any]:
    machine = {"cpu": "Some CPU", "threads": 2}
    return {"question": question, "rows": rows, "machine": machine, "rounds": 7, "quick": quick, "notes": []}


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw a record, and return its figure and axes, and the file."""
    kept = []

    @contextmanager
    def keep(*args, **options):
        with canvas(*args, **options) as both:
            kept.append(both)
            yield both

    def draw(content: dict[str, Any]):
        draw_record(content, tmp_path / "a.png")
        return *kept[-1], tmp_path / "a.png"

    monkeypatch.setattr(figures, "canvas", keep)
    return draw


def bars(ax) -> list[float]:
    return [bar.get_width() for bar in ax.patches]


def whiskers(ax) -> list[list[float]]:
    """Return the ends of the error bars, from the first bar to the last."""
    (lines,) = ax.containers[-1].errorbar.lines[2]
    return [[float(x) for x, _ in segment] for segment in lines.get_segments()]


def test_a_step_has_a_bar_per_model_as_long_as_its_ratio(drawn):
    rows = [
        {"situation": "tiny", "model": name}
        | {"train": {"ratio": spread(*train)}, "inference": {"ratio": spread(*inference)}}
        for name, train, inference in [
            ("absolute", (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
            ("liere8", (1.2, 1.1, 1.5), (1.05, 1.0, 1.1)),
            ("timm rope_mixed", (1.4, 1.3, 1.45), (1.3, 1.2, 1.4)),
            ("liere64 placed", (1.6, 1.5, 1.7), (1.0, 0.9, 1.1)),
        ]
    ]
    figure, axes, file = drawn(record("step", rows))
    assert axes.shape == (1, 2)
    assert bars(axes[0, 0]) == [1.0, 1.2, 1.4, 1.6]
    assert bars(axes[0, 1]) == [1.0, 1.05, 1.3, 1.0]
    assert whiskers(axes[0, 0])[1] == pytest.approx([1.1, 1.5])
    assert [tick.get_text() for tick in axes[0, 0].get_yticklabels()] == [
        "absolute",
        "LieRE$_8$",
        "timm, RoPE-Mixed",
        "LieRE$_{64}$, placed",
    ]
    from matplotlib.colors import to_hex

    shown = [to_hex(bar.get_facecolor()) for bar in axes[0, 0].patches]
    assert shown == [COLORS["absolute"], COLORS["liere8"], COLORS["rope_mixed"], COLORS["liere"]]
    assert "Some CPU, threads: 2; medians and quartiles of 7 rounds" in figure.get_suptitle()
    assert "QUICK" not in figure.get_suptitle()
    assert file.read_bytes().startswith(b"\x89PNG")


def test_memory_says_how_much_it_is(drawn):
    rows = [
        {"situation": "tiny", "model": "absolute", "ratio": spread(1, 1, 1), "peak_bytes": spread(2**30, 0, 0)},
        {"situation": "tiny", "model": "liere8", "ratio": spread(1.5, 1.5, 1.5), "peak_bytes": spread(3 * 2**29, 0, 0)},
    ]
    figure, axes, _ = drawn(record("memory", rows, quick=True))
    assert [text.get_text().strip() for text in axes[0, 0].texts] == ["1.00 GB", "1.50 GB"]
    assert [text.get_position() for text in axes[0, 0].texts] == [(1, 0), (1.5, 1)]
    assert "QUICK RUN, do not quote" in figure.get_suptitle()


def test_scaling_has_a_panel_per_quantity_and_says_what_it_adds(drawn):
    rows = [
        {"varied": varied, "value": value, "ratio": spread(1 + value / 100, 1, 2)}
        | {"excess_seconds": spread(value / 1000, 0, 0)}
        for varied in ("tokens", "block size", "axes", "batch size")
        for value in (4, 8)
    ]
    _, axes, _ = drawn(record("scaling", rows))
    assert [ax.get_title() for ax in axes.flat] == ["by tokens", "by block size", "by axes", "by batch size"]
    for ax in axes.flat:
        assert ax.lines[0].get_ydata().tolist() == [1.04, 1.08]
        assert [text.get_text() for text in ax.texts] == ["+4.0 ms", "+8.0 ms"]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["4", "8"]


def test_rotations_have_both_entrants_and_the_limit(drawn):
    part = {
        "seconds": {"matrix_exp": spread(6.0, 6, 6)},
        "speedup": {"exp_skew": spread(3.0, 2, 4), "layer": spread(5.0, 4, 6)},
        "limit_seconds": spread(1.5, 1, 2),
    }
    _, axes, _ = drawn(record("rotations", [{"case": "b = 8", "forward": part, "forward_backward": part}]))
    for ax in axes[0]:
        assert bars(ax) == [3.0, 5.0]
        assert ax.lines[-2].get_xdata().tolist() == [4.0]  # 6 s / 1.5 s
    assert [tick.get_text() for tick in axes[0, 0].get_yticklabels()] == ["b = 8"]


def test_loading_leaves_out_the_step_that_it_is_compared_with(drawn):
    rows = [{"case": name, "ratio": spread(ratio, ratio, ratio)} for name, ratio in [("train step", 1), ("CIFAR", 0.2)]]
    _, axes, _ = drawn(record("loading", rows))
    assert bars(axes[0, 0]) == [0.2]
    assert [tick.get_text() for tick in axes[0, 0].get_yticklabels()] == ["CIFAR"]


def test_points_have_time_and_memory(drawn):
    timed = [
        {"situation": "clouds", "model": name, "ratio": spread(ratio, ratio, ratio)}
        for name, ratio in [("none", 1.0), ("rope_mixed", 1.1), ("liere8", 1.6)]
    ]
    weighed = [{"situation": "tokens", "model": "liere8", "memory": spread(2.0, 2, 2)}]
    _, axes, _ = drawn(record("points", timed + weighed))
    assert bars(axes[0, 0]) == [1.0, 1.1, 1.6]
    assert bars(axes[0, 1]) == [2.0]
