from __future__ import annotations

import errno
import io
import os

import pytest

from liere.terminal.messages import say, tell, warn, write_or_leave


def test_lines_go_to_their_streams(capsys):
    say("result")
    tell("progress")
    warn("careful")
    captured = capsys.readouterr()
    assert captured.out == "result\nprogress\n"
    assert captured.err == "careful\n"


def test_what_terminals_would_obey_is_made_visible(capsys):
    say("a\x1b[2J\nb")
    tell("c\nd\x1b")
    warn("e\x07")
    captured = capsys.readouterr()
    assert captured.out == "a\\x1b[2J\nb\nc\\nd\\x1b\n"
    assert captured.err == "e\\x07\n"


def test_an_empty_line(capsys):
    say()
    assert capsys.readouterr().out == "\n"


def test_a_reader_that_is_gone_does_not_end_the_work():
    end, beginning = os.pipe()
    with os.fdopen(beginning, "w") as stream:
        os.close(end)
        write_or_leave(stream, "nobody reads this\n")
        write_or_leave(stream, "nor this\n")
        stream.write("and closing it is no error\n")


class Full(io.StringIO):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


def test_a_full_disk_does_not_end_the_work_and_the_stream_is_kept():
    write_or_leave(Full(errno.ENOSPC), "lost\n")  # asking for its number would raise


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO])
def test_a_stream_without_reader_is_sent_nowhere(number, tmp_path):
    with open(tmp_path / "file", "w") as file:
        stream = Full(number)
        stream.fileno = file.fileno
        write_or_leave(stream, "lost\n")
        file.write("later\n")
    assert (tmp_path / "file").read_text() == ""
