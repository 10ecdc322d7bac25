from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.comparison.display import ComparisonDisplay, run_state
from liere.comparison.plan import make_plan
from liere.runs.conditions import Condition
from liere.runs.records import COLUMNS
from liere.runs.run import create_run
from tests.reproduce.fakes import finish, predictions


@pytest.fixture
def plan(tmp_path):
    options = {"sizes": None, "examples": 40, "slots": 1}
    recipe = {"data": {"size": 36, "distractor_arrows": 2, "distractor_letters": 1}, "hardware": {"accelerator": "cpu"}}
    recipe["model"] = {"dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
    return make_plan(recipe, {}, encodings=["none", "sincos"], seeds=[0], folder=tmp_path, **options)


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_table_grows_as_runs_end(plan, capsys, is_shown):
    display = ComparisonDisplay(plan, is_shown=is_shown)
    for planned in plan.runs:
        display.add(finish(planned, planned.folder, {Condition(36): predictions(0.5, 40)}))
    display.fail("it failed")
    printed = capsys.readouterr()
    if not is_shown:
        assert (printed.out, printed.err) == ("", "")
        return
    header, rule, *rows = printed.out.splitlines()
    assert header.split()[:4] == ["encoding", "seed", "36", "px"]
    assert set(rule) == {"-"}
    assert [row.split()[0] for row in rows] == ["none", "sincos"]
    assert [row.split()[2] for row in rows] == ["50.0", "50.0"]
    assert len({row.index(" 0 ") for row in rows}) == 1  # columns stay where they are
    assert printed.err == "it failed\n"


def test_how_far_a_run_is_comes_from_its_log(plan):
    run = create_run(plan.runs[0].folder, plan.runs[0].config)
    assert run_state(run) == "none-seed0: 0 % trained"
    steps = run.config.training.steps
    head = ",".join(COLUMNS)
    run.metrics.write_text(f"{head}\n{steps // 2},100,1.0,,,1.0,0.25\n")
    assert run_state(run) == "none-seed0: 50 % trained, 25 % right"
    run.metrics.write_text(f"{head}\n{steps},200,1.0,,,1.0,0.5\n")
    assert run_state(run) == "none-seed0: testing"
