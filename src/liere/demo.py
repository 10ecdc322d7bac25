"""What each encoding makes of a grid: the rotations of positions, drawn as pictures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from liere.encodings import RotaryEncoding, TransformerShape, create_encoding
from liere.evaluation.figures import MUTED, canvas, encoding_label, require_matplotlib
from liere.evaluation.inspection import relativity_errors
from liere.generators import commutator_norm
from liere.positions import grid_positions

__all__ = ["run_demo"]

ENCODINGS = ("visionllama", "rope_mixed", "liere8", "liere")
HEAD_DIM = 64
GRID = (14, 14)
SAMPLES = 71  # positions along each side of a picture
BEYOND = 0.35  # how far pictures reach beyond the training grid, whose sides are 1
QUERIES = ((0.5, 0.5), (0.15, 0.8))


def run_demo(out: Path, say: Callable[[str], None], *, seed: int = 0) -> dict[str, Any]:
    """Draw the rotations of one head of each rotary encoding, print a table, and write both to `out`.

    Args:
        out: Folder for `demo.png` and `demo.json`.
        say: Receives the lines to show.
        seed: Seed of the generators and the content vector.

    Returns:
        The numbers of the table.
    """
    require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    side = torch.linspace(-BEYOND, 1 + BEYOND, SAMPLES)
    field = torch.stack(torch.meshgrid(side, side, indexing="ij"), dim=-1).flatten(0, 1)
    content = torch.randn(HEAD_DIM, generator=torch.Generator().manual_seed(seed))
    content = content / content.norm()
    rows, pictures = [], {}
    say(f"{'encoding':15} {'parameters of a head':>20} {'commutator':>11} {'relativity error':>17}")
    for name in ENCODINGS:
        torch.manual_seed(seed)
        rope = create_encoding(name, TransformerShape(GRID, HEAD_DIM, 1, 1))
        assert isinstance(rope, RotaryEncoding)
        row, pictures[name] = _measure(name, rope, field, content)
        rows.append(row)
        say(f"{name:15} {row['parameters']:20,} {row['commutator']:11.3f} {row['relativity_error']:17.1e}")
    picture = out / "demo.png"
    _draw(pictures, picture)
    numbers = {"seed": seed, "head_dim": HEAD_DIM, "grid": GRID, "encodings": rows}
    (out / "demo.json").write_text(json.dumps(numbers, indent=1) + "\n")
    say("")
    say("relativity error: how far R(x)ᵀR(y) is from R(y - x); 0 means that attention sees relative positions only.")
    say(f"done in {time.perf_counter() - start:.1f} s: look at {picture}")
    return numbers


def _measure(name: str, rope: RotaryEncoding, field: Tensor, content: Tensor) -> tuple[dict[str, Any], list[Tensor]]:
    with torch.no_grad():
        turned = _turn(rope, field, content)
        grid = grid_positions(GRID)
        rows, columns = rope.skew_generators(0)
        row = {
            "encoding": name,
            "parameters": sum(p.numel() for p in rope.parameters()),
            "commutator": commutator_norm(rows, columns).mean().item(),
            "relativity_error": relativity_errors(rope, grid, grid.flip(0)).mean().item(),
        }
        kernels = [turned @ _turn(rope, torch.tensor([query]), content)[0] for query in QUERIES]
    return row, [kernel.view(SAMPLES, SAMPLES) for kernel in kernels] + [_as_colours(turned)]


def _turn(rope: RotaryEncoding, positions: Tensor, content: Tensor) -> Tensor:
    """Return the content vector as rotated at each position, `[positions, head_dim]`."""
    vector = content.expand(1, 1, len(positions), -1)
    return rope(vector, vector, positions)[0][0, 0]


def _as_colours(vectors: Tensor) -> Tensor:
    """Show vectors as colours: their three main directions as red, green and blue."""
    centred = vectors - vectors.mean(0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    parts = centred @ directions[:3].T
    low, high = parts.quantile(0.02, dim=0), parts.quantile(0.98, dim=0)
    return ((parts - low) / (high - low)).clamp(0, 1).view(SAMPLES, SAMPLES, 3)


def _draw(pictures: dict[str, list[Tensor]], path: Path) -> None:
    extent = (-BEYOND, 1 + BEYOND, 1 + BEYOND, -BEYOND)
    labels = ["query in the centre", "query at another place", "rotated vector as colour"]
    with canvas(path, 3, len(pictures), cell=(2.6, 2.75)) as (figure, axes):
        figure.suptitle("Similarity of a query with the same content elsewhere, before training", fontsize=13)
        for column, (name, images) in enumerate(pictures.items()):
            axes[0, column].set_title(encoding_label(name))
            for row, image in enumerate(images):
                ax = axes[row, column]
                ax.set(xticks=[], yticks=[])
                shown = ax.imshow(image.numpy(), extent=extent, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
                ax.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color="black", lw=0.8, ls="--")
                if row < len(QUERIES):
                    ax.plot(QUERIES[row][1], QUERIES[row][0], "+", color="black", ms=7)
                    ax.set_xlabel(f"{image.min():.2f} to {image.max():.2f}", fontsize=8)
                if column == 0:
                    ax.set_ylabel(labels[row])
                if row == 0 and column == len(pictures) - 1:
                    figure.colorbar(shown, ax=axes[: len(QUERIES), :], shrink=0.5, pad=0.01)
        figure.supxlabel("dashed: the training grid; LieRE may depend on where the query is", fontsize=9, color=MUTED)
