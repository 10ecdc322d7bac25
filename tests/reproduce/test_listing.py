"""Costs of tables before they are made."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.cli import main
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.reproduction import committed_runs
from tests.reproduce.fakes import fake_all


def test_listing_needs_no_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "list"]) == 0
    printed = capsys.readouterr().out
    for name in CATALOGUE:
        assert f"\n{name} " in printed


def test_listing_tells_kept_runs_from_those_to_train(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fake_all("init", tmp_path / "kept", only=(), seconds=1800)
    monkeypatch.setattr(
        "liere.reproduce.reproduction.committed_runs",
        lambda scale: tmp_path / "kept" / "runs" if scale == "small" else None,
    )
    assert main(["reproduce", "list"]) == 0
    lines = {line.split(" ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "4 runs, kept (training took 2.0 hours on one core)" in lines["init"]
    assert "5 runs, 3 to train: " in lines["block"]  # liere8 and rope_mixed are those of init
    assert "18 runs to train: " in lines["spatial"]
    assert "23 runs, 21 to train; cost unknown without data/atari-clips.npz" in lines["main"]


def test_kept_tables_need_no_data_to_say_what_they_cost(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "list"]) == 0
    lines = {line.split(" ")[0]: line for line in capsys.readouterr().out.splitlines()}
    if committed_runs("small") is not None:
        assert "23 runs, kept (training took " in lines["main"]
        assert "unknown" not in "".join(lines.values())


def test_an_estimate_says_what_it_leaves_out(tmp_path, capsys):
    arguments = ["spatial", "--own", "--dry-run", "--encodings", "liere4", "--out", str(tmp_path)]
    assert main(["reproduce", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "3 runs to train, " in printed
    assert "(starting processes, loading data and testing are not included)" in printed
