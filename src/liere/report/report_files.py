"""Write the report of a comparison: HTML, Markdown, JSON and pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from liere.errors import InputError, visible
from liere.evaluation.summary import FORMAT
from liere.files.writing import write_atomically
from liere.report.charts import draw_attention, draw_curves, draw_overview, draw_resolution
from liere.report.html_page import render_page
from liere.report.json_text import json_text
from liere.report.markdown_page import render_markdown
from liere.report.markdown_parts import file_name
from liere.report.picture_data import Pictures

__all__ = ["write_report"]

CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
"""Terminal control codes and text-direction overrides, which titles and facts of runs may contain."""


def write_report(comparison: dict[str, Any], pictures: Pictures, folder: Path, name: str = "report") -> Path:
    """Write `report.html`, `report.md`, `report.json` and a folder `report/` with the pictures of the Markdown page.

    Args:
        comparison: The results, as `summarize` returns them.
        pictures: Images of the task, and attention maps.
        folder: Where to write; created if it does not exist.
        name: Base name of the files and of the folder of pictures.

    Returns:
        The path of the HTML page, which is written last.

    Raises:
        ValueError: If the format of the comparison is not supported.
        ImportError: If matplotlib is not installed.
        OSError: If a file cannot be written; each file is replaced atomically.
    """
    if comparison.get("format") != FORMAT:
        raise InputError(
            f"comparison has format {comparison.get('format')!r}, but only {FORMAT!r} is supported: "
            "run liere report on its runs again"
        )
    drawn = {"Learning curves": draw_curves(comparison), "Resolution": draw_resolution(comparison)}
    drawings = {caption: drawing for caption, drawing in drawn.items() if drawing}

    images = {file_name(caption): drawing.png for caption, drawing in drawings.items()}
    if overview := draw_overview(comparison):
        images["overview.png"] = overview
    images |= {f"sample-{i}.png": sample.png for i, sample in enumerate(pictures.samples)}
    images |= {f"attention-{size}.png": draw_attention(rows) for size, rows in pictures.attention_by_size().items()}
    texts = {
        f"{name}.json": json_text(comparison),
        f"{name}.md": render_markdown(comparison, pictures, drawings, name),
        f"{name}.html": render_page(comparison, pictures, drawings, name),
    }

    (folder / name).mkdir(parents=True, exist_ok=True)
    for file, image in images.items():
        write_atomically(folder / name / file, image)
    for file, text in texts.items():
        write_atomically(folder / file, CONTROL.sub(lambda found: visible(found[0]), text))
    return folder / f"{name}.html"
