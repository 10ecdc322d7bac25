"""The runs of the demo."""

from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.comparison.demo import ENCODINGS, demo_plan, describe_demo
from liere.runs.encoding_text import parse_encoding


def test_the_whole_demo_has_all_encodings_of_the_paper_at_four_sizes(tmp_path):
    plan = demo_plan(tmp_path, quick=False, seed=7, slots=1)
    assert [(run.config.model.encoding, run.config.model.options) for run in plan.runs] == [
        parse_encoding(text) for text in ENCODINGS
    ]
    assert {run.config.training.seed for run in plan.runs} == {7}
    assert {run.config.hardware.accelerator for run in plan.runs} == {"cpu"}
    assert plan.sizes == [108, 168, 276, 372]
    text = describe_demo(plan, quick=False)
    assert "5 models train on\n" in text
    assert "of 108 px each" in text
    assert text.endswith("Counting arrows alone gives 44 %.")
    assert list(tmp_path.iterdir()) == []


def test_the_quick_one_is_small_and_has_a_folder_of_its_own(tmp_path):
    plan = demo_plan(tmp_path, quick=True, seed=0, slots=1)
    assert plan.folder == tmp_path / "quick"
    assert [run.config.model.encoding for run in plan.runs] == ["absolute", "liere"]
    whole = demo_plan(tmp_path, quick=False, seed=0, slots=1)
    assert plan.runs[1].operations < whole.runs[-1].operations / 3
    assert describe_demo(plan, quick=True).endswith("Guessing gives 25 %.")
