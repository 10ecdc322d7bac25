"""`liere compare`."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")
from liere import toolkit
from liere.cli import main, parse_arguments
from liere.runs.run import open_run
from tests.comparison.plans import spoil
from tests.training.tiny import quiet, write_config

pytestmark = quiet


def test_comparisons_take_both_starts_of_absolute_positions_unless_told_otherwise():
    encodings = parse_arguments(["compare", "--config", "x.yaml"]).encodings
    assert encodings == ["absolute:init_std=1", "absolute", "visionllama", "rope_mixed", "liere8", "liere"]
    assert parse_arguments(["compare", "--config", "x.yaml", "--encodings", "none"]).encodings == ["none"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("--encodings lieer8", ["unknown encoding 'lieer8'", "did you mean 'liere8'?"]),
        ("--encodings absolute:init_std", ["'absolute:init_std' has an option without a value"]),
        ("--encodings liere8:share_head=1", ["has no option 'share_head'", "did you mean 'share_heads'?"]),
        ("--model.encoding liere8", ["--model.encoding is varied by the comparison itself", "--encodings"]),
        ("--training.seed 1", ["--training.seed is varied by the comparison itself", "--seeds"]),
        ("--sizes 100", ["size must be a multiple of 12 px"]),
        ("--model.dimm 3", ["--model.dimm", "did you mean '--model.dim'?"]),
        ("--data.size 100", ["size must be a multiple of 12 px"]),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(config, fail, arguments, parts):
    error = fail("compare --config", config, "--out comparison", arguments)
    for part in parts:
        assert part in error


def test_a_folder_that_cannot_be_made_is_told(config, tmp_path, fail):
    (tmp_path / "file").write_text("mine")
    error = fail("compare --encodings none --seeds 0 --config", config, "--out", tmp_path / "file" / "below")
    assert "--out" in error
    assert "choose another folder" in error


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """The arguments of a finished comparison."""
    folder = tmp_path_factory.mktemp("compare")
    arguments = ["compare", "--config", str(write_config(folder)), "--out", str(folder / "out"), "--examples", "20"]
    arguments += ["--encodings", "absolute:init_std=1", "liere8", "--sizes", "36", "--jobs", "2"]
    arguments += ["--training.examples", "32"]
    assert main([*arguments, "--seeds", "0"]) == 0
    return folder / "out", arguments


def test_a_comparison_trains_tests_and_reports(comparison):
    out, _ = comparison
    for name in ("absolute-init_std-1-seed0", "liere8-seed0"):
        run = open_run(out / "runs" / name)
        assert run.result()["examples"] == 32
        assert [(record["size"], record["examples"]) for record in run.evaluations()] == [(36, 20)]
        assert "36 px: accuracy" in (out / "runs" / f"{name}.log").read_text()
    report = json.loads((out / "report.json").read_text())
    assert [row["encoding"] for row in report["encodings"]] == ["absolute", "liere8"]
    assert [(pair["first"], pair["second"]) for pair in report["pairs"]] == [("liere8", "absolute")]
    assert report["runs"][1]["run"] == "runs/liere8-seed0"
    for name in ("report.html", "report.md"):
        assert "liere8" in (out / name).read_text()


def test_what_is_finished_is_not_run_again(comparison, capsys):
    out, arguments = comparison
    files = [path for path in (out / "runs").rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    capsys.readouterr()
    assert main([*arguments, "--seeds", "0"]) == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*") if path.is_file()} == before
    printed = capsys.readouterr().out
    assert printed.count("\nabsolute ") == 2  # in the list of runs and in the table
    assert f"report: {out / 'report.html'}" in printed


def test_a_run_that_fails_is_named_with_its_log_and_the_others_are_done(comparison, capsys):
    out, arguments = comparison
    options = {"encodings": ["liere8"], "seeds": [1], "sizes": [36], "overrides": {"training.examples": 32}}
    reason = spoil(toolkit.plan_comparison(arguments[2], out=out, **options).runs[0])
    capsys.readouterr()
    assert main([*arguments, "--seeds", "0", "1"]) == 2
    assert open_run(out / "runs" / "absolute-init_std-1-seed1").is_finished
    log = out / "runs" / "liere8-seed1.log"
    told = f"liere8-seed1 failed with exit code 1 ({reason}): see {log}"
    printed = capsys.readouterr()
    assert printed.err == f"{told}\nliere: error: 1 of 4 runs failed: {told}\n"
    assert "report: " in printed.out  # of the others
    assert reason in log.read_text()


def test_another_recipe_in_the_same_folder_is_refused(comparison, capsys):
    out, arguments = comparison
    assert main([*arguments, "--seeds", "0", "--model.dim", "32"]) == 2
    assert "contains a run of a different recipe: choose another --out, or delete it" in capsys.readouterr().err
    assert open_run(out / "runs" / "liere8-seed0").config.model.dim == 16
