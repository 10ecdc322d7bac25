"""The part of the command line that handles signals before torch is imported, which takes seconds.

Importing `liere` imports torch, so this is a separate package.
"""

from __future__ import annotations

from liere_command.processes import end_with_first_process
from liere_command.signals import leave_on_signals, leave_silently
from liere_command.streams import open_missing_streams

__all__ = ["main"]


def main() -> int:
    """Run the `liere` command and return its exit code."""
    open_missing_streams()
    leave_on_signals()
    end_with_first_process()
    from liere.cli import main as run_command

    code = run_command()
    leave_silently(code)
    return code
