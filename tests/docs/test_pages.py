"""Pages do what they say: Python runs, commands are understood, links lead somewhere, named files exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import liere
from liere.cli import make_parser
from tests.docs.pages import PAGES, REPORTS, ROOT, anchors, blocks, links, name_of, slug

EXAMPLES = {"tests/encodings/test_ramp.py", "src/liere/encodings/ramp.py", "liere.encodings.ramp"}
"""Additions that a page shows how to make."""

pytestmark = pytest.mark.skipif(not PAGES, reason="the pages are not beside the tests")


@pytest.mark.usefixtures("no_shape_checks")  # as for users: with them, torch.export cannot keep a batch size open
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_runs_as_it_stands(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    for line in capsys.readouterr().out.splitlines():
        shown = line.split()[-1]  # what a block prints, the page tells
        assert (f"{int(shown):,}" if shown.isdigit() else shown) in page.read_text(), line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_are_understood(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in "\n".join(blocks(page, "bash")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["liere"]:
            make_parser().parse_args(words[1:])
        elif words:
            assert words[0] == "make", line
            assert words[1] in targets, line


def test_anchors_are_recognized(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n(here)=\n## `liere train`: two\n\n```bash\n# a comment\n```\n[a](b.md#c) `[d](e)`\n")
    assert anchors(page) == {"one", "here", "liere-train-two"}
    assert links(page) == ["b.md#c"]
    assert slug("LieRE₈ & co.") == "liere₈--co"


@pytest.mark.parametrize("page", [*PAGES, *REPORTS], ids=name_of)
def test_links_lead_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", [*PAGES, *REPORTS], ids=name_of)
def test_modules_and_files_that_are_named_exist(page):
    text = page.read_text()
    for path in set(re.findall(r"`((?:src|tests|tools|docs|experiments|results)/[\w./-]*\w)`", text)) - EXAMPLES:
        assert (ROOT / path).exists(), path
    text = re.sub(r"^```{api-module} .*$", "", text, flags=re.MULTILINE)  # shown only where the module is there
    for name in set(re.findall(r"\bliere(?:\.[a-z_0-9]+)+\b", text)) - EXAMPLES:
        parts = name.split(".")
        place = ROOT / "src" / Path(*parts[:2])
        if place.is_dir() and len(parts) > 2:  # a module of a package, or a function of the package itself
            module = place / f"{parts[2]}.py"
            exported = re.search(rf'"{parts[2]}"', (place / "__init__.py").read_text())
            assert module.exists() or (place / parts[2]).is_dir() or exported, name
        else:
            assert place.is_dir() or place.with_suffix(".py").exists() or parts[1] in liere.__all__, name


SPEAKING = ("src", "tests", "tools", "experiments", "examples", "results")
"""Folders with files that name pages."""


def test_pages_that_code_and_results_name_exist():
    named = {
        (found, file.relative_to(ROOT).as_posix())
        for folder in SPEAKING
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".yaml", ".md", ".json", ".html")
        for found in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())
    }
    assert sorted((page, file) for page, file in named if not (ROOT / page).exists()) == []
