from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.runs.find_runs import find_runs
from tests.training.tiny import make_run


def test_runs_are_found_by_themselves_and_in_folders_of_comparisons(tmp_path):
    runs = [make_run(tmp_path / "runs" / name) for name in ("b", "a")]
    alone = make_run(tmp_path / "alone")
    assert [run.folder for run in find_runs([tmp_path])] == [runs[1].folder, runs[0].folder]
    assert [run.folder for run in find_runs([runs[0].folder, alone.folder])] == [runs[0].folder, alone.folder]


def test_a_folder_that_is_neither_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is neither a run nor a comparison"):
        find_runs([tmp_path / "nothing"])
