"""Calls as text in reports, and output while they run."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.toolkit.calls import call_text, count_of, folder_of, path_of, several, teller, warner
from tests.training.tiny import make_run


def test_a_call_is_shown_as_it_could_be_typed():
    text = call_text("compare", "recipe.yaml", seeds=[0, 1], sizes=None, out="runs/b")
    assert text == "liere.toolkit.compare('recipe.yaml', seeds=[0, 1], out='runs/b')"


def test_one_value_is_several_where_that_is_clear():
    assert several("sizes", 108, one=(int,)) == [108]
    assert several("encodings", "liere8", one=(str, type)) == ["liere8"]
    assert several("seeds", range(2)) == [0, 1]
    for wrong in (3, "012"):
        with pytest.raises(TypeError, match=rf"seeds must be a list, got {wrong!r}: write \[{wrong!r}\]"):
            several("seeds", wrong)


def test_a_run_and_its_folder_mean_the_same(tmp_path):
    run = make_run(tmp_path / "run")
    assert folder_of(run) == folder_of(str(run.folder)) == folder_of(run.folder) == tmp_path / "run"


@pytest.mark.parametrize("place", [None, 3, b"run", ["run"]])
def test_what_is_no_path_is_named(place):
    with pytest.raises(TypeError, match="out must be a path, got "):
        path_of("out", place)


def test_warnings_are_shown_in_any_case_and_progress_where_it_is_wanted(capsys):
    for progress, out, err in ((True, "a line\n", "step 1\nwarning: low\n"), (False, "", "warning: low\n")):
        teller(progress)("a line")
        warner(progress)("step 1")
        warner(progress)("warning: low")
        assert capsys.readouterr() == (out, err)


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, float("nan")])
def test_counts_are_positive_integers(value):
    with pytest.raises((TypeError, ValueError), match=r"examples must be (an int|at least 1), got "):
        count_of("examples", value)
