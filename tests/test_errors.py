"""Suggestions for unknown names, and text that is safe to print."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from liere.errors import (
    InputError,
    InputTypeError,
    check_amount,
    check_switches,
    nearest,
    suggest,
    visible,
    whole_number,
)


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


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
    with pytest.raises(TypeError, match=r"depth must be an int, got \[\[\[.* of type list"):
        whole_number("depth", _nested(5_000))


@pytest.mark.parametrize("value", [0, 1.5, np.float32(2), Fraction(1, 2), 10**12])
def test_amounts_are_real_numbers(value):
    check_amount("scale", value)


@pytest.mark.parametrize("value", [True, "1", None, 1j, _nested(5_000)])
def test_values_of_other_types_are_refused_in_short(value):
    with pytest.raises(InputTypeError, match=r"scale must be a number, got .* of type") as raised:
        check_amount("scale", value)
    with pytest.raises(InputTypeError, match=r"scale must be true or false, got .* of type"):
        check_switches(scale=None if value is True else value)
    assert len(str(raised.value)) < 100


@pytest.mark.parametrize("value", [True, False, 0, 1, np.bool_(True)])
def test_switches_are_true_or_false(value):
    check_switches(share_heads=value)


@pytest.mark.parametrize("value", [-1, 2e12, 10**400, float("nan"), float("inf")])
def test_amounts_are_neither_negative_nor_too_large(value):
    with pytest.raises(InputError, match=r"scale must be between 0 and 1e\+12, got"):
        check_amount("scale", value)


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
