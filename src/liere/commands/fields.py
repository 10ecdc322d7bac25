"""The fields of a run's configuration as arguments: `--model.dim 64`."""

from __future__ import annotations

import argparse

from liere.optional.extras import explain_missing

__all__ = ["add_fields", "given_fields"]

PREFIX = "field:"


def add_fields(parser: argparse.ArgumentParser, only: str | None = None) -> None:
    """Add an argument for every field; none if the packages for training are missing, which `run` reports.

    Args:
        parser: The parser to extend.
        only: Section whose fields are added, each also by a short name: `--size` for `--data.size`. None for all.
    """
    parser.allow_abbrev = False
    try:
        from liere.runs.config import config_fields
    except ImportError as error:
        parser.set_defaults(fields_missing=explain_missing(error))
        return
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, field in config_fields():
        section, _, short = name.rpartition(".")
        if only not in (None, section) or (only, short) == (section, "name"):
            continue
        if section not in groups:
            groups[section] = parser.add_argument_group(
                f"{section} fields" if section else "fields", "override fields of the configuration"
            )
        default = "null" if field.default is None else "empty" if field.default == "" else field.default
        names = [name] if only is None else list(dict.fromkeys([short.replace("_", "-"), short, name]))
        groups[section].add_argument(
            *(f"--{one}" for one in names),
            dest=PREFIX + name,
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=f"{field.description} (default: {default})".replace("%", "%%"),
        )


def given_fields(args: argparse.Namespace) -> dict[str, str]:
    """Return the fields that were given, with their values as strings."""
    return {key.removeprefix(PREFIX): word for key, word in vars(args).items() if key.startswith(PREFIX)}
