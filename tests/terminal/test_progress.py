from __future__ import annotations

import os

import pytest

from liere.terminal import progress
from liere.terminal.progress import ProgressLine


@pytest.fixture
def terminal(monkeypatch):
    """Make `ProgressLine` believe that it writes to a terminal with 20 columns."""
    monkeypatch.setattr("_pytest.capture.CaptureIO.isatty", lambda _: True, raising=False)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_CHANGES", 0.0)
    monkeypatch.setattr("shutil.get_terminal_size", lambda default: os.terminal_size((20, 24)))


def test_on_a_terminal_a_line_takes_the_place_of_the_last_one(capsys, terminal):
    line = ProgressLine()
    for done in range(2):
        line.show(f"race: {done} of 2")
    line.clear()
    assert capsys.readouterr().err == "\r\x1b[Krace: 0 of 2\r\x1b[Krace: 1 of 2\r\x1b[K"


def test_a_line_is_as_long_as_the_terminal_and_harmless(capsys, terminal):
    ProgressLine().show("run\x1b[2J " + 100 * "x")
    assert capsys.readouterr().err == "\r\x1b[K" + r"run\x1b[2J xxxxxxxxxxx"[:19]


def test_a_terminal_is_not_written_to_all_the_time(capsys, terminal, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_CHANGES", 60.0)
    line = ProgressLine()
    for done in range(9):
        line.show(f"{done}", now=done == 5)
    assert capsys.readouterr().err == "\r\x1b[K0\r\x1b[K5"


def test_elsewhere_there_is_a_line_now_and_then(capsys, monkeypatch):
    line = ProgressLine()
    line.show("first", now=True)
    line.show("soon after")
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    line.show("later")
    line.clear()
    assert capsys.readouterr().err == "first\nlater\n"


def test_lines_go_where_the_caller_wants_them(capsys):
    lines: list[str] = []
    ProgressLine(lines.append).show("here", now=True)
    assert (lines, capsys.readouterr().err) == (["here"], "")


@pytest.mark.usefixtures("terminal")
def test_nothing_is_shown_if_that_is_not_wanted(capsys):
    line = ProgressLine(is_shown=False)
    line.show("line", now=True)
    line.clear()
    assert capsys.readouterr().err == ""
