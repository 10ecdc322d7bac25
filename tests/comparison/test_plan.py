from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

from liere.cli import main
from liere.comparison.plan import make_plan
from liere.runs.run import create_run, open_run
from tests.training.tiny import CONFIG, quiet, write_config

pytestmark = quiet


def plan(folder, encodings=("none",), seeds=(0,), **options):
    content = yaml.safe_load(options.pop("text", CONFIG))
    defaults = {"sizes": None, "examples": None, "slots": 1, "source": "tiny.yaml"}
    overrides = options.pop("overrides", {})
    return make_plan(content, overrides, encodings=encodings, seeds=seeds, folder=folder, **(defaults | options))


class TestPlan:
    def test_there_is_a_run_for_each_encoding_and_seed(self, tmp_path):
        made = plan(tmp_path, ["none", "liere8"], [0, 3])
        names = ["none-seed0", "none-seed3", "liere8-seed0", "liere8-seed3"]
        assert [run.folder for run in made.runs] == [tmp_path / "runs" / name for name in names]
        assert [(run.config.model.encoding, run.config.training.seed) for run in made.runs] == [
            ("none", 0),
            ("none", 3),
            ("liere8", 0),
            ("liere8", 3),
        ]
        assert made.sizes == [36]
        assert list(tmp_path.iterdir()) == []

    def test_duplicates_are_run_once(self, tmp_path):
        made = plan(tmp_path, ["none", "liere8", "none"], [1, 1, 0])
        assert [run.folder.name for run in made.runs] == ["none-seed1", "none-seed0", "liere8-seed1", "liere8-seed0"]

    def test_options_of_an_encoding_are_passed_on(self, tmp_path):
        (run,) = plan(tmp_path, ["absolute:init_std=1"]).runs
        assert (run.config.model.encoding, run.config.model.options) == ("absolute", {"init_std": 1})
        assert run.folder.name == "absolute-init_std-1-seed0"
        two = plan(tmp_path, ["absolute", "absolute:init_std=1"]).runs
        assert [one.config.model.options for one in two] == [{}, {"init_std": 1}]

    def test_encodings_that_differ_in_options_have_folders_of_their_own(self, tmp_path):
        runs = plan(tmp_path, ["absolute", *(f"absolute:init_std={std}" for std in ("1", "0.1", "0.01"))]).runs
        assert len({run.folder for run in runs}) == 4

    def test_fields_of_the_command_line_go_to_all(self, tmp_path):
        made = plan(tmp_path, ["none", "liere8"], overrides={"model.dim": "32", "hardware.threads": "1"})
        assert [(run.config.model.dim, run.config.hardware.threads) for run in made.runs] == [(32, 1)] * 2

    def test_threads_are_shared_out_where_nothing_is_said(self, tmp_path, monkeypatch):
        monkeypatch.setattr("liere.comparison.plan.available_cores", lambda: 8)
        text = CONFIG.replace(", threads: 1", "")
        assert "threads" not in text
        for slots, threads in [(1, 8), (2, 4), (3, 2)]:
            made = plan(tmp_path, ["none", "liere8", "absolute"], slots=slots, text=text)
            assert made.slots == slots
            assert {run.config.hardware.threads for run in made.runs} == {threads}
        assert plan(tmp_path, slots=5).slots == 1  # no more than there are runs

    def test_threads_of_the_recipe_are_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr("liere.comparison.plan.available_cores", lambda: 8)
        assert plan(tmp_path, slots=1).runs[0].config.hardware.threads == 1

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"encodings": ["lieer8"]}, "unknown encoding 'lieer8': did you mean 'liere8'?"),
            ({"encodings": ["liere8:share_head=1"]}, "share_head"),
            ({"encodings": []}, "at least one encoding and one seed"),
            ({"seeds": []}, "at least one encoding and one seed"),
            ({"sizes": [36, 100]}, "multiple of 12 px"),
            ({"overrides": {"data.size": "100"}}, "multiple of 12 px"),
            ({"text": "model: {dimm: 3}"}, "tiny.yaml: unknown field model.dimm"),
        ],
    )
    def test_what_does_not_fit_is_told_and_nothing_is_made(self, tmp_path, options, message):
        with pytest.raises((ValueError, TypeError)) as raised:
            plan(tmp_path, **options)
        assert message in str(raised.value)
        assert list(tmp_path.iterdir()) == []

    def test_a_log_that_cannot_be_written_is_told(self, tmp_path):
        (run,) = plan(tmp_path).runs
        run.folder.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(run.folder.with_name(f"{run.folder.name}.log"))  # nobody reads it: opening it would wait for ever
        with pytest.raises(ValueError, match=r"none-seed0\.log is a named pipe, not a regular file: move it away"):
            plan(tmp_path)

    def test_runs_of_another_recipe_are_left_alone(self, tmp_path):
        (run,) = plan(tmp_path).runs
        create_run(run.folder, run.config)
        assert [again.folder for again in plan(tmp_path).runs] == [run.folder]
        assert plan(tmp_path, overrides={"hardware.threads": "7"}).runs[0].folder == run.folder
        with pytest.raises(ValueError, match="none-seed0 was made by another recipe: choose another --out"):
            plan(tmp_path, overrides={"model.dim": "32"})

    def test_a_run_is_done_once_it_is_finished_and_evaluated_as_asked(self, tmp_path):
        (planned,) = plan(tmp_path, examples=20).runs
        assert not planned.is_done()
        run = create_run(planned.folder, planned.config)
        result = {"step": 4, "examples": 32, "seconds": 1.0, "parameters": 9, "encoding_parameters": 0, "best": None}
        result |= {"fingerprint": "", "date": "", "machine": {}, "versions": {}}
        run.result_file.write_text(json.dumps(result))
        assert not planned.is_done()
        record = {"size": 36, "examples": 20, "weights": "final", "accuracy": {"value": 0.5}, "predictions": "p.csv"}
        for records, done in [
            ([record], True),
            ([record | {"examples": 19}], False),
            ([record | {"weights": "best"}], False),
            ([record | {"size": 48}], False),
            ([record, record | {"size": 48}], True),
        ]:
            run.evaluation_file.write_text(json.dumps(records))
            assert planned.is_done() == done
        (all_examples,) = plan(tmp_path).runs
        assert not all_examples.is_done()
        run.evaluation_file.write_text(json.dumps([record | {"asked": None}]))
        assert all_examples.is_done()


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """The arguments of a comparison that was run."""
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
    (out / "runs" / "liere8-seed1").mkdir()
    (out / "runs" / "liere8-seed1" / "in the way").write_text("")
    capsys.readouterr()
    assert main([*arguments, "--seeds", "0", "1"]) == 2
    assert open_run(out / "runs" / "absolute-init_std-1-seed1").is_finished
    log = out / "runs" / "liere8-seed1.log"
    reason = f"ValueError: --out {log.with_suffix('')} exists: choose another folder"
    told = f"liere8-seed1 failed with exit code 1 ({reason}): see {log}"
    printed = capsys.readouterr()
    assert printed.err == f"{told}\nliere: error: 1 of 4 runs failed: {told}\n"
    assert "report: " in printed.out  # of the others
    assert f"--out {log.with_suffix('')} exists: choose another folder" in log.read_text()


def test_another_recipe_in_the_same_folder_is_refused(comparison, capsys):
    out, arguments = comparison
    assert main([*arguments, "--seeds", "0", "--model.dim", "32"]) == 2
    assert "was made by another recipe: choose another --out, or delete it" in capsys.readouterr().err
    assert open_run(out / "runs" / "liere8-seed0").config.model.dim == 16
