"""The commands of `liere` and their options, from the parser."""

from __future__ import annotations

import argparse
import re

from liere.cli import make_parser
from liere.report.table_cells import Cell, Column, Table

__all__ = ["command_parsers", "option_table", "usage"]

WIDTH = 90
SPECIAL = {"--help"}


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, by its name; commands of commands like `data preview` follow theirs."""
    return _inner_parsers(make_parser(), "")


def usage(parser: argparse.ArgumentParser) -> str:
    """Return how a command is called, without the fields of a configuration, which have a page of their own."""
    formatter = argparse.HelpFormatter(prog=parser.prog, width=WIDTH)
    fields = {id(action) for group in _field_groups(parser) for action in group._group_actions}
    shown = [action for action in parser._actions if id(action) not in fields and "-h" not in action.option_strings]
    formatter.add_usage(parser.usage, shown, parser._mutually_exclusive_groups, prefix="")
    text = formatter.format_help().strip()
    return f"{text} [--SECTION.FIELD X ...]" if fields and "--SECTION.FIELD" not in text else text


def option_table(parser: argparse.ArgumentParser) -> Table:
    """Return the arguments of a command with their meanings, in one line for all fields of a configuration."""
    fields = _field_groups(parser)
    others = [group for group in parser._action_groups if group not in fields]
    rows = [row for group in others for action in group._group_actions for row in _rows(action)]
    if fields:
        rows.append(("`--SECTION.FIELD X`", "any field of the configuration, like `--model.dim 64`"))
    columns = [Column("argument", numeric=False), Column("meaning", numeric=False)]
    return Table("", columns, [[Cell(name), Cell(meaning)] for name, meaning in rows])


def _inner_parsers(parser: argparse.ArgumentParser, before: str) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found[before + name] = inner
                found |= _inner_parsers(inner, f"{before}{name} ")
    return found


def _field_groups(parser: argparse.ArgumentParser) -> list[argparse._ArgumentGroup]:
    """Return the groups of fields that are given by their full names alone."""
    return [
        group
        for group in parser._action_groups
        if str(group.title).startswith("fields")
        and all(len(action.option_strings) == 1 for action in group._group_actions)
    ]


def _rows(action: argparse.Action) -> list[tuple[str, str]]:
    if SPECIAL & set(action.option_strings) or action.help == argparse.SUPPRESS:
        return []
    if isinstance(action, argparse._SubParsersAction):
        return [(f"`{choice.dest}`", _meaning(choice)) for choice in action._choices_actions]
    value = argparse.HelpFormatter("")._format_args(action, _metavar(action)) if action.nargs != 0 else ""
    names = action.option_strings or [""]
    shown = [" ".join(filter(None, (name, value))) for name in names[:1]] + names[1:]
    return [(", ".join(f"`{name}`" for name in shown), _meaning(action))]


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def _meaning(action: argparse.Action) -> str:
    """Return the help of an action with its placeholders filled in."""
    text = action.help or ""
    return re.sub(r"\s+", " ", text % {"default": action.default, "prog": "liere"})
