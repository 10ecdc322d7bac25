"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from liere import __version__
from liere.commands import bench, demo, flops, inspect_command

__all__ = ["main", "make_parser"]

COMMANDS = {"demo": demo, "bench": bench, "flops": flops, "inspect": inspect_command}


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="liere", description="Learned rotational position encodings for transformers."
    )
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser.add_argument("--version", action="version", version=f"liere {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, or 2 after a message that says what was wrong with the input."""
    args = make_parser().parse_args(arguments)
    try:
        args.run(args)
    except (ImportError, OSError, TypeError, ValueError) as error:
        if args.traceback:
            raise
        sys.stderr.write(f"liere: error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
