"""Directives of the reference pages: commands from their parser, configuration fields from their schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from tools.site.command_options import command_parsers, option_groups, usage
from tools.site.config_table import config_table
from tools.site.table_nodes import table_nodes, text_nodes

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
        call = nodes.literal_block("", usage(parser), language="text", classes=["usage"])
        call["language"] = "text"
        return [about, call, *(node for table in option_groups(parser) for node in table_nodes(table))]


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
    app.add_directive("config-fields", ConfigFields)
