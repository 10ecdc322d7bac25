"""Committed results: everything is rebuilt from committed runs and numbers, without data and without training."""

from __future__ import annotations

import json
import shutil

import pytest

pytest.importorskip("tests.training.requirements")

from liere.cli import main
from liere.reproduce.catalog import CATALOGUE
from liere.runs.archive import read_archive
from tests.own_tools import import_tool

matplotlib = pytest.importorskip("matplotlib")
rebuild_results = import_tool("rebuild_results")

KEPT = rebuild_results.RESULTS / "reproduce" / "small"
NAMES = [name for name in CATALOGUE if (KEPT / f"{name}.json").exists() and not CATALOGUE[name].needs_weights]
TABLES = [name for name in rebuild_results.PARTS if name.startswith(rebuild_results.TABLES)]
OTHERS = [name for name in rebuild_results.PARTS if name not in TABLES]
# Other matplotlib releases draw the same numbers with different pixels.
IS_DRAWN_HERE = (
    f"version{matplotlib.__version__},".encode() in (rebuild_results.RESULTS / "side_by_side.png").read_bytes()
)
COMPARED = (".json", ".md", ".html", ".png") if IS_DRAWN_HERE else (".json", ".md")

pytestmark = pytest.mark.skipif(not NAMES, reason="the committed results are not available")


def differences(name: str) -> dict[str, str]:
    found = rebuild_results.rebuild(name)
    assert found
    return {file: where for file, where in found.items() if where and file.endswith(COMPARED)}


def test_the_main_tables_are_there():
    assert {"main", "loss", "significance", "shuffling", "compute", "flops"} <= set(NAMES)
    assert len(TABLES) == len(NAMES)


@pytest.mark.parametrize("name", TABLES)
def test_tables_come_out_as_committed(name):
    assert differences(name) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_reports_studies_and_pictures_come_out_as_committed(name):
    assert differences(name) == {}


def test_all_runs_of_a_table_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "init", "--scale", "small"]) == 0
    assert "init: 4 of 4 runs are finished" in capsys.readouterr().out
    assert not (tmp_path / "liere-reproduce" / "small" / "runs").exists()


def test_runs_are_kept_without_weights_and_none_is_superfluous():
    used = {run["name"] for name in NAMES for run in json.loads((KEPT / f"{name}.json").read_text())["runs"]}
    assert {path.name for path in (KEPT / "runs").iterdir()} == {f"{name}.tar.xz" for name in used}
    assert not [path for path in rebuild_results.RESULTS.rglob("*") if path.suffix in (".safetensors", ".ckpt")]
    for path in (KEPT / "runs").iterdir():
        assert {"config.yaml", "result.json", "evaluation.json", "metrics.csv"} < read_archive(path).keys()


class TestComparing:
    """Differences between files are reported."""

    @pytest.fixture
    def files(self, tmp_path):
        def write(suffix: str, old: str, new: str):
            (tmp_path / f"old{suffix}").write_text(old)
            (tmp_path / f"new{suffix}").write_text(new)
            return tmp_path / f"old{suffix}", tmp_path / f"new{suffix}"

        return write

    @pytest.mark.parametrize(
        ("suffix", "old", "new"),
        [
            (".md", "a\nb\n", "a\nb\n"),
            (".json", '{\n "date": "2025",\n "x": 1\n}', '{\n "date": "2026",\n "x": 1\n}'),
            (".html", '<time datetime="1">x</time>', '<time datetime="2">y</time>'),
        ],
    )
    def test_only_the_date_may_differ(self, files, suffix, old, new):
        assert rebuild_results.compare(*files(suffix, old, new)) == ""

    @pytest.mark.parametrize(
        ("old", "new", "where"),
        [
            ("a\nb\n", "a\n c\n", "differs in line 2: 'b' is now 'c'"),
            ("a\n", "a\nb\n", "differs: line count was 1, is now 2"),
            ('{\n  "date": "1",\n}', '{\n  "date": "2",\n}', "differs in line 2: "),  # the date of a run
        ],
    )
    def test_the_first_difference_is_reported(self, files, old, new, where):
        assert rebuild_results.compare(*files(".json", old, new)).startswith(where)

    def test_missing_files_are_differences(self, files, tmp_path):
        old, new = files(".md", "", "")
        assert rebuild_results.compare(old, tmp_path / "none") == "is no longer made"
        assert rebuild_results.compare(tmp_path / "none", new) == "is not committed"

    def test_pixels_are_counted(self, tmp_path):
        image = pytest.importorskip("PIL.Image")
        for name, size, color in (("a", (4, 3), 0), ("b", (4, 3), 9), ("c", (2, 3), 0)):
            image.new("L", size, color).save(tmp_path / f"{name}.png")
        one, other, smaller = (tmp_path / f"{name}.png" for name in "abc")
        assert rebuild_results.compare(one, other) == "differs: 12 of 12 pixels"
        assert rebuild_results.compare(one, smaller) == "differs: 4 x 3 pixels are now 2 x 3"

    def test_a_changed_number_is_found_and_the_exit_code_says_so(self, tmp_path, monkeypatch, capsys):
        shutil.copytree(rebuild_results.RESULTS / "studies", tmp_path / "studies")
        monkeypatch.setattr(rebuild_results, "RESULTS", tmp_path)
        monkeypatch.setattr("sys.argv", ["rebuild_results.py", "studies/start"])
        assert rebuild_results.main() == 0
        assert capsys.readouterr().out == "studies/start.md: same\n"
        page = tmp_path / "studies" / "start.md"
        whole = page.read_text()
        page.write_text(whole.replace("99.", "98.", 1))
        assert rebuild_results.main() == 1
        assert capsys.readouterr().out.startswith("studies/start.md: differs in line ")
        assert page.read_text() != whole
        monkeypatch.setattr("sys.argv", ["rebuild_results.py", "studies/start", "--write"])
        assert rebuild_results.main() == 1
        assert page.read_text() == whole
