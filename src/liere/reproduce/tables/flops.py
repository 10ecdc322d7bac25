"""Number of operations in a forward pass."""

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
BATCH = 512  # as in the paper


def build_flops() -> Outcome:
    """Return the table of multiply-adds: as printed in the paper, as the paper counts, and the full cost."""
    columns = [Column("encoding", numeric=False)]
    columns += [
        Column(name, model) for model in MODELS.values() for name in ("printed", "as the paper counts", "full cost")
    ]
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
                notes.append(f"* {label(encoding)}, {model}: error in the paper; its formula gives the next column.")
            numbers.setdefault(encoding, {})[size] = count.as_dict()
            most = max(most, count.true / plain.true - 1)
        rows.append(cells)
    notes.append(
        f"CIFAR-100 input, batch size {BATCH}; a multiply-add counts as one operation. The paper leaves out the matrix "
        "exponential, which is computed once per batch; the full cost includes it."
    )
    claim = Claim(
        SAME,
        "holds" if most < LARGE_DIFFERENCE else "does not hold",
        f"up to +{100 * most:.1f} % with the exponential; exact, no test; more with small batches (`liere flops`)",
    )
    return Outcome([Table("Multiply-adds of a forward pass", columns, rows)], [claim], {}, numbers, notes)


def _count(size: str, encoding: str) -> FlopCount:
    return count_flops(SIZES[size], encoding, batch_size=BATCH, **PAPER_INPUT)  # type: ignore[arg-type]
