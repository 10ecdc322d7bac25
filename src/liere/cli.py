"""The command line."""

from __future__ import annotations

import argparse
import io
import itertools
import os
import re
import signal
import sys
from collections.abc import Sequence

from liere import __version__
from liere.commands import (
    bench,
    compare,
    data,
    demo,
    eval_command,
    flops,
    inspect_command,
    predict,
    report,
    reproduce,
    train,
)
from liere.errors import UserError, suggest
from liere.optional.extras import explain_missing
from liere.terminal.messages import warn
from liere_command.signals import SignalInterrupt, release_signals, say_on_leaving, use_default_signals

__all__ = ["main", "make_parser", "parse_arguments"]

COMMANDS = {
    "demo": demo,
    "data": data,
    "train": train,
    "eval": eval_command,
    "predict": predict,
    "compare": compare,
    "reproduce": reproduce,
    "report": report,
    "bench": bench,
    "flops": flops,
    "inspect": inspect_command,
}
WITH_JOBS = (demo, compare, reproduce)
"""Commands that ask their jobs to save when they are interrupted; others have nothing to save, and leave at once."""
WITH_RANKS = (train, eval_command)
"""Commands that several processes may carry out together: they know their number later."""

NO_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory|Storage size calculation overflowed|Overflow when unpacking"
)
"""Messages of torch when a GPU or CPU runs out of memory, or a tensor would be larger than any memory."""

KEPT = 1_000  # characters of each end of a very long error message


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="liere",
        description="Learned rotary position encodings for transformers.",
        epilog="Run `liere COMMAND --help` for the options of a command.",
    )
    parser.add_argument("--traceback", action="store_true", help="show the full traceback of errors")
    parser.add_argument("--version", action="version", version=f"liere {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.")
        module.add_arguments(command)
        command.set_defaults(run=module.run, parser=command)
    return parser


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed arguments of a command; if they are invalid, print an error and exit with code 2."""
    parser = make_parser()
    words = itertools.takewhile(lambda word: word != "--", sys.argv[1:] if arguments is None else arguments)
    if wrong := next((word for word in words if word.startswith("--") and word.endswith("=--")), None):
        parser.exit(2, f"liere: error: {wrong} has no value: give one\n")  # argparse would give an empty list
    args, unknown = parser.parse_known_args(arguments)
    if unknown and hasattr(args, "fields_missing"):
        parser.exit(2, f"liere: error: {args.fields_missing}\n")
    if unknown:
        known = args.parser._option_string_actions
        hint = f": {suggest(unknown[0].partition('=')[0], known)}" if unknown[0].startswith("--") else ""
        parser.exit(2, f"liere: error: unknown argument {unknown[0]}{hint}\n")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 after an error message about the input, 128 + n after signal n."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that cannot show a character
    args = parse_arguments(arguments)
    if args.run is not train.run:
        say_on_leaving(lambda: "")
    if all(args.run is not command.run for command in WITH_RANKS):
        release_signals(1)
    try:
        # Elsewhere, Ctrl-C must not raise an exception: in a destructor, Python would ignore it.
        if any(args.run is command.run for command in WITH_JOBS):
            use_default_signals()
        return args.run(args) or 0
    except Exception as error:
        message = _explain(error)
        if message is None or args.traceback:
            raise
        warn(f"liere: error: {_one_line(message)}")
        return 2
    except KeyboardInterrupt as stop:
        number = stop.signal if isinstance(stop, SignalInterrupt) else signal.SIGINT
        by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
        warn("; ".join([f"liere: stopped{by}", *map(str, stop.args)]))
        return 128 + number


def _one_line(message: str) -> str:
    """Return a message as one line without its middle if it is very long: values from files may be, the rest is not."""
    line = " ".join(part.strip() for part in message.splitlines())
    return line if len(line) <= 2 * KEPT else f"{line[:KEPT]} ... {line[-KEPT:]}"


def _explain(error: Exception) -> str | None:
    """Return the message for an error that the user can fix; None for a bug."""
    if isinstance(error, OSError) and error.filename is not None:  # nothing of ours, which would have a remedy
        return (
            f"{os.fsdecode(error.filename)} could not be read or written ({error.strerror}): check the path, the "
            "permissions and the space on the disk"
        )
    if isinstance(error, UserError | OSError):
        return str(error)
    if isinstance(error, ImportError) and str(error.name).partition(".")[0] not in ("liere", "liere_command"):
        return explain_missing(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError | TypeError) and NO_MEMORY.search(str(error))):
        return f"out of memory ({error}): use a smaller batch or model, or a machine with more memory"
    return None


if __name__ == "__main__":
    sys.exit(main())
