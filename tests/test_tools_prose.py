"""`tools/check_prose.py` and codespell find the phrases and spellings that this project avoids."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own_tools import import_tool

prose = import_tool("check_prose")
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The log has one line a seed.", "one line a seed"),
        ("A row an encoding, then the mean.", "A row an encoding"),
        ("One PNG file a layer.", "One PNG file a layer"),
        ("It starts processes, one a GPU.", "one a GPU"),
        ("160 s an epoch on one core.", "160 s an epoch"),
        ("Missing files are told at the start.", "are told"),
        ("watch: Told twice a second which jobs run.", "Told twice"),
        ("The match starts anew.", "anew"),
        ("`make format` mends them.", "mends"),
        ("Whoever only counts arrows fails.", "Whoever"),
        ("The data are to be had from the web.", "to be had"),
        ("The size is other than in training.", "is other than"),
        ("The name was other.", "was other."),
        ("Runs end bit by bit the same.", "bit by bit"),
        ("With intervals of 95 %.", "intervals of 95 %"),
        ("It is read in one go.", "in one go"),
        ("Python runs as it stands.", "as it stands"),
        ("what is finished is kept", "what is finished is"),
        ("They are not made again.", "not made again"),
        ("Take at most so many steps.", "at most so many"),
        ('"""Say which runs there are."""', '"""Say which'),
        ("1 runs failed", "1 runs"),
    ],
)
def test_phrases_are_found(text, phrase):
    found = [finding.phrase for finding in prose.find_phrases(f"A plain line.\n{text}\n")]
    assert phrase in found
    assert {finding.line for finding in prose.find_phrases(f"A plain line.\n{text}\n")} == {2}


@pytest.mark.parametrize(
    "text",
    [
        "One line per seed, one row per encoding, one process per GPU.",
        "The display is updated twice a second.",
        "Each step takes a batch; a seed gives a run.",
        "With one seed, a model is compared with another.",
        "Two encodings cannot be told apart, nor can they be told from absolute positions.",
        "n - 1 steps, 11 runs, 2.1 runs, seed 1 of 3",
        "A recommendation to amend the recipe.",
        "There are other encodings in the registry.",
        "The interval has a width of 95 % of the mean.",
        "There are so many seeds that the mean is precise.",
    ],
)
def test_plain_sentences_pass(text):
    assert prose.find_phrases(text) == []


def test_phrases_are_found_across_lines_and_in_comments():
    (finding,) = prose.find_phrases("# plain\n# what is missing\n#   is reported\n")
    assert finding == (2, "what is missing is", "missing files are")


def test_a_line_can_be_exempted():
    assert prose.find_phrases("The user wrote 'anew'.  <!-- prose: keep -->") == []


def test_the_command_prints_place_phrase_and_better_wording(tmp_path, capsys):
    (tmp_path / "page.md").write_text("# Title\n\nThe match starts anew.\n")
    (tmp_path / "picture.png").write_bytes(b"anew")
    assert prose.main([str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'page.md'}:3: 'anew': better 'again'\n"
    assert printed.err == "1 finding\n"
    (tmp_path / "page.md").write_text("The match starts again.\n")
    assert prose.main([str(tmp_path)]) == 0


def test_a_missing_file_is_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit):
        prose.main([str(tmp_path / "none.md")])
    assert "none.md does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "better"), [("initialisation", "initialization"), ("towards", "toward"), ("teh", "the")]
)
def test_codespell_finds_british_spellings_and_typos(tmp_path, word, better):
    codespell = Path(sys.executable).with_name("codespell")
    if not codespell.exists() and not shutil.which("codespell"):
        pytest.skip("codespell is not installed")
    page = tmp_path / "page.md"
    page.write_text(f"A plain line.\nIt says {word} here.\n")
    command = [str(codespell) if codespell.exists() else "codespell", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode != 0
    assert f"page.md:2: {word} ==> {better}" in done.stdout
    page.write_text(f"A plain line.\nIt says {better} here.\n")
    assert subprocess.run(command, capture_output=True, check=False, cwd=ROOT).returncode == 0
