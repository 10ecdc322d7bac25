from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from liere.evaluation.report import Pictures, write_report
from liere.evaluation.report.facts import circumstances, machine_facts
from liere.evaluation.report.finding import finding
from liere.evaluation.report.names import colours_of
from liere.evaluation.report.outline import outline
from liere.evaluation.report.tables import pair_tables, result_table, run_table, seed_table
from tests.evaluation.report_data import make_comparison, make_pictures

pytest.importorskip("matplotlib")

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Tags must close in the order in which they opened; ids, addresses and text are kept."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.addresses: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("src", "href"):
                (self.references if value.startswith("#") else self.addresses).append(value.lstrip("#"))
            elif name == "clip-path":
                self.references.append(re.fullmatch(r"url\(#(.*)\)", value)[1])
            elif name == "aria-labelledby":
                self.references.append(value)
        if tag == "img":
            assert dict(attrs)["alt"]
        if tag == "th":
            assert dict(attrs)["scope"] in ("col", "colgroup", "row")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    return write_report(make_comparison(), make_pictures(), tmp_path_factory.mktemp("report") / "new").parent


def test_table_agrees_with_the_data():
    comparison = make_comparison()
    table = result_table(comparison)
    assert table.header == [
        "encoding",
        *(f"accuracy, {size} px" for size in (108, 168, 276)),
        *(f"paper, {size} px" for size in (108, 168, 276)),
        "examples to 95 %",
        "seconds",
        "parameters",
    ]
    for cells, row in zip(table.texts, comparison["encodings"], strict=True):
        for cell, found in zip(cells[1:4], row["evaluations"], strict=True):
            value, low, high = (100 * found["accuracy"][key] for key in ("value", "low", "high"))
            assert cell == f"{value:.1f} ({low:.1f}-{high:.1f})"
        assert cells[4:7] == [f"{value:.1f}" for value in row["paper"].values()]
        assert cells[8:] == ["132", "151,234"]
    assert [cells[0] for cells in table.texts][-2:] == ["LieRE₈", "LieRE (dense)"]
    assert [cells[7] for cells in table.texts] == ["not reached", "not reached", "61,440", "56,320", "51,200"]


@pytest.mark.parametrize(
    ("examples", "reached", "shown"),
    [
        (51_200, 3, "51,200"),
        (51_200.5, 2, "51,200 (2 of 3 seeds)"),
        (None, 1, "not reached (1 of 3 seeds)"),
        (None, 0, "not reached"),
    ],
)
def test_examples_to_target_say_how_many_seeds_got_there(examples, reached, shown):
    comparison = make_comparison(["liere"])
    comparison["encodings"][0] |= {"examples_to_target": examples, "seeds_at_target": reached}
    assert result_table(comparison).texts[0][7] == shown


def test_what_rounds_to_the_best_is_best():
    comparison = make_comparison()
    table = result_table(comparison)
    marked = [[cell.strong for cell in row] for row in table.rows]
    assert [row[1] for row in marked] == [False, False, True, True, True]  # 99.95, 100.0 and 99.96
    assert [row[3] for row in marked] == [False, False, False, False, True]
    assert not any(any(row[4:]) for row in marked)
    assert not any(cell.strong for cell in result_table(make_comparison(["liere"])).rows[0])


def test_paper_columns_are_there_if_there_is_a_number():
    comparison = make_comparison(["absolute", "liere"])
    first, second = comparison["encodings"]
    first["paper"] = None
    second |= {"paper": {"276": 100.0}, "paper_label": "LieRE_64"}
    table = result_table(comparison)
    assert [name for name in table.header if name.startswith("paper")] == ["paper, 276 px"]
    assert [row[4] for row in table.texts] == ["–", "100.0"]
    assert "Paper: ViT-B, 800,000 examples; LieRE_64 beside LieRE (dense)." in table.notes
    second["paper"] = None
    assert not any(
        "paper" in text.lower() for text in [*result_table(comparison).header, *result_table(comparison).notes]
    )


def test_pairs_agree_with_the_data():
    comparison = make_comparison(["absolute", "liere"], sizes=[276])
    comparison["pairs"] = [
        {"size": 276, "first": "liere", "second": "absolute", "difference": 0.35, "low": 0.33, "high": 0.37, "p": 1e-4},
        {
            "size": 276,
            "first": "absolute",
            "second": "<b>",
            "difference": -0.01,
            "low": -0.03,
            "high": -0.0001,
            "p": 0.0512,
        },
    ]
    table = pair_tables(comparison)[276]
    assert table.texts == [
        ["LieRE (dense)", "absolute", "+35.0 (+33.0 to +37.0)", "< 0.001"],
        ["absolute", "<b>", "-1.0 (-3.0 to +0.0)", "0.051"],
    ]
    assert [row[3].strong for row in table.rows] == [True, False]
    assert list(pair_tables(make_comparison())) == [276, 168, 108]


