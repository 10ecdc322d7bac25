"""Results that the code gives within seconds are what is committed."""

from __future__ import annotations

import json

import pytest

from liere.cli import main
from tests.docs.pages import ROOT, numbers

pytestmark = pytest.mark.skipif(not (ROOT / "results").exists(), reason="the results are not beside the tests")


def test_inspect(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["inspect", "vit_small", "--encoding", "liere8", "--out", str(tmp_path)]) == 0
    new = json.loads((tmp_path / "inspect.json").read_text())
    assert leaves(new) == pytest.approx(leaves(numbers("inspect.json")), rel=1e-2, abs=1e-3)


def leaves(value) -> list[float]:
    """All numbers of nested data, in order."""
    if isinstance(value, dict | list):
        return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in leaves(part)]
    return [value] if isinstance(value, int | float) else []


def test_flops(capsys):
    assert main(["flops", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == numbers("flops.json")


BENCHMARKS = sorted(path.stem.removeprefix("bench_") for path in (ROOT / "results").glob("bench_*.json"))


@pytest.mark.parametrize("question", BENCHMARKS)
def test_benchmarks_were_not_done_in_a_hurry(question):
    assert not numbers(f"bench_{question}.json")["quick"]
