"""Tables of the paper from Python."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tests.training.requirements")
from liere import toolkit
from liere.reproduce.reproduction import committed_runs


def test_a_table_of_the_paper_from_kept_runs(tmp_path):
    if committed_runs("small") is None:
        pytest.skip("there are no kept runs here")
    made = toolkit.reproduce("init", scale="small", out=tmp_path, progress=False)
    assert made.claims
    assert all(claim.text in repr(made) for claim in made.claims)
    assert made.page == tmp_path / "init.html"
    assert (
        json.loads((tmp_path / "init.json").read_text())["command"] == "liere.toolkit.reproduce('init', scale='small')"
    )
    with pytest.raises(ValueError, match="unknown scale 'medium': choose from small, paper"):
        toolkit.reproduce("init", scale="medium")
