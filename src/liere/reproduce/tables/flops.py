"""Operations of a forward pass."""

from __future__ import annotations

from typing import Any

from liere.flops import PAPER, PAPER_INPUT, FlopCount, count_flops
from liere.presets import SIZES
from liere.report.table_cells import Cell, Column, Table
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.row_labels import label

__all__ = ["build_flops"]

MODELS = {"vit_tiny": "ViT-Tiny", "vit_base": "ViT-Base", "vit_large": "ViT-Large"}
ENCODINGS = ("absolute", "visionllama", "rope_mixed", "liere8", "liere64")
SAME = "There is no substantial difference in computational efficiency between the methods"
LARGE_DIFFERENCE = 0.05
BATCH = 512  # of the paper


def build_flops() -> Outcome:
    """Table of multiply-adds: as the paper prints them, as it counts them, and with all that is done."""
    columns = [Column("encoding", numeric=False)]
    columns += [Column(name, model) for model in MODELS.values() for name in ("printed", "as the paper counts", "true")]
    rows, numbers, notes = [], dict[str, Any](), []
    most = 0.0
    for encoding in ENCODINGS:
        cells = [Cell("absolute" if encoding == "absolute" else label(encoding))]
        for size, model in MODELS.items():
            count, plain = _count(size, encoding), _count(size, "absolute")
            figure = PAPER[size, encoding]
            is_slip = figure.is_slip(count.paper / 1e9, plain.paper / 1e9)
            cells += [
                Cell(f"{figure.giga:.3f} G" + ("*" if is_slip else "")),
                Cell(f"{count.paper / 1e9:.3f} G", f"+{100 * (count.paper / plain.paper - 1):.3f} %"),
                Cell(f"{count.true / 1e9:.3f} G", f"+{100 * (count.true / plain.true - 1):.1f} %"),
            ]
            if is_slip:
                notes.append(
                    f"* {label(encoding)}, {model}: a slip of the paper; its formula gives the figure beside it."
                )
            numbers.setdefault(encoding, {})[size] = count.as_dict()
            most = max(most, count.true / plain.true - 1)
        rows.append(cells)
    notes.append(
        f"CIFAR-100 input, batch {BATCH}, one multiply-add counted as one. The paper leaves out the matrix "
        "exponential, which is made once a batch; true figures have it."
    )
    claim = Claim(
        SAME,
        "holds" if most < LARGE_DIFFERENCE else "does not hold",
        f"up to +{100 * most:.1f} % with the exponential; no test; small batches pay more (`liere flops`)",
    )
    return Outcome([Table("Multiply-adds of a forward pass", columns, rows)], [claim], {}, numbers, notes)


def _count(size: str, encoding: str) -> FlopCount:
    return count_flops(SIZES[size], encoding, batch_size=BATCH, **PAPER_INPUT)  # type: ignore[arg-type]
