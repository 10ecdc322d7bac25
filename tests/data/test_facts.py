from __future__ import annotations

import json

import pytest

from liere.data import DataFacts

FACTS = DataFacts(("cat", "dog"), 3, (8, 32, 32), (0.5, -1.0, 0.0), (0.25, 1.0, 2.0))


def test_facts_survive_json():
    assert DataFacts.from_dict(json.loads(json.dumps(FACTS.as_dict()))) == FACTS


def test_whole_numbers_become_floats():
    facts = DataFacts.from_dict(FACTS.as_dict() | {"mean": [0, 0, 0]})
    assert all(type(value) is float for value in facts.mean)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("classes", [], "classes must be a list of strings"),
        ("classes", ["cat", 1], "classes must be a list of strings, got"),
        ("classes", "cat", "classes must be a list of strings, got 'cat'"),
        ("channels", 0, "channels must be a positive integer, got 0"),
        ("channels", True, "channels must be a positive integer, got True"),
        ("channels", 10**9, "channels must be a positive integer, got 1000000000"),
        ("image_size", [8, 0], "image_size must be a list of at most 16 positive integers"),
        ("image_size", [8.0], "image_size must be a list of at most 16 positive integers"),
        ("image_size", [1] * 100_000, "image_size must be a list of at most 16 positive integers, got 100,000"),
        ("image_size", None, "image_size must be a list of at most 16 positive integers, got None"),
        ("mean", [0.5], "mean must be a list of 3 finite numbers"),
        ("mean", [0.5, 0.5, float("nan")], "mean must be a list of 3 finite numbers"),
        ("std", [1.0, 1.0, 0.0], "std must be a list of 3 positive numbers"),
        ("std", [1.0, 1.0, float("inf")], "std must be a list of 3 positive numbers"),
        ("std", [1.0, 1.0, "1"], "std must be a list of 3 positive numbers"),
    ],
)
def test_what_is_wrong_is_named(name, value, message):
    with pytest.raises(ValueError, match=message) as raised:
        DataFacts.from_dict(FACTS.as_dict() | {name: value})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", FACTS.as_dict())
def test_what_is_missing_is_named(name):
    content = FACTS.as_dict()
    del content[name]
    with pytest.raises(ValueError, match=f"have no {name}"):
        DataFacts.from_dict(content)


def test_what_is_unknown_is_named():
    with pytest.raises(ValueError, match="unknown entry 'clases'"):
        DataFacts.from_dict(FACTS.as_dict() | {"clases": []})


@pytest.mark.parametrize("content", [None, [], "facts", 3])
def test_something_else_is_refused(content):
    with pytest.raises(ValueError, match="must be an object"):
        DataFacts.from_dict(content)


def test_long_content_is_shortened():
    with pytest.raises(ValueError, match="classes must be") as raised:
        DataFacts.from_dict(FACTS.as_dict() | {"classes": ["cat"] * 10_000 + [1]})
    assert len(str(raised.value)) < 400
