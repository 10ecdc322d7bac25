from __future__ import annotations

import io

import pytest
import torch

pytest.importorskip("tests.training.requirements")

import numpy as np
from matplotlib.image import imread

from liere.report import task_pictures
from liere.report.pixels import png
from liere.reproduce.tables.attention import build_attention
from tests.reproduce.fakes import fake_results

RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 128, 0)


def square(color: tuple[int, int, int]) -> bytes:
    return png(torch.tensor(color, dtype=torch.uint8)[:, None, None].expand(3, 4, 4))


def places(picture: np.ndarray, color: tuple[int, int, int]) -> tuple[float, float] | None:
    """Return the center of all pixels of a color, as fractions of the width and height of the picture."""
    rows, columns = np.nonzero((picture[..., :3] == np.array(color)).all(axis=-1))
    height, width = picture.shape[:2]
    return (columns.mean() / width, rows.mean() / height) if len(rows) > 100 else None


def test_maps_have_one_row_per_encoding_and_one_column_per_layer(tmp_path, monkeypatch):
    layers = {"absolute": [square(RED), square(BLUE)], "liere8": [square(GREEN)]}
    asked = []

    def attention_of(run, size):
        asked.append((run.config.model.encoding, size))
        return layers[run.config.model.encoding]

    monkeypatch.setattr(task_pictures, "attention_of", attention_of)
    results = fake_results(
        "attention", tmp_path, lambda *_: 0.5, encodings=[*layers], details=lambda *_: {"weights": True}
    )
    outcome = build_attention(results)
    assert asked == [(name, size) for size in (108, 276) for name in layers]
    assert list(outcome.figures) == ["Attention at 108 px", "Attention at 276 px"]
    picture = (255 * imread(io.BytesIO(outcome.figures["Attention at 108 px"].png), format="png")).round().astype(int)
    red, blue, green = (places(picture, color) for color in (RED, BLUE, GREEN))
    assert red[0] == pytest.approx(green[0], abs=0.01)  # first layers are in one column
    assert red[0] < blue[0]
    assert red[1] == pytest.approx(blue[1], abs=0.01)
    assert red[1] < green[1]
    assert outcome.claims[0].verdict == "is not decided"
