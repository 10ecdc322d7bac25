from __future__ import annotations

import subprocess
import sys

import pytest

from liere.data.portable import dump_object, load_object


class Stubborn:
    """An object that belongs to this process."""

    def __reduce__(self):
        raise RuntimeError("it has an open file")


@pytest.fixture
def without_cloudpickle(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_objects_of_modules_need_nothing_else(without_cloudpickle):
    assert load_object(dump_object({"a": (1, 2)}, "a dict")) == {"a": (1, 2)}


def test_functions_without_a_module_are_sent_with_cloudpickle():
    pytest.importorskip("cloudpickle")
    assert load_object(dump_object(lambda number: number + 1, "a function"))(2) == 3


def test_what_belongs_to_a_process_is_reported():
    with pytest.raises(TypeError, match=r"the data cannot be sent to another process \(it has an open file\)"):
        dump_object(Stubborn(), "the data")


def test_without_cloudpickle_it_is_recommended(without_cloudpickle):
    with pytest.raises(TypeError, match=r"the function cannot be sent .* pip install cloudpickle"):
        dump_object(lambda: None, "the function")


def test_a_class_of_a_shell_is_reported_without_cloudpickle():
    code = (
        "import importlib.util\n"
        "importlib.util.find_spec = lambda name: None\n"
        "from liere.data.portable import dump_object\n"
        "class Mine: pass\n"
        "try: dump_object(Mine(), 'the data set train')\n"
        "except TypeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("the data set train is defined in a notebook or a shell")
    assert "pip install cloudpickle" in done.stdout
