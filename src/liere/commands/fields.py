"""The fields of a run's configuration as arguments: `--model.dim 64`."""

from __future__ import annotations

import argparse

from liere.optional.extras import explain_missing

__all__ = ["add_fields", "given_fields"]

PREFIX = "field:"


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add an argument for every field; none where the packages for training are not installed, which `run` tells."""
    parser.allow_abbrev = False
    try:
        from liere.runs.config import config_fields
    except ImportError as error:
        parser.set_defaults(fields_missing=explain_missing(error))
        return
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, field in config_fields():
        section = name.rpartition(".")[0]
        if section not in groups:
            groups[section] = parser.add_argument_group(
                f"fields of {section}" if section else "fields", "override the configuration"
            )
        default = "null" if field.default is None else field.default
        groups[section].add_argument(
            f"--{name}",
            dest=PREFIX + name,
            default=argparse.SUPPRESS,
            metavar="X",
            help=f"{field.description} (default: {default})".replace("%", "%%"),
        )


def given_fields(args: argparse.Namespace) -> dict[str, str]:
    """Return the fields that were given, as words."""
    return {key.removeprefix(PREFIX): word for key, word in vars(args).items() if key.startswith(PREFIX)}
