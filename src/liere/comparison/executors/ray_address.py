"""The address of a Ray cluster: Ray itself tries a wrong one for minutes before it says so."""

from __future__ import annotations

import os
import socket

from liere.errors import InputError

__all__ = ["check_answers", "check_form", "unreachable"]

ANSWER_SECONDS = 5.0  # for a machine to accept a connection


def check_form(address: str) -> None:
    """Raise `ValueError` if an address is one of a Ray Client, which sees neither the machines nor the folder."""
    if "://" in address:
        raise InputError(
            f"--address {address} is for Ray Client, which is not supported: run the command on a machine of the "
            "cluster with --address auto or HOST:PORT"
        )


def check_answers(address: str) -> None:
    """Raise `ValueError` if nothing accepts connections at HOST:PORT; other addresses are left to Ray.

    Args:
        address: The address; `"auto"` means the one in the variable RAY_ADDRESS, if that is set.
    """
    place = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal() or "://" in place:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise unreachable(place, str(error)) from None


def unreachable(address: str, reason: str) -> InputError:
    """Return the error for a cluster that does not answer."""
    return InputError(
        f"no Ray cluster can be reached at --address {address} ({reason}): start one with `ray start --head`, or use "
        "--address local to execute runs on this machine"
    )
