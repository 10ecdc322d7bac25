"""A figure that shows what a position encoding does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from liere.encodings import RotaryEncoding
from liere.encodings.liere import LieRE
from liere.encodings.visionllama import VisionLLaMA
from liere.inspection.measures import Inspection, basis_pattern
from liere.report.drawing import GRID, MUTED, canvas
from liere.report.encoding_style import encoding_color
from liere.vit import VisionTransformer

__all__ = ["draw_inspection"]


def draw_inspection(model: VisionTransformer, numbers: Inspection, title: str, path: Path) -> None:
    """Draw the patterns of generators, and the angles, commutators, relativity errors and gradients of a model."""
    with canvas(path, 2, 4, cell=(3.4, 3.1)) as (figure, axes):
        figure.suptitle(title, fontsize=13)
        for ax, (name, encoding) in zip(axes[0], _patterns(model, numbers), strict=True):
            _draw_pattern(ax, name, encoding)
        _draw_angles(axes[1, 0], numbers)
        _draw_commutators(axes[1, 1], numbers)
        _draw_relativity(axes[1, 2], numbers)
        _draw_gradients(axes[1, 3], numbers)
        for ax in axes[1, [0, 1, 3]]:
            ax.xaxis.get_major_locator().set_params(integer=True)


def _patterns(model: VisionTransformer, numbers: Inspection) -> list[tuple[str, RotaryEncoding | None]]:
    ndim, head_dim = len(model.grid), numbers.head_dim
    own = model.encoding if isinstance(model.encoding, RotaryEncoding) else None
    with warnings.catch_warnings(action="ignore"):  # the figure shows dimensions that are not rotated
        pairs = LieRE(ndim, head_dim, block_size=2)
    return [
        ("this model", own),
        ("VisionLLaMA", VisionLLaMA(ndim, head_dim) if head_dim >= 2 * ndim else None),
        ("RoPE-Mixed", pairs),
        ("LieRE, dense", LieRE(ndim, head_dim, block_size=head_dim)),
    ]


def _draw_pattern(ax: Any, name: str, encoding: RotaryEncoding | None) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    ax.set_title(f"Generators: {name}")
    if encoding is None:
        _say(ax, "no rotations")
        return
    colors = {"zero": "#23395d", "fixed": "#7fb2e5", "learned": "#f9c846"}
    ax.imshow(basis_pattern(encoding).numpy(), cmap=ListedColormap(list(colors.values())), vmin=0, vmax=2)
    ax.set(xticks=[], yticks=[])
    blocks = "1 block" if encoding.num_blocks == 1 else f"{encoding.num_blocks} blocks"
    ax.set_xlabel(f"{blocks} of size {encoding.block_size}, head_dim {encoding.head_dim}")
    if name == "this model":
        handles = [Patch(color=color, label=label) for label, color in colors.items()]
        ax.legend(handles=handles, loc="upper right", fontsize=7, framealpha=0.9)


def _draw_angles(ax: Any, numbers: Inspection) -> None:
    ax.set_title("Rotation angles across the grid")
    layers = [layer.angles for layer in numbers.layers if layer.angles is not None]
    if not layers:
        _say(ax, "no rotations")
        return
    axes = len(layers[0])
    colors = [encoding_color(name) for name in ("liere8", "liere", "visionllama", "rope_mixed")]
    for axis in range(axes):
        offset = (axis - (axes - 1) / 2) * 0.6 / axes
        points = [(layer + offset, angle) for layer, angles in enumerate(layers) for angle in angles[axis] if angle]
        index, angles = zip(*points, strict=True) if points else ((), ())
        ax.scatter(index, angles, s=4, alpha=0.35, lw=0, color=colors[axis % 4], label=f"axis {axis}")
    ax.set(xlabel="layer", ylabel="radians", yscale="log" if any(map(_turns, layers)) else "linear")
    ax.legend(fontsize=7, markerscale=3, framealpha=0.9)


def _draw_commutators(ax: Any, numbers: Inspection) -> None:
    ax.set_title("Commutator |AB − BA| / |A||B|")
    rows = [layer.commutator for layer in numbers.layers if layer.commutator is not None]
    if not rows:
        _say(ax, "one axis: no commutators" if numbers.rotated_dims else "no rotations")
        return
    image = ax.imshow(rows, aspect="auto", cmap="magma", vmin=0)
    ax.set(xlabel="head", ylabel="layer")
    ax.figure.colorbar(image, ax=ax, shrink=0.85)


def _draw_relativity(ax: Any, numbers: Inspection) -> None:
    ax.set_title("Relativity error |R(x)ᵀR(y) − R(y−x)|")
    if numbers.relativity_by_distance is None:
        _say(ax, "no rotations")
        return
    distances, errors = zip(*numbers.relativity_by_distance, strict=True)
    ax.scatter(distances, errors, s=10, color=encoding_color("liere8"), alpha=0.7, lw=0)
    ax.set(xlabel="distance between x and y", ylabel="relative to |R|", ylim=(-0.03, max(1.0, max(errors) * 1.1)))
    ax.grid(color=GRID)


def _draw_gradients(ax: Any, numbers: Inspection) -> None:
    ax.set_title("Gradient norm by layer")
    layers = range(len(numbers.layers))
    qkv = [layer.qkv_gradient for layer in numbers.layers]
    if None not in qkv:
        ax.bar(layers, qkv, color=GRID, label="q, k, v weights")
    generators = [layer.generator_gradient for layer in numbers.layers]
    if None not in generators:
        ax.plot(layers, generators, "o-", color=encoding_color("liere"), label="generators")
    elif numbers.encoding_gradient is not None:
        ax.axhline(numbers.encoding_gradient, color=encoding_color("liere"), label="encoding (shared)")
    ax.set(xlabel="layer", yscale="log")
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize=7, framealpha=0.9, loc="center right")


def _turns(angles: list[list[float]]) -> bool:
    return any(angle for axis in angles for angle in axis)


def _say(ax: Any, text: str) -> None:
    ax.axis("off")
    ax.text(0.5, 0.5, text, ha="center", va="center", color=MUTED, transform=ax.transAxes)
