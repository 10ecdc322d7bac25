"""Summaries of finished runs by `tools/demo_robustness.py`, `tools/study.py` and `tools/collect_tests.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")

from liere.comparison.demo import SIZES
from liere.runs.conditions import Condition
from liere.runs.run import open_run
from tests.own_tools import import_tool
from tests.reproduce.fakes import finish, predictions

collect_tests = import_tool("collect_tests")
demo_robustness = import_tool("demo_robustness")
study = import_tool("study")
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("text", "seeds"), [("0-3", [0, 1, 2, 3]), ("7", [7]), ("1,4-5", [1, 4, 5])])
def test_seeds_are_read(text, seeds):
    assert demo_robustness.seed_range(text) == seeds


def robustness_of(folder: Path, accuracy: dict[str, list[float]], seeds: list[int]) -> dict[tuple[str, int], dict]:
    plan = demo_robustness.make_the_plan(list(accuracy), seeds, folder, 1)
    for run in plan.runs:
        own = accuracy[run.config.model.encoding][run.config.training.seed]
        finish(run, run.folder, {Condition(size): predictions(own) for size in SIZES})
    rows = demo_robustness.summarize([open_run(run.folder) for run in plan.runs])
    return {(row["encoding"], row["size"]): row for row in rows}


def test_every_seed_has_to_reach_what_its_encoding_promises(tmp_path):
    accuracy = {
        "absolute": [0.44, 0.54, 0.56],
        "rope_mixed": [1.0, 0.985, 0.99, 1.0],
        "liere8": [0.97, 0.965, 1.0, 1.0],
    }
    rows = robustness_of(tmp_path, accuracy, [0, 1, 2, 3])
    mixed = rows["rope_mixed", 108]
    assert (mixed["worst"], mixed["median"], mixed["best"], mixed["passed"]) == (0.985, 0.995, 1.0, 3)
    assert rows["rope_mixed", 276]["promise"] == ""
    assert rows["rope_mixed", 276]["passed"] == 4
    assert rows["liere8", 276]["passed"] == 3
    assert len(rows["absolute", 108]["by_seed"]) == 3  # encodings that fail are run with the first three seeds
    assert rows["absolute", 372]["passed"] == 2


def test_a_study_shows_every_seed_of_every_variation(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(
        "title: A study\nnote: Of two things.\nencodings: [rope_mixed, absolute]\nseeds: [0, 1]\ntest_examples: 400\n"
        "data:\n  spatial: {recipe: spatial/small.yaml, tests: [{size: 108}, {size: 108, attention_scale: log}]}\n"
        "vary:\n  fixed: {}\n  moved: {model.position_shift: 1.75, encodings: [rope_mixed]}\n"
    )
    planned = study.prepare(file, tmp_path / "out")
    for number, one in enumerate(planned.wanted):
        found = {condition: predictions(0.5 + number / 20) for condition in one.planned.conditions}
        finish(one.planned, one.planned.folder, found)
    assert [one.seed for one in planned.wanted] == [0, 0, 0, 1, 1, 1]
    rows = study.rows_of(planned.results())
    assert len(rows) == 6  # three kinds of runs, tested in two ways
    assert [row["by_seed"] for row in rows if row["variant"] == "moved"] == [[0.6, 0.75]] * 2
    content = {"title": "A study", "note": "", "command": "x", "rows": rows}
    assert "| moved | RoPE-Mixed | attention scale log | 67.5 (60.0, 75.0) |" in study.markdown(content)


def test_a_part_of_a_study_replaces_its_rows_only(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(
        "title: A study\nencodings: [rope_mixed, absolute]\nseeds: [0, 1]\n"
        "data:\n  spatial: {recipe: spatial/small.yaml}\n"
        "vary:\n  fixed: {}\n  moved: {model.position_shift: 1.75, encodings: [rope_mixed]}\n"
    )
    whole = study.prepare(file, tmp_path / "out").experiment
    part = study.prepare(file, tmp_path / "out", encodings=["rope_mixed"], variations=["moved"])
    assert [(one.key.variant, one.key.encoding, one.seed) for one in part.wanted] == [
        ("moved", "rope_mixed", 0),
        ("moved", "rope_mixed", 1),
    ]

    def row(variant: str, encoding: str, *by_seed: float) -> dict:
        shown = {"data": "spatial", "variant": variant, "encoding": encoding, "size": 108}
        return shown | {"seeds": list(range(len(by_seed))), "by_seed": list(by_seed)}

    kept = [row("fixed", "absolute", 0.4, 0.5), row("moved", "rope_mixed", 0.1)]
    rows = study.merged(kept, [row("moved", "rope_mixed", 0.9, 1.0)], whole)
    assert [(one["variant"], one["by_seed"]) for one in rows] == [("fixed", [0.4, 0.5]), ("moved", [0.9, 1.0])]
    assert study.missing_runs(rows, whole) == 2  # both seeds of rope_mixed, fixed
    with pytest.raises(ValueError, match=r"--variations 'move' is not in .*: did you mean 'moved'"):
        study.prepare(file, tmp_path / "out", variations=["move"])


def test_tests_are_collected_by_encoding_and_condition_with_every_seed(tmp_path):
    plan = demo_robustness.make_the_plan(["rope_mixed", "absolute"], [0, 1], tmp_path, 1)
    for run in plan.runs:
        accuracy = 0.5 + 0.25 * run.config.training.seed
        plain, other = Condition(276), Condition(276, attention_scale="constant")
        finish(run, run.folder, {plain: predictions(accuracy), other: predictions(0.25)})
    rows = collect_tests.collect([open_run(run.folder) for run in plan.runs])
    found = [(row["encoding"], row["position_shift"], row["attention_scale"], row["by_seed"]) for row in rows]
    assert found == [
        ("absolute", 0.0, "log", {"0": 0.5, "1": 0.75}),
        ("absolute", 0.0, "constant", {"0": 0.25, "1": 0.25}),
        ("rope_mixed", 1.75, "log", {"0": 0.5, "1": 0.75}),
        ("rope_mixed", 1.75, "constant", {"0": 0.25, "1": 0.25}),
    ]
    assert collect_tests.as_texts(rows[2])[:6] == ["rope_mixed", "1.75", "0.2", "276 px, log", "400", "62.5"]
