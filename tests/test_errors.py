"""Suggestions for unknown names, and text that is safe to print."""

from __future__ import annotations

import pytest
import torch

from liere.errors import nearest, suggest, visible, whole_number

FIELDS = ["--out", "--examples", "--optimizer.clip", "--optimizer.learning_rate", "--training.examples"]


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("--optimizer.lr", FIELDS, "--optimizer.learning_rate"),
        ("--lr", FIELDS, "--optimizer.learning_rate"),
        ("--model.lr", FIELDS, "--optimizer.learning_rate"),
        ("--epochs", FIELDS, "--training.examples"),
        ("lr", ["clip", "learning_rate"], "learning_rate"),
        ("LR", ["clip", "learning_rate"], "learning_rate"),
        ("lr", ["clip", "eps"], None),
        ("--ot", FIELDS, "--out"),
        ("steps", ["steps", "examples"], "steps"),
    ],
)
def test_names_of_other_libraries_are_understood(name, known, hint):
    assert nearest(name, known) == hint


def test_without_a_hint_all_names_are_listed():
    assert suggest("lr", ["clip", "eps"]) == "choose from 'clip', 'eps'"


def test_a_whole_number_is_an_int_and_nothing_else():
    assert whole_number("depth", 3) == 3
    assert type(whole_number("depth", torch.tensor(3))) is int
    with pytest.raises(TypeError, match=r"depth must be an int, got 3\.0 of type float"):
        whole_number("depth", 3.0)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with é and 日本", "plain, with é and 日本"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("turned \u202e around", r"turned \u202e around"),
    ],
)
def test_codes_that_a_terminal_obeys_are_shown(text, shown):
    assert visible(text) == shown
