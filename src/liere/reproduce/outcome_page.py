"""Write a reproduction as files: HTML, Markdown, JSON and pictures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from liere.files.writing import write_atomically
from liere.report.json_text import json_text
from liere.report.markdown_parts import escape, fenced, file_name, folded, markdown_table
from liere.report.page_template import page_template
from liere.reproduce.catalog import Entry
from liere.reproduce.outcome import Outcome
from liere.reproduce.results import Results

__all__ = ["write_outcome"]


def write_outcome(
    entry: Entry, outcome: Outcome, results: Results | None, folder: Path, *, title: str, scale: str, command: str
) -> Path:
    """Write `NAME.html`, `NAME.md`, `NAME.json` and pictures in `NAME/`, and return the HTML page, written last.

    Args:
        entry: The table or figure.
        outcome: Its tables, figures and verdicts.
        results: The results behind it, if it needs runs.
        folder: Where to write.
        title: Title of the page.
        scale: Scale of the runs, as text.
        command: The command to show on the page.
    """
    runs = _runs(results)
    facts = {
        "title": title,
        "paper": entry.paper,
        "scale": scale,
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(sum(run["seconds"] for run in runs), 1),
    }
    numbers = facts | {
        "claims": [claim._asdict() for claim in outcome.claims],
        "numbers": outcome.numbers,
        "notes": outcome.notes,
        "runs": runs,
    }
    pictures = folder / entry.name
    for caption, drawing in outcome.figures.items():
        pictures.mkdir(parents=True, exist_ok=True)
        write_atomically(pictures / file_name(caption), drawing.png)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{entry.name}.json", json_text(numbers))
    write_atomically(folder / f"{entry.name}.md", _markdown(entry, outcome, facts, runs))
    page = page_template("reproduction.html.j2").render(
        outcome=outcome, facts_=facts, runs=runs, name=entry.name, colors={}
    )
    write_atomically(folder / f"{entry.name}.html", page)
    return folder / f"{entry.name}.html"


def _markdown(entry: Entry, outcome: Outcome, facts: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    parts = [f"# {escape(facts['title'])}", f"{escape(entry.paper)}, at {facts['scale']}."]
    for table in outcome.tables:
        parts += [f"**{escape(table.title)}**", *markdown_table(table)]
    parts += [f"![{escape(d.alt)}]({entry.name}/{file_name(caption)})" for caption, d in outcome.figures.items()]
    if outcome.claims:
        lines = [f"- {escape(c.text)}: **{c.verdict_text}** ({escape(c.evidence)})" for c in outcome.claims]
        parts += ["## Do the paper's claims hold here?", "\n".join(lines)]
    parts += [escape(note) for note in outcome.notes]
    parts += ["## How this page was made", fenced("bash", facts["command"])]
    if runs:
        lines = [f"- {escape(run['name'])}: {run['seconds']:,.0f} s" for run in runs]
        count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
        summary = f"{count}, {facts['seconds']:,.0f} s of training in total"
        parts.append(folded(summary, "\n".join(lines)))
    parts.append(f"All numbers are in [{entry.name}.json]({entry.name}.json).")
    return "\n\n".join(parts) + "\n"


def _runs(results: Results | None) -> list[dict[str, Any]]:
    if results is None:
        return []
    found = {run.folder.name: run for run in results.all_runs()}
    return [
        {
            "name": name,
            "encoding": run.config.model.encoding,
            "options": run.config.model.options,
            "seed": run.config.training.seed,
            "data": run.config.data.name,
            "precision": run.config.hardware.precision,
            "seconds": run.result()["seconds"],
            "date": run.result()["date"],
            "machine": run.result()["machine"],
            "versions": run.result()["versions"],
            "fingerprint": run.result()["fingerprint"],
        }
        for name, run in found.items()
    ]
