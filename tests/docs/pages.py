"""The pages of the project, and what is in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
SITE = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
PAGES = [page for page in (*TOP, *SITE) if page.exists()]
REPORTS = sorted((ROOT / "results").rglob("*.md"))
"""Pages that commands have written."""

FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,4} (.+)$", re.MULTILINE)
TARGET = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    """Return the path of a page, to name a test."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCED.sub("", page.read_text())


def links(page: Path) -> list[str]:
    """Return the targets of links and pictures inside the project."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return [link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """Return what a link to a part of a page may name: headings as GitHub and MyST write them, and targets."""
    text = prose(page)
    return {slug(title) for title in HEADING.findall(text)} | set(TARGET.findall(text))


def slug(title: str) -> str:
    """Return the anchor of a heading.

    Example:
        >>> slug("`liere train`: how, and why?")
        'liere-train-how-and-why'
    """
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def numbers(file: str) -> Any:
    """Return what a file of `results/` holds."""
    return json.loads((ROOT / "results" / file).read_text())


def one_line(page: Path) -> str:
    """Return a page with single spaces, so that sentences can be looked for wherever its lines break."""
    return " ".join(page.read_text().split())
