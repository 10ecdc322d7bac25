"""Requests for tables and figures."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

from liere.reproduce.request import make_request, prepare_request, write_configs
from liere.runs.config_file import parse_config


def test_results_are_kept_by_scale_and_rehearsals_apart():
    assert make_request("main").folder == Path("liere-reproduce/small")
    assert make_request("main", scale="paper").folder == Path("liere-reproduce/paper")
    assert make_request("main", scale="paper", smoke=True).folder == Path("liere-reproduce/paper-smoke")
    assert make_request("main", out="here", smoke=True).folder == Path("here")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mian", {}, "unknown table or figure 'mian': did you mean 'main'?"),
        ("main", {"scale": "medium"}, "unknown scale 'medium': choose from small, paper"),
        (
            "main",
            {"overrides": {"training.seed": "3"}},
            "--training.seed is varied by the experiments themselves: use --encod",
        ),
    ],
)
def test_what_cannot_be_made_is_told(name, options, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        prepare_request(make_request(name, **options))


def test_kept_runs_are_used_unless_own_ones_are_wanted_or_it_is_a_rehearsal(tmp_path, monkeypatch):
    monkeypatch.setattr("liere.reproduce.reproduction.committed_runs", lambda scale: tmp_path / scale)
    own = tmp_path / "out" / "runs"
    for options, places in (({}, (own, tmp_path / "small")), ({"own": True}, (own,)), ({"smoke": True}, (own,))):
        assert prepare_request(make_request("init", out=tmp_path / "out", **options)).places == places


def test_a_table_of_formulas_needs_no_runs():
    assert prepare_request(make_request("flops")) is None


def test_configurations_are_those_of_the_runs(tmp_path):
    reproduction = prepare_request(make_request("init", out=tmp_path / "out", own=True))
    assert write_configs(reproduction, tmp_path / "configs") == len(reproduction.runs()) == 4
    for planned in reproduction.runs():
        content = yaml.safe_load((tmp_path / "configs" / f"{planned.folder.name}.yaml").read_text())
        assert parse_config(content).fingerprint == planned.config.fingerprint
