"""Arguments shared by several commands."""

from __future__ import annotations

import argparse
import sys

import pytest

from liere.commands.arguments import option, positive_number, seed_number, side_number, size_on_axes, this_command


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (positive_number, "7", 7),
        (positive_number, "007", 7),
        (side_number, "10000", 10_000),
        (seed_number, "0", 0),
        (size_on_axes, "224", 224),
        (size_on_axes, "8x224x224", (8, 224, 224)),
        (size_on_axes, "1024x", (1024,)),
        (option, "share_heads=true", ("share_heads", True)),
        (option, "init_scale=0.5", ("init_scale", 0.5)),
        (option, "pool=mean", ("pool", "mean")),
    ],
)
def test_what_is_written_is_read(read, text, value):
    assert read(text) == value
    assert type(read(text)) is type(value)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (positive_number, "0", "must be a positive integer, for example 7, got '0'"),
        (positive_number, "\u0660", "must be a positive integer, for example 7, got '\u0660'"),
        (positive_number, "-1", "must be a positive integer, for example 7, got '-1'"),
        (seed_number, "1.5", r"must be a non-negative integer below 2\*\*63, for example 0, got '1.5'"),
        (seed_number, str(2**63), r"must be a non-negative integer below 2\*\*63, for example 0, got '9223"),
        (seed_number, 23 * "9", r"must be a non-negative integer below 2\*\*63, for example 0, got '999"),
        (option, "a=" + 100_000 * "[", r"invalid option 'a=\[\[.*': maximum recursion depth"),
        (option, "a=" + 5_000 * "9", r"invalid option 'a=999.*': Exceeds the limit"),
        (positive_number, "1" + 15 * "0" + "1", "must be at most 1,000,000,000,000,000, got 10000000000000001"),
        (positive_number, 10_000 * "9", "must be at most 1,000,000,000,000,000, got 9{197}"),
        (side_number, "10001", "must be at most 10,000, got 10001"),
        (size_on_axes, "8y8", "invalid size '8y8': write 224 for a square image"),
        (option, "=1", "invalid option '=1': write name=value"),
    ],
)
def test_what_is_something_else_is_told(read, text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        read(text)


def test_a_report_has_the_command_as_it_can_be_typed_without_where_it_goes(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["liere", "reproduce", "main", "--out", "my runs", "--export", "kept"])
    assert this_command() == "liere reproduce main --out 'my runs' --export kept"
    assert this_command(without="--export") == "liere reproduce main --out 'my runs'"
    monkeypatch.setattr(sys, "argv", ["liere", "reproduce", "main", "--export=kept"])
    assert this_command(without="--export") == "liere reproduce main"