def test_seeds_that_an_encoding_lacks_are_left_open():
    comparison = make_comparison(["absolute", "liere"], sizes=[108])
    comparison["encodings"][0] |= {"seeds": [0, 7]}
    comparison["encodings"][0]["evaluations"][0]["by_seed"] = [0.5, 0.25]
    table = seed_table(comparison)
    assert table.header[2:6] == ["accuracy, seed 0", "accuracy, seed 1", "accuracy, seed 2", "accuracy, seed 7"]
    assert table.texts[0][2:6] == ["50.0", "–", "–", "25.0"]
    assert table.texts[1][5] == "–"


def test_runs_say_how_they_ended():
    comparison = make_comparison(["liere"], seeds=2)
    comparison["runs"][1]["curve"] = []
    last = comparison["runs"][0]["curve"][-1]
    ends = [row[3:] for row in run_table(comparison).texts]
    assert ends == [["131", f"{last['examples']:,}", f"{100 * last['accuracy']:.1f}"], ["132", "–", "–"]]


def test_finding_names_the_best_and_the_next():
    assert finding(make_comparison()) == (
        "At 276 px, after training at 108 px, LieRE (dense) is most accurate with 91.6 %, ahead of LieRE₈ with 65.1 %; "
        "other test examples would say the same (p < 0.001), and so do 3 of 3 seeds."
    )


def test_finding_claims_no_more_than_the_test():
    comparison = make_comparison(["absolute", "visionllama"])
    assert finding(comparison).endswith("absolute with 38.1 %; the difference may be chance (p = 0.340).")
    comparison["pairs"] = []
    assert finding(comparison).endswith("whether the difference is chance was not tested.")


def test_finding_of_ties():
    comparison = make_comparison(sizes=[108])
    assert finding(comparison) == (
        "At 108 px, LieRE₈, LieRE (dense) and RoPE-Mixed are level at 100.0 %; next is absolute with 45.3 %."
    )


def test_finding_of_little():
    assert finding(make_comparison(["liere"], seeds=1, sizes=[108])) == (
        "At 108 px, LieRE (dense) answers 100.0 % correctly. "
        "With one seed each, nothing is known of how much runs differ."
    )
    assert finding(make_comparison([])) == "Nothing has been evaluated yet."


def test_facts():
    comparison = make_comparison(["absolute", "liere"])
    comparison["encodings"][0]["seeds"] = [0]
    assert circumstances(comparison)["seeds each"] == "1 to 3"
    assert circumstances(comparison)["test examples"] == "2,000"
    comparison["versions"]["timm"] = None
    assert machine_facts(comparison)["memory, GB"] == "24.0"
    assert "timm" not in machine_facts(comparison)


def test_outline_is_yaml():
    yaml = pytest.importorskip("yaml")
    config = {"a": {"b": {"c": 1}, "path": "runs/one", "sizes": [1, 2]}, "none": None, "odd": "a: b # c", "empty": {}}
    assert yaml.safe_load(outline(config)) == config


def test_encodings_of_one_report_have_different_colours():
    comparison = make_comparison()
    comparison["encodings"] += [{"encoding": name} for name in ("sincos", "none", "liere32")]
    colours = colours_of(comparison)
    assert len(set(colours.values())) == len(colours) == 8


def test_files(report):
    assert sorted(path.name for path in report.iterdir()) == ["report", "report.html", "report.json", "report.md"]
    assert sorted(path.name for path in (report / "report").iterdir()) == [
        "attention-108.png",
        "attention-276.png",
        "learning-curves.png",
        "overview.png",
        "resolution.png",
        *(f"sample-{i}.png" for i in range(6)),
    ]
    assert json.loads((report / "report.json").read_text()) == make_comparison()
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in report.glob("report/*"))


def test_page_stands_alone(report):
    text = (report / "report.html").read_text()
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in re.sub(r"url\(#", "", text)
    assert all(address.startswith("data:") for address in page.addresses)
    assert page.tags["img"] == 6 + 5 * 4 * 2
    assert page.tags["svg"] == 2
    assert page.tags["script"] == 0


