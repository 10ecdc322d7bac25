"""Draw the layers of the package, as the import contract in pyproject.toml lists them.

    python tools/draw_layers.py

writes docs/images/layers.svg. All text stands on filled boxes, so the picture is readable on light and dark pages.
"""

from __future__ import annotations

import re
import sys
import tomllib
from html import escape
from pathlib import Path

__all__ = ["draw", "main", "read_layers"]

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "layers.svg"

WIDTH, ROW, GAP, PAD = 900, 46, 8, 12
RULE = "A module imports only from rows below its own. Boxes that touch may import each other; separate boxes may not."
PROGRAM, MEASURING, RUNNING, SUPPORT, CORE, NOTE = "#4338ca", "#6d28d9", "#0369a1", "#475569", "#0f766e", "#57606a"

MODULES = {
    "cli": (PROGRAM, "the program liere"),
    "commands": (PROGRAM, "parse arguments, call one function of the toolkit, print"),
    "toolkit": (PROGRAM, "train, evaluate, predict, compare, report, reproduce: the commands from Python"),
    "reproduce": (MEASURING, "the paper's tables, numbers and claims"),
    "comparison": (MEASURING, "many runs, one recipe"),
    "bench": (MEASURING, "one timing question per file"),
    "inspection": (MEASURING, "what an encoding does"),
    "integrations": (MEASURING, "models and weights of others"),
    "report": (MEASURING, "from summaries to HTML, Markdown, JSON and pictures"),
    "training": (RUNNING, "from a run to its weights (Lightning)"),
    "evaluation": (RUNNING, "from weights to predictions to statistics"),
    "runs": (RUNNING, "what a run is: configuration, folder, records, checkpoints, model"),
    "data": (RUNNING, "one data set per file: fields, facts, loader"),
    "files": (SUPPORT, "safe reading and writing"),
    "optional": (SUPPORT, "optional packages"),
    "terminal": (SUPPORT, "messages, progress"),
    "machine": (SUPPORT, "cores, versions"),
    "config_fields": (SUPPORT, "types of fields"),
    "fold": (CORE, "the 1-D theorem of the paper"),
    "flops": (CORE, "operations of a forward pass"),
    "presets": (CORE, "create_model and its sizes"),
    "vit": (CORE, "the vision transformer, for any number of axes"),
    "layers": (CORE, "its patches, attention and blocks"),
    "vit_positions": (CORE, "positions of its tokens"),
    "encodings": (CORE, "one position encoding per file, one contract for all"),
    "positions": (CORE, "grids of positions"),
    "position_augmentation": (CORE, "random placement"),
    "packing": (CORE, "packed sequences"),
    "generators": (CORE, "skew matrices"),
    "rotations": (CORE, "exponential, application"),
    "shapes": (CORE, "types of tensors"),
    "errors": (CORE, "messages for users"),
    "devices": (CORE, "prompt copies"),
    "sharding": (CORE, "sharded parameters"),
    "tracing": (CORE, "compile and export"),
    "version": (CORE, "the version"),
}
"""Color and description of each module."""


def read_layers(text: str) -> list[tuple[list[str], bool]]:
    """Return the rows of the import contract from top to bottom: modules, and whether they may import each other.

    Args:
        text: Content of pyproject.toml.

    Example:
        >>> contract = 'type = "layers"\\nlayers = ["cli : commands", "training | evaluation"]'
        >>> read_layers("[[tool.importlinter.contracts]]\\n" + contract)
        [(['cli', 'commands'], True), (['training', 'evaluation'], False)]
    """
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [(re.split(r"\s*[|:]\s*", layer), ":" in layer) for layer in layers]


def draw(layers: list[tuple[list[str], bool]]) -> str:
    """Return the picture as SVG.

    Raises:
        ValueError: If a module has no description in `MODULES`.
    """
    missing = [module for modules, _ in layers for module in modules if module not in MODULES]
    if missing:
        raise ValueError(f"describe {', '.join(missing)} in MODULES of tools/draw_layers.py")
    parts, top, was_core = [_note(0, RULE)], 30, False
    for modules, is_joined in layers:
        is_core = MODULES[modules[0]][0] == CORE
        if is_core and not was_core:
            parts.append(_note(top, "Everything below needs torch and nothing else."))
            top += 30
        was_core = is_core
        gap = 1 if is_joined else GAP
        width = (WIDTH - gap * (len(modules) - 1)) / len(modules)
        parts += [_box(place * (width + gap), top, width, module) for place, module in enumerate(modules)]
        top += ROW + GAP
    names = "; ".join(", ".join(modules) for modules, _ in layers)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP}" role="img" '
        f'font-family="system-ui, sans-serif">\n<title>The layers of liere, from top to bottom</title>\n'
        f"<desc>{escape(names)}</desc>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _box(left: float, top: float, width: float, module: str) -> str:
    color, about = MODULES[module]
    x = left + PAD
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW}" rx="5" fill="{color}"/>'
        f'<text x="{x:.1f}" y="{top + 19}" fill="#fff" font-size="13" font-weight="600" font-family="monospace">'
        f'{module}</text><text x="{x:.1f}" y="{top + 36}" fill="#fff" font-size="12">{escape(about)}</text>'
    )


def _note(top: int, text: str) -> str:
    return (
        f'<rect x="0" y="{top}" width="{WIDTH}" height="22" rx="5" fill="{NOTE}"/>'
        f'<text x="{PAD}" y="{top + 15}" fill="#fff" font-size="12" font-style="italic">{escape(text)}</text>'
    )


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(draw(read_layers((ROOT / "pyproject.toml").read_text())))
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
