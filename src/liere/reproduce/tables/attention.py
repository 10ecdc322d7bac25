"""Attention maps on the spatial reasoning task."""

from __future__ import annotations

from liere.report.charts import draw_attention
from liere.report.drawing import Drawing
from liere.report.picture_data import AttentionRow
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label

__all__ = ["build_attention"]


def build_attention(results: Results) -> Outcome:
    """Return figures of the CLS token's attention, one row per encoding and one column per layer."""
    from liere.report.task_pictures import attention_of

    (data,) = results.data
    sizes = [test.size for test in results.experiment.data[data].tests if test.size is not None]
    figures = {}
    for size in dict.fromkeys([sizes[0], sizes[-1]]):
        rows = [
            AttentionRow(label(key.encoding), size, attention_of(runs[0], size))
            for key, runs in results.runs.items()
            if not key.variant
        ]
        alt = f"Attention of the CLS token at {size} px, one row per encoding, one column per layer."
        figures[f"Attention at {size} px"] = Drawing(draw_attention(rows), "", alt)
    text = "RoPE-Mixed and LieRE learn to attend to the Y, absolute and VisionLLaMA less so"
    claim = Claim(text, "is not decided", "a visual claim, not measured: see the figures")
    notes = [
        "Attention is averaged over heads. Each map is rescaled to [0, 1] separately, from blue (lowest) to red "
        "(highest)."
    ]
    return Outcome([], [claim], figures, {}, notes)
