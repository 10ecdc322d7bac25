"""The report as Markdown, with its pictures in separate files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liere.report.comparison_setup import comparison_setup, machine_and_versions
from liere.report.drawing import Drawing
from liere.report.headline import headline
from liere.report.markdown_parts import escape, fenced, file_name, folded, link, markdown_table
from liere.report.pair_tables import bold_note, pair_tables
from liere.report.picture_data import ATTENTION_NOTE, Pictures, Sample
from liere.report.result_table import result_table
from liere.report.seed_tables import run_table, seed_table
from liere.report.yaml_text import yaml_text

__all__ = ["render_markdown"]

SAMPLES_PER_LINE = 4


def render_markdown(
    comparison: dict[str, Any], pictures: Pictures, drawings: dict[str, Drawing], name: str = "report"
) -> str:
    """Return the report of a comparison as GitHub-flavored Markdown.

    Args:
        comparison: The results, as `report.json` stores them.
        pictures: Images of the task, and attention maps.
        drawings: Figures by caption.
        name: Base name of the report's files, and of the folder with its pictures.
    """
    parts = [
        f"# {escape(comparison['title'])}",
        f"**{escape(headline(comparison))}**",
        escape(comparison["description"]),
        "; ".join(f"{name}: {escape(value)}" for name, value in comparison_setup(comparison).items()),
        *markdown_table(result_table(comparison)),
        *_figures(drawings, name),
        *_samples(pictures.samples, name),
        *_attention(pictures, name),
        *_pairs(comparison),
        *_seeds(comparison),
        "## How this report was made",
        fenced("bash", comparison["command"]),
        f"On {escape(comparison['date'][:10])}. "
        + "; ".join(f"{escape(name)}: {escape(value)}" for name, value in machine_and_versions(comparison).items()),
        folded("Configuration", fenced("yaml", yaml_text(comparison["config"]))),
        f"All numbers are in {link(f'{name}.json', f'{name}.json')}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _figures(drawings: dict[str, Drawing], name: str) -> list[str]:
    if not drawings:
        return []
    alt = " ".join(drawing.alt for drawing in drawings.values())
    links = ", ".join(link(caption.lower(), name, file_name(caption)) for caption in drawings)
    return [f"!{link(alt, name, 'overview.png')}", f"Separate figures: {links}."]


def _samples(samples: Sequence[Sample], name: str) -> list[str]:
    if not samples:
        return []
    captions = [sample.caption for sample in samples]
    shown = [(f"!{link(one, name, f'sample-{i}.png')}", escape(one)) for i, one in enumerate(captions)]
    lines: list[tuple[str, ...]] = []
    for start in range(0, len(shown), SAMPLES_PER_LINE):
        lines += zip(*shown[start : start + SAMPLES_PER_LINE], strict=True)
    width = len(lines[0])
    rows = ["| " + " | ".join([*line, *[""] * (width - len(line))]) + " |" for line in lines]
    return ["## The task", "\n".join([rows[0], "|" + "---|" * width, *rows[1:]])]


def _attention(pictures: Pictures, name: str) -> list[str]:
    if not pictures.attention:
        return []
    parts = [
        "## What the models attend to",
        ATTENTION_NOTE,
    ]
    for size in pictures.attention_by_size():
        parts += [
            f"At {size} px:",
            f"!{link(f'Attention maps at {size} px, one row per encoding', name, f'attention-{size}.png')}",
        ]
    return parts


def _pairs(comparison: dict[str, Any]) -> list[str]:
    tables = pair_tables(comparison)
    if not tables:
        return []
    parts = [
        "## Are the differences significant?",
        escape(f"{comparison['pairs_note']} {bold_note(comparison)}".strip()),
    ]
    for table in tables.values():
        parts += [f"{table.title}:", *markdown_table(table)]
    return parts


def _seeds(comparison: dict[str, Any]) -> list[str]:
    tables = [table for table in (seed_table(comparison), run_table(comparison)) if table.rows]
    return [folded(table.title, "\n\n".join(markdown_table(table))) for table in tables]
