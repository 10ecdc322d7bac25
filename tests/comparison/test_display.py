"""Terminal output while runs are trained and tested."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.display import ComparisonDisplay, run_state
from liere.runs.run import open_run
from tests.comparison.plans import plan
from tests.evaluation.test_summary import pretend
from tests.training.tiny import make_run

METRICS = "step,examples,seconds,learning_rate,train_loss,val_loss,val_accuracy\n"


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ("", "run: 0 % trained"),
        ("2,16,1,,0.5,,\n", "run: 22 % trained"),
        ("4,32,1,,,0.5,0.456\n6,48,1,,0.5,,\n", "run: 66 % trained, 46 % accuracy"),
        ("9,72,1,,,0.5,0.9\n", "run: testing"),
    ],
)
def test_how_far_a_run_is(tmp_path, rows, state):
    run = make_run(tmp_path / "run")
    run.metrics.write_text(METRICS + rows)
    assert run_state(open_run(run.folder)) == state


@pytest.fixture
def finished(tmp_path):
    """A plan of two runs, both of which are done."""
    made = plan(tmp_path, ["none", "liere8"], [3], examples=200)
    for planned, curve in zip(made.runs, ([0.5], [0.6, 0.97]), strict=True):
        pretend(planned.folder, planned.config.model.encoding, 3, 0.5, sizes=(36,), curve=curve)
    return made


def test_a_table_grows_as_runs_end(finished, capsys):
    display = ComparisonDisplay(finished)
    for planned in finished.runs:
        display.add(open_run(planned.folder))
    header, rule, first, second = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "encoding"
    assert set(rule) == {"-"}
    assert first.split()[:2] == ["none", "3"]
    assert "not reached" in first
    accuracy = open_run(finished.runs[1].folder).evaluations()[0]["accuracy"]["value"]
    assert second.split() == ["liere8", "3", f"{100 * accuracy:.1f}", "%", "16", "13"]
    assert len(second) == len(header)


def test_nothing_is_shown_if_that_is_wanted(finished, capsys):
    display = ComparisonDisplay(finished, is_shown=False)
    display.add(open_run(finished.runs[0].folder))
    display.fail("it failed")
    display.show([])
    assert capsys.readouterr() == ("", "")
    ComparisonDisplay(finished).fail("it failed")
    assert capsys.readouterr().err == "it failed\n"
