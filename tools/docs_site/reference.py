"""Directives of the reference pages: commands from their parser, configuration fields from their schema."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from tools.docs_site.command_options import command_parsers, option_table, usage
from tools.docs_site.config_table import config_table
from tools.docs_site.table_nodes import table_nodes, text_nodes

from liere.errors import suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sphinx.application import Sphinx

__all__ = ["setup"]


class Command(SphinxDirective):
    """Show what a command does, how it is called, and its options."""

    required_arguments = 1
    optional_arguments = 1  # `data preview`
    final_argument_whitespace = True

    def run(self) -> Sequence[nodes.Node]:
        """Return the nodes."""
        name, parsers = " ".join(self.arguments), command_parsers()
        if name not in parsers:
            raise self.error(f"there is no command {name!r}: {suggest(name, parsers)}")
        parser = parsers[name]
        about = nodes.paragraph()
        about += text_nodes(_sentence(parser.description or ""))
        call = nodes.container("", nodes.literal_block("", usage(parser), language="text"), classes=["usage"])
        return [about, call, *table_nodes(option_table(parser))]


class ApiModule(SphinxDirective):
    """Show the public names of a module in a section, if this version has the module."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"title": directives.unchanged_required}

    def run(self) -> Sequence[nodes.Node]:
        """Return a section, or nothing."""
        module, title = self.arguments[0], self.options["title"]
        if importlib.util.find_spec(module) is None:
            return []
        section = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title)])
        section += nodes.title("", title)
        lines = ["```{eval-rst}", f".. automodule:: {module}", "   :members:", "   :imported-members:", "```"]
        section += self.parse_text_to_nodes("\n".join(lines))
        return [section]


class ConfigFields(SphinxDirective):
    """Show the fields of a section of a configuration."""

    required_arguments = 1

    def run(self) -> Sequence[nodes.Node]:
        """Return the nodes of a table."""
        return table_nodes(config_table(self.arguments[0]))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def setup(app: Sphinx) -> None:
    """Register them."""
    app.add_directive("command", Command)
    app.add_directive("api-module", ApiModule)
    app.add_directive("config-fields", ConfigFields)
