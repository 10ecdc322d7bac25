"""Validations of a run may have infinite losses, which JSON cannot tell."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("matplotlib")

from liere.report.picture_data import Pictures
from liere.report.report_files import write_report
from tests.report.report_data import make_comparison


def test_infinite_losses_are_null(tmp_path):
    comparison = make_comparison(["liere8"], seeds=1)
    comparison["runs"][0]["curve"][0]["loss"] = math.inf
    comparison["runs"][0]["curve"][1]["loss"] = math.nan
    write_report(comparison, Pictures(), tmp_path)
    found = json.loads((tmp_path / "report.json").read_text(), parse_constant=pytest.fail)
    assert [point["loss"] for point in found["runs"][0]["curve"][:2]] == [None, None]
