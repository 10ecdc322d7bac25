"""A table of the paper from request to files."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.failures import RunsFailedError
from liere.reproduce.making import REHEARSAL, Made, make
from liere.reproduce.reproduction import Reproduction
from liere.reproduce.request import make_request
from tests.reproduce.fakes import fake_all


@pytest.fixture
def request_of_init(tmp_path):
    """Return a request for a small table whose runs are all finished."""
    fake_all("init", tmp_path / "out", only=())
    return make_request("init", out=tmp_path / "out", own=True)


def test_what_is_made_says_the_same_in_every_way(request_of_init, tmp_path, capsys):
    made = make(request_of_init, command="a call")
    assert "init: 4 of 4 runs are finished" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out" / "init.json").read_text())
    assert kept["command"] == "a call"
    assert kept["numbers"] == json.loads(json.dumps(made.numbers))
    assert [claim["text"] for claim in kept["claims"]] == [claim.text for claim in made.claims]
    assert made.page == tmp_path / "out" / "init.html"
    shown = repr(made)
    assert made.outcome.tables[0].title in shown
    assert all(str(claim) in shown for claim in made.claims)
    assert REHEARSAL not in shown
    assert repr(Made(made.entry, made.outcome, made.pages, is_rehearsal=True)).count(REHEARSAL) == 1


def test_what_is_exported_has_the_runs_beside_it(request_of_init, tmp_path, capsys):
    made = make(request_of_init, command="a call", export=tmp_path / "kept", progress=False)
    assert made.pages == (tmp_path / "out" / "init.html", tmp_path / "kept" / "init.html")
    assert len(list((tmp_path / "kept" / "runs").glob("*.tar.xz"))) == 4
    assert capsys.readouterr().out == ""


def test_a_table_without_some_runs_is_an_error_with_what_there_is(request_of_init, tmp_path, monkeypatch):
    gone = next((tmp_path / "out" / "runs").glob("*liere8*"))
    gone.rename(tmp_path / "gone")
    monkeypatch.setattr(Reproduction, "check", lambda *_: None)  # which needs the data
    monkeypatch.setattr(Reproduction, "run", lambda self, *, failed, **_: failed("liere8-seed0 failed"))
    with pytest.raises(RunsFailedError, match="1 run failed, so the table is incomplete: liere8-seed0 failed") as stop:
        make(request_of_init, command="a call", progress=False)
    assert stop.value.result.page.exists()
    assert len(json.loads((tmp_path / "out" / "init.json").read_text())["runs"]) == 3


def test_a_table_of_formulas_is_made_at_once(tmp_path):
    made = make(make_request("flops", out=tmp_path), command="a call", progress=False)
    assert "0.970 G*" in repr(made)
    assert made.page.exists()
