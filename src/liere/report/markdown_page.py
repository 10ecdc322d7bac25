"""The report as Markdown, with its pictures in files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from liere.report.charts import Drawing
from liere.report.facts import circumstances, machine_facts
from liere.report.outline import outline
from liere.report.picture_data import Pictures, Sample
from liere.report.result_tables import bold_note, pair_tables, result_table, run_table, seed_table
from liere.report.table_cells import Cell, Table
from liere.report.verdict import finding

__all__ = ["escape", "fenced", "file_name", "folded", "markdown_table", "render_markdown"]

SAMPLES_A_LINE = 4


def render_markdown(
    comparison: dict[str, Any], pictures: Pictures, drawings: dict[str, Drawing], name: str = "report"
) -> str:
    """Return the report as GitHub shows it.

    Args:
        comparison: What was found.
        pictures: Images of the task, and attention.
        drawings: Figures by their captions.
        name: What the report's files are called; its pictures are in a folder of that name.
    """
    parts = [
        f"# {escape(comparison['title'])}",
        f"**{escape(finding(comparison))}**",
        escape(comparison["description"]),
        "; ".join(f"{name}: {escape(value)}" for name, value in circumstances(comparison).items()),
        *markdown_table(result_table(comparison)),
        *_figures(drawings, name),
        *_samples(pictures.samples, name),
        *_attention(pictures, name),
        *_pairs(comparison),
        *_seeds(comparison),
        "## How it was made",
        fenced("bash", comparison["command"]),
        f"On {escape(comparison['date'][:10])}. "
        + "; ".join(f"{escape(name)}: {escape(value)}" for name, value in machine_facts(comparison).items()),
        folded("Configuration", fenced("yaml", outline(comparison["config"]))),
        f"All numbers: [{name}.json]({name}.json).",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is.

    Example:
        >>> print(escape("a|b <c> *d*"))
        a\\|b \\<c\\> \\*d\\*
    """
    return re.sub(r"([\\`*\[\]<>|#&~$]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))


def markdown_table(table: Table) -> list[str]:
    """Return a table and its notes, in parts to be set apart; nothing of a table without rows."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def show(cell: Cell) -> str:
        return f"**{escape(cell.text)}**" if cell.strong else escape(cell.text)

    if not table.rows:
        return []
    rule = [("---:" if column.numeric else "---") for column in table.columns]
    lines = [line([escape(text) for text in table.header]), line(rule)]
    lines += [line([show(cell) for cell in row]) for row in table.rows]
    return ["\n".join(lines), *map(escape, table.notes)]


def _figures(drawings: dict[str, Drawing], name: str) -> list[str]:
    if not drawings:
        return []
    alt = " ".join(drawing.alt for drawing in drawings.values())
    links = ", ".join(f"[{caption.lower()}]({name}/{file_name(caption)})" for caption in drawings)
    return [f"![{alt}]({name}/overview.png)", f"By themselves: {links}."]


def file_name(caption: str) -> str:
    """Return the file of the figure with a caption.

    Example:
        >>> file_name("Learning curves")
        'learning-curves.png'
    """
    return re.sub(r"[^\w.]+", "-", caption.lower()).strip("-") + ".png"


def _samples(samples: Sequence[Sample], name: str) -> list[str]:
    if not samples:
        return []
    captions = [escape(sample.caption) for sample in samples]
    shown = [(f"![{caption}]({name}/sample-{i}.png)", caption) for i, caption in enumerate(captions)]
    lines: list[tuple[str, ...]] = []
    for start in range(0, len(shown), SAMPLES_A_LINE):
        lines += zip(*shown[start : start + SAMPLES_A_LINE], strict=True)
    width = len(lines[0])
    rows = ["| " + " | ".join([*line, *[""] * (width - len(line))]) + " |" for line in lines]
    return ["## The task", "\n".join([rows[0], "|" + "---|" * width, *rows[1:]])]


def _attention(pictures: Pictures, name: str) -> list[str]:
    if not pictures.attention:
        return []
    parts = [
        "## What the models attend to",
        "Attention of the CLS token over the image: blue is least, red is most. Each map is rescaled to [0, 1] by "
        "itself, so colours tell where a layer looks, not how much more than another.",
    ]
    for size in pictures.attention_by_size():
        parts += [
            f"At {size} px:",
            f"![Attention maps at {size} px, one row per encoding]({name}/attention-{size}.png)",
        ]
    return parts


def _pairs(comparison: dict[str, Any]) -> list[str]:
    tables = pair_tables(comparison)
    if not tables:
        return []
    parts = ["## Pairs", escape(f"{comparison['pairs_note']} {bold_note(comparison)}".strip())]
    for table in tables.values():
        parts += [f"{table.title}:", *markdown_table(table)]
    return parts


def _seeds(comparison: dict[str, Any]) -> list[str]:
    tables = [table for table in (seed_table(comparison), run_table(comparison)) if table.rows]
    return [folded(table.title, "\n\n".join(markdown_table(table))) for table in tables]


def folded(summary: str, body: str) -> str:
    """Return text that is shown when it is asked for."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def fenced(language: str, text: str) -> str:
    """Return a block of code, with a fence longer than any in it."""
    fence = "`" * max([3, *(1 + len(ticks) for ticks in re.findall("`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"
