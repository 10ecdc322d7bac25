"""Tables of the site show the committed numbers."""

from __future__ import annotations

import doctest
import importlib
import statistics

import pytest

pytest.importorskip("tests.training.requirements")
from liere.bench.table_parts import with_quartiles
from liere.bench.tables import make_tables
from liere.cli import main
from liere.report.result_table import result_table
from tests.docs.pages import ROOT, numbers

if not (ROOT / "tools").exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)

from tools.docs_site.committed import look_up, show
from tools.docs_site.plain_tables import markdown_tables, plain_table
from tools.docs_site.result_tables import TABLES


@pytest.mark.parametrize("module", sorted((ROOT / "tools" / "docs_site").glob("*.py")), ids=lambda path: path.stem)
def test_examples_in_docstrings(module):
    pytest.importorskip("sphinx")
    result = doctest.testmod(importlib.import_module(f"tools.docs_site.{module.stem}".removesuffix(".__init__")))
    assert result.failed == 0


@pytest.mark.parametrize("name", TABLES)
def test_all_tables_can_be_made(name):
    for table in TABLES[name]():
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize("name", ["spatial", "placement"])
def test_comparisons_are_those_of_the_report(name):
    (table,) = TABLES[name]()
    assert table == result_table(numbers(f"{name}.json"))


QUESTIONS = ["rotations", "step", "memory", "scaling", "loading", "points", "timm", "training", "gpu"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_benchmarks_have_every_cell_of_the_terminal(question):
    shown = TABLES[f"bench/{question}"]() + (TABLES["bench/placement"]() if question == "step" else [])
    for table, printed in zip(shown, make_tables(numbers(f"bench_{question}.json")), strict=True):
        assert table.title == printed.title
        assert [[text.replace("[", "(").replace("]", ")") for text in row] for row in printed.rows] == table.texts
    if question == "step":
        ratio = look_up(numbers("bench_step.json"), "rows[model=liere8,image_size=224].train.ratio")
        assert with_quartiles(ratio).replace("[", "(").replace("]", ")") in [
            text for row in shown[1].texts for text in row
        ]


def test_flops_are_what_the_command_prints(capsys):
    (table,) = TABLES["flops"]()
    assert main(["flops"]) == 0
    printed = capsys.readouterr().out.replace(" G", "").replace(" *", "*")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for row, shown in zip(table.texts, numbers("flops.json")["rows"], strict=True):
        assert " ".join([shown["size"], shown["encoding"], *row[2:]]).replace(")*", ")*") in lines


@pytest.mark.parametrize("name", ["larger", "cifar10", "start"])
def test_studies_have_every_seed(name):
    (table,) = TABLES[f"studies/{name}"]()
    texts = [text for row in table.texts for text in row]
    rows = numbers(f"studies/{name}.json")["rows"]
    for row in rows:
        seeds = [f"{100 * value:.1f}" for value in row["by_seed"]]
        mean = f"{100 * statistics.fmean(row['by_seed']):.1f}"
        assert (f"{mean} ({', '.join(seeds)})" if len(seeds) > 1 else mean) in texts
    assert len(rows) == sum(text != "–" for row in table.texts for text in row[table.heads :])


def test_the_paper_tables_are_those_of_the_pages():
    accuracy, seeds = TABLES["paper/main"]()
    found = numbers("reproduce/small/main.json")["numbers"]["accuracy"]
    for row, each, cells in zip(accuracy.texts, seeds.texts, found.values(), strict=True):
        own = cells["CIFAR-10"]
        assert row[1] == f"{100 * own['value']:.1f} ({100 * min(own['by_seed']):.1f}-{100 * max(own['by_seed']):.1f})"
        assert each[1] == ", ".join(f"{100 * value:.1f}" for value in own["by_seed"])
    assert [column.group for column in accuracy.columns] == ["", "CIFAR-10", "CIFAR-10", "Atari clips", "Atari clips"]
    best = [cell.value for row in accuracy.rows for cell in row if cell.strong]
    assert best == ["90.8", "57.9"]


def test_sensitivity_is_a_mean_over_seeds():
    (table,) = TABLES["sensitivity"]()
    rows = [
        row
        for row in numbers("placement_sensitivity.json")["rows"]
        if row["encoding"] == "liere8" and row["trained"] and row["position_shift"] > 0
    ]
    expected = f"{statistics.fmean(row['layers'][3]['prefix'] for row in rows):.2f}"
    (shown,) = (row for row in table.texts if row[:2] == ["LieRE₈", "trained: the recipe"])
    assert shown[2] == str(len(rows))
    assert shown[5].split(" / ")[3] == expected


def test_heads_are_grouped_with_neighbors_only():
    table = plain_table("", ["case", "p, seeds", "p, z-test", "train step, to absolute"], [])
    assert [(column.group, column.name) for column in table.columns] == [
        ("", "case"),
        ("p", "seeds"),
        ("p", "z-test"),
        ("", "train step, to absolute"),
    ]


def test_numbers_are_looked_up_strictly():
    content = {"rows": [{"name": "a", "seeds": {"0": 0.5, "1": 0.25}}, {"name": "b"}, {"name": "b"}]}
    assert show(look_up(content, "rows[name=a].seeds.min"), "%") == "25.0\N{NO-BREAK SPACE}%"
    for path in ("rows[name=b]", "rows[name=c]", "rows.7", "nothing"):
        with pytest.raises(LookupError):
            look_up(content, path)


def test_escapes_of_markdown_are_undone():
    page = (
        "**A \\[0, 1)**\n\n| x | a, b | a, c |\n| --- | ---: | ---: |\n| y | p \\< 0.1 | **2.0\\* (1-3)** |\n\nEnd.\n"
    )
    (table,) = markdown_tables(page)
    assert table.title == "A [0, 1)"
    assert table.texts == [["y", "p < 0.1", "2.0* (1-3)"]]
    assert table.rows[0][2] == ("2.0*", "1-3", True)
