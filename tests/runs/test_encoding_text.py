from __future__ import annotations

import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

from liere import LieRE
from liere.runs.encoding_text import encoding_text, file_name, parse_encoding


@pytest.mark.parametrize(
    "text", ["absolute:", "absolute:init_std", "absolute:=1", "absolute:a=1,,b=2", "my.mod:Mine:a"]
)
def test_options_without_value_are_refused(text):
    with pytest.raises(ValueError, match="has an option without a value: write absolute:init_std=1"):
        parse_encoding(text)


def test_options_are_read_as_yaml_writes_them():
    assert parse_encoding("x:a=true,b=0.5,c=word,d=null") == ("x", {"a": True, "b": 0.5, "c": "word", "d": None})
    assert parse_encoding("x:a=[1,2],b={c: 3}") == ("x", {"a": [1, 2], "b": {"c": 3}})


def test_numbers_with_an_exponent_are_numbers():
    assert parse_encoding("absolute:init_std=1e-3") == ("absolute", {"init_std": 1e-3})


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("my.mod:Mine", "my.mod:Mine", {}),
        ("my.mod:Mine:init_std=1", "my.mod:Mine", {"init_std": 1}),
        ("my.mod:Mine:a={b: 1},c=x:y", "my.mod:Mine", {"a": {"b": 1}, "c": "x:y"}),
        ("my.mod:Outer.Mine:a=1", "my.mod:Outer.Mine", {"a": 1}),
        ("__main__:f.<locals>.Mine", "__main__:f.<locals>.Mine", {}),
        ("liere8:share_heads=true", "liere8", {"share_heads": True}),
        ("unknown:a=b:c", "unknown", {"a": "b:c"}),
    ],
)
def test_a_class_is_told_from_options(text, name, options):
    assert parse_encoding(text) == (name, options)


def test_a_class_is_written_so_that_it_is_read_again():
    assert parse_encoding(encoding_text(LieRE)) == ("liere", {})


def test_names_of_files_tell_options_apart():
    names = ["absolute", "absolute:init_std=1", "absolute:init_std=0.1", "my.mod:Mine"]
    assert [file_name(name) for name in names] == [
        "absolute",
        "absolute-init_std-1",
        "absolute-init_std-0.1",
        "my.mod-Mine",
    ]
