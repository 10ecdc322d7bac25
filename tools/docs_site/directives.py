"""Directives and the role of the results pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole
from tools.docs_site.committed import RESULTS, look_up, numbers_of, show
from tools.docs_site.made_by import describe
from tools.docs_site.result_tables import TABLES
from tools.docs_site.table_nodes import table_nodes, text_nodes

from liere.errors import suggest
from liere.report.table_cells import Cell, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sphinx.application import Sphinx

__all__ = ["setup"]

VERDICTS = {"holds": "holds", "does not hold": "does not hold", "is not decided": "not decided"}


class ResultTable(SphinxDirective):
    """Show the tables of a name; `:only: 0 2` some of them, `:no-title:` without their captions."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"only": directives.unchanged, "no-title": directives.flag}

    def run(self) -> Sequence[nodes.Node]:
        """Return the nodes of the tables."""
        name = self.arguments[0]
        if name not in TABLES:
            raise self.error(f"there is no table {name!r}: {suggest(name, TABLES)}")
        tables = TABLES[name]()
        chosen = [tables[int(number)] for number in self.options.get("only", "").split()] or tables
        with_title = "no-title" not in self.options
        return [node for table in chosen for node in table_nodes(table, with_title=with_title)]


class Claims(SphinxDirective):
    """Show the claims of the paper that a reproduction judges, with verdict and evidence."""

    required_arguments = 1

    def run(self) -> Sequence[nodes.Node]:
        """Return the nodes of a table of claims."""
        file = f"reproduce/small/{self.arguments[0]}.json"
        self.env.note_dependency(str(RESULTS / file))
        rows = [
            [Cell(claim["text"]), Cell(VERDICTS[claim["verdict"]], strong=True), Cell(claim["evidence"])]
            for claim in numbers_of(file)["claims"]
        ]
        columns = [Column(name, numeric=False) for name in ("claim of the paper", "here it", "evidence")]
        return table_nodes(Table("", columns, rows))


class MadeBy(SphinxDirective):
    """Show how a result was made: command, cost, machine and the file with all numbers; options add what it lacks."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"command": directives.unchanged, "cost": directives.unchanged}

    def run(self) -> Sequence[nodes.Node]:
        """Return the nodes of a list of facts."""
        file = self.arguments[0]
        self.env.note_dependency(str(RESULTS / file))
        facts = {name.capitalize(): text for name, text in self.options.items()} | describe(numbers_of(file))
        fields = nodes.field_list(classes=["made-by"])
        for name, text in facts.items():
            body = [nodes.literal("", text)] if name == "Command" else text_nodes(text)
            fields += _field(name, body)
        page = f"{file.removesuffix('.json')}.html"
        links = [file, *([page] if (RESULTS / page).exists() else [])]
        parsed = [
            part
            for place, link in enumerate(links)
            for part in ([nodes.Text(", ")] if place else []) + self._download(link)
        ]
        fields += _field("Numbers", parsed)
        return [fields]

    def _download(self, file: str) -> list[nodes.Node]:
        parents = "../" * (self.env.docname.count("/") + 1)
        found, _ = self.parse_inline(f"[results/{file}]({parents}results/{file})")
        return found


class Result(SphinxRole):
    """Show a number of a result: `{result}`FILE PATH STYLE``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as text."""
        file, path, *style = self.text.split()
        self.env.note_dependency(str(RESULTS / file))
        try:
            text = show(look_up(numbers_of(file), path), *style)
        except (LookupError, OSError, TypeError, ValueError) as error:
            message = self.inliner.reporter.error(f"{self.text}: {error}", line=self.lineno)
            return [nodes.problematic(self.rawtext, self.rawtext)], [message]
        return [nodes.Text(text)], []


def _field(name: str, body: Sequence[nodes.Node]) -> nodes.field:
    paragraph = nodes.paragraph()
    paragraph += body
    return nodes.field("", nodes.field_name("", name), nodes.field_body("", paragraph))


def setup(app: Sphinx) -> None:
    """Register them."""
    app.add_directive("result-table", ResultTable)
    app.add_directive("claims", Claims)
    app.add_directive("made-by", MadeBy)
    app.add_role("result", Result())
