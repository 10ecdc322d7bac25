"""Hints for names that nobody knows."""

from __future__ import annotations

import pytest

from liere.errors import nearest, suggest

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
