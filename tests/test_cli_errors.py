"""Invalid input is reported in one line; a bug keeps its traceback."""

from __future__ import annotations

import argparse
import signal

import pytest

import liere.commands.flops
from liere.cli import main
from liere.errors import InputError, InputTypeError, UserError
from liere_command.signals import SignalInterrupt


def raise_in_flops(monkeypatch, error: BaseException) -> None:
    def fail(args: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(liere.commands.flops, "run", fail)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("invalid literal for int() with base 10: 'x'"),
        KeyError("size"),
        TypeError("run() missing 1 required positional argument"),
        AttributeError("'NoneType' object has no attribute 'shape'"),
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        ImportError("cannot import name 'nothing' from 'liere.flops'", name="liere.flops"),
        ModuleNotFoundError("No module named 'liere.gone'", name="liere.gone"),
        AssertionError(),
    ],
)
def test_a_bug_keeps_its_traceback(monkeypatch, capsys, error):
    raise_in_flops(monkeypatch, error)
    with pytest.raises(type(error)) as raised:
        main(["flops"])
    assert raised.value is error
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("size is wrong: use 3"), "size is wrong: use 3"),
        (InputTypeError("size must be\n  an int"), "size must be an int"),
        (FileNotFoundError("no run at x"), "no run at x"),
        (
            PermissionError(13, "Permission denied", "file"),
            "file could not be read or written (Permission denied): che",
        ),
        (OSError(28, "No space left on device", b"a", None, "b"), "a could not be read or written (No space left on d"),
        (ConnectionRefusedError(111, "Connection refused"), "[Errno 111] Connection refused"),
        (ImportError("videos need PyAV"), "videos need PyAV"),
        (ModuleNotFoundError("No module named 'yaml'", name="yaml"), "PyYAML is not installed: pip install 'liere[tra"),
        (MemoryError("9 TiB"), "out of memory (9 TiB): use a smaller batch"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 TiB"), "out of memory (DefaultCPUAllocator"),
        (RuntimeError("Storage size calculation overflowed with sizes=[1]"), "out of memory (Storage size"),
        (TypeError("empty(): argument 'size' [...]: Overflow when unpacking long"), "out of memory (empty(): arg"),
        (RuntimeError("CUDA out of memory. Tried to allocate 9 GiB"), "out of memory (CUDA out of memory"),
    ],
)
def test_what_the_user_can_put_right_is_one_line(monkeypatch, capsys, error, line):
    raise_in_flops(monkeypatch, error)
    assert main(["flops"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"liere: error: {line}")
    assert printed.count("\n") == 1
    with pytest.raises(type(error)):
        main(["--traceback", "flops"])


def test_errors_of_input_are_what_callers_of_torch_expect():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    with pytest.raises(UserError) as raised:
        liere.create_model("vit_bas", encoding="liere8", image_size=8, patch_size=4, num_classes=2)
    assert isinstance(raised.value, ValueError)
    with pytest.raises(UserError) as raised:
        liere.create_model(encoding="liere8", image_size=8, patch_size=4, num_classes=2)
    assert isinstance(raised.value, TypeError)


def test_an_interruption_says_what_is_kept(monkeypatch, capsys):
    raise_in_flops(monkeypatch, KeyboardInterrupt("finished runs are kept"))
    assert main(["flops"]) == 130
    assert capsys.readouterr().err == "liere: stopped; finished runs are kept\n"


def test_the_exit_code_and_the_line_name_the_signal(monkeypatch, capsys):
    stop = SignalInterrupt(signal.SIGTERM)
    stop.args = ("finished runs are kept",)
    raise_in_flops(monkeypatch, stop)
    assert main(["flops"]) == 143
    assert capsys.readouterr().err == "liere: stopped by SIGTERM; finished runs are kept\n"


def test_a_very_long_value_is_shortened_but_the_remedy_is_kept(monkeypatch, capsys):
    raise_in_flops(monkeypatch, InputError(f"encoding {'x' * 90_000} is unknown: use liere8"))
    assert main(["flops"]) == 2
    line = capsys.readouterr().err
    assert line.startswith("liere: error: encoding xxx")
    assert line.endswith("x is unknown: use liere8\n")
    assert len(line) < 3_000