def test_ids_are_unique_and_every_reference_has_one(report):
    page = Page((report / "report.html").read_text())
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.references) <= set(page.ids)


def test_figures_take_the_colours_of_the_page(report):
    for svg in re.findall(r"<svg.*?</svg>", (report / "report.html").read_text(), flags=re.DOTALL):
        assert "var(--ink)" in svg
        assert not re.search("#1f2430|#6b7280|#e5e7eb|#ffffff|<style|<metadata|DejaVu", svg)
        assert "RoPE-Mixed</text>" in svg


def test_page_and_markdown_show_the_same_tables(report):
    comparison = make_comparison()
    shown = " ".join(Page((report / "report.html").read_text()).text.replace("\N{NO-BREAK SPACE}", " ").split())
    markdown = (report / "report.md").read_text().replace("\\", "").replace("**", "")
    for table in (result_table(comparison), seed_table(comparison), *pair_tables(comparison).values()):
        for row in table.texts:
            assert f"| {' | '.join(row)} |" in markdown
            assert all(cell in shown for cell in row)
    assert finding(comparison) in shown
    assert finding(comparison) in markdown
    assert outline(comparison["config"]) in markdown


def test_links_of_the_markdown_lead_somewhere(report):
    targets = re.findall(r"\]\(([^)]+)\)", (report / "report.md").read_text())
    files = {str(path.relative_to(report)) for path in report.rglob("*") if path.is_file()}
    assert files - set(targets) == {"report.html", "report.md"}
    assert all((report / target).exists() for target in targets)


def test_output_is_the_same_every_time(report, tmp_path):
    write_report(make_comparison(), make_pictures(), tmp_path)
    for path in report.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(report)).read_bytes(), path.name


ODD = '<script>alert("1")</script> & $x_{$ |*_'


def test_odd_names_are_shown_as_they_are(tmp_path):
    comparison = make_comparison(["absolute", "liere"])
    text = json.dumps(comparison).replace('"liere"', json.dumps(ODD)).replace("Spatial", "<b>")
    comparison = json.loads(text)
    comparison |= {"command": "liere compare ```", "description": ODD, "pairs_note": ODD}
    page = Page(write_report(comparison, make_pictures([ODD], (108,)), tmp_path).read_text())
    assert page.tags["script"] == 0
    assert page.text.count(ODD) > 10
    markdown = (tmp_path / "report.md").read_text()
    assert "<script" not in markdown.replace("\\<", "")
    assert "````bash\nliere compare ```\n````" in markdown
    for table in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert json.loads((tmp_path / "report.json").read_text()) == comparison


@pytest.mark.parametrize(
    ("names", "seeds", "sizes"),
    [([], 0, []), (["liere"], 1, [108]), (["liere"], 1, [276]), (["liere8", "liere"], 1, [108, 276])],
)
def test_little_data(tmp_path, names, seeds, sizes):
    comparison = make_comparison(names, seeds, sizes) | {"description": "", "config": {}, "paper_note": ""}
    page = Page(write_report(comparison, Pictures(), tmp_path).read_text())
    assert page.tags["svg"] == (2 if names else 0)
    assert page.tags["img"] == 0
    assert (tmp_path / "report" / "overview.png").exists() == bool(names)
    assert "sample-" not in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("missing", ["curves", "evaluations", "last points"])
def test_missing_pieces(tmp_path, missing):
    comparison = make_comparison(["absolute", "liere"])
    for run in comparison["runs"]:
        run["curve"] = run["curve"][:1] if missing == "last points" else []
    if missing == "evaluations":
        comparison["encodings"][0]["evaluations"] = []
        comparison["encodings"][1]["evaluations"].pop(0)
        comparison["pairs"] = []
    page = Page(write_report(comparison, Pictures(), tmp_path).read_text())
    assert page.tags["svg"] == (2 if missing == "last points" else 1)
    assert (tmp_path / "report" / "learning-curves.png").exists() == (missing == "last points")
    assert result_table(comparison).texts[0][1] == ("–" if missing == "evaluations" else "45.3 (43.1-47.5)")


def test_unknown_format(tmp_path):
    with pytest.raises(ValueError, match=r"format 'liere-comparison-9', and only 'liere-comparison-1'"):
        write_report(make_comparison() | {"format": "liere-comparison-9"}, Pictures(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "report" / "overview.png").mkdir(parents=True)
    with pytest.raises(OSError, match=r"overview\.png"):
        write_report(make_comparison(["liere"]), Pictures(), tmp_path)
    assert not list(tmp_path.rglob(".*"))
