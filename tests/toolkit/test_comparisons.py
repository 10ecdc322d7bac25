"""Comparisons from Python, with classes and data that only Python can pass."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

import liere
from liere import toolkit
from liere.encodings import registry
from liere.runs.run import open_run
from tests.comparison.plans import spoil
from tests.toolkit.shifted import SHORT, Shifted
from tests.training.tiny import CONFIG, quiet

pytestmark = quiet


class MyEncoding(Shifted):
    """A user-defined encoding in the file that compares it."""


def test_what_the_docs_show(recipe, tmp_path):
    """Run the example of the documentation, with smaller sizes and shorter training."""
    run = toolkit.train("tiny.yaml", encoding="liere8", out="runs/a", overrides={"training.seed": 1, **SHORT})
    scores = toolkit.evaluate(run, sizes=[36, 48], examples=20)
    result = toolkit.compare(
        "tiny.yaml",
        encodings=["rope_mixed", MyEncoding, "liere8:init_scale=3.14"],
        seeds=range(2),
        sizes=[36, 48],
        examples=20,
        out="runs/b",
        overrides=SHORT,
        progress=False,
    )
    rows = result.table(pandas=False)
    page = result.report("b.html")

    assert run.is_finished
    assert run.config.model.encoding == "liere8"
    assert open_run(tmp_path / "runs" / "a").evaluations() == list(scores.records)
    assert [row["size"] for row in scores.table(pandas=False)] == [36, 48]
    assert "36 px" in repr(scores)

    name = f"{__name__}:MyEncoding"
    assert [(row["encoding"], row["size"]) for row in rows] == [
        (encoding, size) for encoding in ("rope_mixed", name, "liere8") for size in (36, 48)
    ]
    for row in rows:
        assert row["seeds"] == [0, 1]
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["worst"] <= row["mean"] <= row["best"]
        assert (row["examples"], row["trained_examples"]) == (20, 16)
    assert {row["encoding_parameters"] for row in rows if row["encoding"] == name} == {1}
    kept = yaml.safe_load(
        (tmp_path / "runs" / "b" / "runs" / "tests.toolkit.test_comparisons-MyEncoding-seed1/config.yaml").read_text()
    )
    assert kept["model"]["encoding"] == name
    assert "MyEncoding" in page.read_text()
    assert "MyEncoding" in repr(result)
    assert result.page == tmp_path.relative_to(tmp_path) / "runs" / "b" / "report.html"
    command = json.loads((tmp_path / "runs/b/report.json").read_text())["command"]
    assert command.startswith(f"liere.toolkit.compare('tiny.yaml', encodings=['rope_mixed', '{name}', 'liere8:init_s")
    again = toolkit.report("runs/b", out="again")
    assert sorted(again.table(pandas=False), key=str) == sorted(rows, key=str)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Return a comparison of one encoding class, trained in another process without output."""
    folder = tmp_path_factory.mktemp("result")
    content = yaml.safe_load(CONFIG)
    options = {"seeds": [0], "examples": 8, "overrides": SHORT, "progress": False}
    return toolkit.compare(content, encodings=[Shifted], out=folder, **options)


def test_a_table_is_a_data_frame_where_there_is_pandas(result):
    pandas = pytest.importorskip("pandas")
    frame = result.table()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.to_dict("records") == result.table(pandas=False)


def test_a_comparison_says_nothing_if_that_is_wanted(result, capfd, tmp_path):
    again = {
        "seeds": [0],
        "examples": 8,
        "overrides": SHORT,
        "progress": False,
        "out": result.runs[0].folder.parents[1],
    }
    toolkit.compare(yaml.safe_load(CONFIG), encodings=[Shifted], **again)
    toolkit.train(yaml.safe_load(CONFIG), out=tmp_path / "run", overrides=SHORT, progress=False)
    toolkit.evaluate(tmp_path / "run", examples=4, progress=False)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "examples" not in printed.err


def test_a_registered_encoding_takes_part_under_its_name(monkeypatch, recipe):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    liere.register_encoding(Shifted)
    options = {"seeds": [0], "examples": 8, "overrides": SHORT, "progress": False}
    result = toolkit.compare(recipe, encodings=["shifted:amount=2"], out="out", **options)
    assert [row["encoding"] for row in result.table(pandas=False)] == ["shifted"]
    assert result.runs[0].config.model.options == {"amount": 2}


def test_runs_that_fail_are_an_exception_with_what_the_others_found(recipe, tmp_path, capsys):
    spoil(toolkit.plan_comparison(recipe, encodings=["none"], seeds=[0], out=tmp_path / "out", overrides=SHORT).runs[0])
    with pytest.raises(toolkit.RunsFailedError, match="1 of 2 runs failed: none-seed0 failed with exit code 1") as stop:
        toolkit.compare(
            recipe, encodings=["none", "sincos"], seeds=[0], examples=8, out="out", overrides=SHORT, progress=False
        )
    assert [row["encoding"] for row in stop.value.result.table(pandas=False)] == ["sincos"]
