from __future__ import annotations

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
import liere
from liere.encodings import PositionEncoding
from liere.runs.encoding_text import encoding_text, file_name, parse_encoding


class Mine(PositionEncoding):
    """A user-defined encoding."""


@pytest.mark.parametrize("text", ["absolute:", "absolute:init_std", "absolute:=1", "absolute:a=1,,b=2", "absolute:a=["])
def test_options_without_value_are_refused(text):
    with pytest.raises(ValueError, match="has an option without a value: write absolute:init_std=1"):
        parse_encoding(text)


def test_options_are_read_as_yaml_writes_them():
    assert parse_encoding("x:a=true,b=0.5,c=word,d=null") == ("x", {"a": True, "b": 0.5, "c": "word", "d": None})


def test_numbers_with_an_exponent_are_numbers():
    assert parse_encoding("absolute:init_std=1e-3") == ("absolute", {"init_std": 1e-3})


def test_commas_in_brackets_belong_to_a_value():
    assert parse_encoding("x:a=[1, 2],b={c: 3, d: 4}") == ("x", {"a": [1, 2], "b": {"c": 3, "d": 4}})


def test_a_class_is_told_from_options():
    assert parse_encoding("my.module:Class") == ("my.module:Class", {})
    assert parse_encoding("my.module:Class:a=1") == ("my.module:Class", {"a": 1})
    assert parse_encoding("unknown:a=1") == ("unknown", {"a": 1})


def test_what_is_written_is_read_again():
    assert encoding_text("absolute:init_std=1") == "absolute:init_std=1"
    assert encoding_text(liere.LieRE) == "liere"
    assert parse_encoding(encoding_text(Mine)) == (f"{__name__}:Mine", {})


@pytest.mark.parametrize("value", [3, None, int, liere.LieRE(2, 8)], ids=["number", "None", "type", "object"])
def test_other_things_are_no_encoding(value, no_shape_checks):
    with pytest.raises(TypeError):
        encoding_text(value)


def test_names_of_files_have_no_signs_of_their_own():
    assert file_name("my.module:Class:a=[1, 2]") == "my.module-Class-a--1--2-"
    assert "/" not in file_name("../etc/passwd")
