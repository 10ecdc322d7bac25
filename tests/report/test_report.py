from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")

from scipy import stats

from liere.report.comparison_setup import comparison_setup, machine_and_versions
from liere.report.encoding_style import colors_of
from liere.report.headline import headline
from liere.report.pair_tables import bold_note, pair_tables
from liere.report.picture_data import Pictures
from liere.report.report_files import write_report
from liere.report.result_table import result_table
from liere.report.seed_tables import run_table, seed_table
from liere.report.yaml_text import yaml_text
from tests.report.report_data import make_comparison, make_pictures

pytest.importorskip("matplotlib")

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """An HTML parser that checks nesting and collects ids, addresses and text."""

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
            seeds = [100 * value for value in found["by_seed"]]
            assert cell == f"{100 * found['accuracy']['value']:.1f} ({min(seeds):.1f}-{max(seeds):.1f})"
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
    assert "Paper: ViT-B, 800,000 examples; LieRE_64 is shown next to LieRE (dense)." in table.notes
    second["paper"] = None
    assert not any(
        "paper" in text.lower() for text in [*result_table(comparison).header, *result_table(comparison).notes]
    )


def test_with_one_seed_intervals_are_over_examples_and_the_table_says_so():
    comparison = make_comparison(["absolute", "liere"], seeds=1)
    table = result_table(comparison)
    value, low, high = (
        100 * comparison["encodings"][0]["evaluations"][0]["accuracy"][k] for k in ("value", "low", "high")
    )
    assert table.texts[0][1] == f"{value:.1f} ({low:.1f}-{high:.1f})"
    assert "one seed per encoding" in table.notes[0]
    assert "The variation between seeds is unknown" in table.notes[0]
    assert "mean over seeds, followed by the worst and the best seed." in result_table(make_comparison()).notes[0]


PAIR = {"size": 276, "first": "liere", "second": "absolute", "difference": 0.35, "low": 0.33, "high": 0.37, "p": 1e-4}


def pair_of_seeds(first: list[float], second: list[float], **fields) -> dict:
    """Return a comparison of LieRE and absolute positions at 276 px with the given accuracy per seed."""
    comparison = make_comparison(["absolute", "liere"], sizes=[276])
    for row, values in zip(comparison["encodings"], (second, first), strict=True):
        row["seeds"] = list(range(len(values)))
        found = row["evaluations"][0]
        found["by_seed"], found["accuracy"]["value"] = values, sum(values) / len(values)
    return comparison | {"pairs": [PAIR | fields]}


def test_pairs_of_one_seed_are_about_examples_and_nothing_is_bold():
    comparison = pair_of_seeds([0.85], [0.5])
    comparison["pairs"].append(PAIR | {"second": "<b>", "difference": -0.01, "low": -0.03, "high": -1e-4, "p": 0.0512})
    table = pair_tables(comparison)[276]
    assert table.header == ["first", "second", "first minus second, points", "p, test examples"]
    assert table.texts == [
        ["LieRE (dense)", "absolute", "+35.0 (+33.0 to +37.0)", "< 0.001"],
        ["LieRE (dense)", "<b>", "-1.0 (-3.0 to +0.0)", "0.051"],
    ]
    assert not any(cell.strong for row in table.rows for cell in row)
    assert bold_note(comparison) == ""
    assert list(pair_tables(make_comparison())) == [276, 168, 108]


def test_pairs_of_several_seeds_are_about_seeds_first():
    first, second = [0.86, 0.84, 0.85], [0.5, 0.51, 0.46]
    table = pair_tables(pair_of_seeds(first, second))[276]
    expected = stats.ttest_rel(first, second)
    low, high = (f"{100 * end:+.1f}" for end in expected.confidence_interval(0.95))
    assert table.texts == [
        ["LieRE (dense)", "absolute", f"+36.0 ({low} to {high})", "3 of 3", f"{expected.pvalue:.3f}", "< 0.001"]
    ]
    assert table.rows[0][4].strong


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([0.97, 0.63, 0.69], [0.29, 0.84, 0.60], 1e-4),  # seeds disagree, although examples are significant
        ([0.9, 0.6, 0.61], [0.5, 0.59, 0.6], 1e-4),  # seeds agree, but not significantly
        ([0.86, 0.84, 0.85], [0.5, 0.51, 0.46], 0.2),  # not significant over examples
    ],
)
def test_pairs_are_bold_only_where_seeds_and_examples_agree(first, second, p):
    comparison = pair_of_seeds(first, second, p=p)
    assert not any(cell.strong for cell in pair_tables(comparison)[276].rows[0])
    assert "the order of the top two is undecided" in headline(comparison)


def test_a_pair_with_too_few_seeds_is_not_tested_over_them():
    comparison = pair_of_seeds([0.86, 0.84], [0.5])
    assert pair_tables(comparison)[276].texts[0][2:] == ["+35.0", "–", "too few seeds", "< 0.001"]
    assert headline(comparison) == (
        "With 1 to 2 seeds per encoding: at 276 px, after training at 108 px, the order of the top two is "
        "undecided: LieRE (dense), 85.0 % on average (84.0 to 86.0), and absolute, 50.0 % on average (50.0 to 50.0), "
        "have too few seeds for a test."
    )


def test_seeds_that_an_encoding_lacks_are_left_open():
    comparison = make_comparison(["absolute", "liere"], sizes=[108])
    comparison["encodings"][0] |= {"seeds": [0, 7]}
    comparison["encodings"][0]["evaluations"][0]["by_seed"] = [0.5, 0.25]
    table = seed_table(comparison)
    assert table.header[2:6] == ["accuracy, seed 0", "accuracy, seed 1", "accuracy, seed 2", "accuracy, seed 7"]
    assert table.texts[0][2:6] == ["50.0", "–", "–", "25.0"]
    assert table.texts[1][5] == "–"


def test_every_seed_is_shown_with_their_mean_and_both_intervals():
    comparison = pair_of_seeds([0.6, 0.7, 0.8], [0.5])
    table = seed_table(comparison)
    assert table.header[5:8] == ["accuracy, mean", "95 % interval, over seeds", "95 % interval, over test examples"]
    assert table.texts[1][2:7] == ["60.0", "70.0", "80.0", "70.0", "45.2-94.8"]
    assert table.texts[0][2:7] == ["50.0", "–", "–", "50.0", "–"]
    assert "mean" not in " ".join(seed_table(make_comparison(seeds=1)).header)


def test_runs_say_how_they_ended():
    comparison = make_comparison(["liere"], seeds=2)
    comparison["runs"][1]["curve"] = []
    last = comparison["runs"][0]["curve"][-1]
    ends = [row[3:] for row in run_table(comparison).texts]
    assert ends == [["131", f"{last['examples']:,}", f"{100 * last['accuracy']:.1f}"], ["132", "–", "–"]]


def test_finding_says_who_learned_the_task_who_keeps_it_and_who_is_ahead_over_seeds():
    assert headline(make_comparison()) == (
        "With 3 seeds per encoding: at 108 px (the training size), RoPE-Mixed, LieRE₈ and LieRE (dense) reach 95 % "
        "accuracy in every seed, absolute and VisionLLaMA in none. At 276 px, no seed does. There, LieRE (dense), "
        "91.6 % on average (90.1 to 93.7), is ahead of LieRE₈, 65.1 % on average (62.2 to 70.5), in every seed "
        "(p = 0.004, paired t test over seeds). LieRE (dense) is ahead of VisionLLaMA, absolute and RoPE-Mixed in "
        "every seed, with p < 0.05 over seeds."
    )


SEEDS = {  # accuracy of three seeds at 108 px and at 372 px
    "absolute": ([0.42, 0.43, 0.44], [0.44, 0.44, 0.43]),
    "rope_mixed": ([1.0, 1.0, 1.0], [0.6, 0.29, 0.84]),
    "liere8": ([0.99, 1.0, 1.0], [0.97, 0.98, 0.99]),
    "liere": ([1.0, 0.88, 1.0], [0.97, 0.62, 0.96]),
}


def comparison_of_seeds(seeds: dict[str, tuple[list[float], list[float]]]) -> dict:
    comparison = make_comparison(list(seeds), sizes=[108, 276])
    text = json.dumps(comparison).replace("276", "372")
    comparison = json.loads(text)
    for row in comparison["encodings"]:
        for found, values in zip(row["evaluations"], seeds[row["encoding"]], strict=True):
            found["by_seed"], found["accuracy"]["value"] = values, sum(values) / len(values)
    return comparison


def test_finding_counts_seeds_where_they_differ():
    text = headline(comparison_of_seeds(SEEDS))
    assert text.startswith(
        "With 3 seeds per encoding: at 108 px (the training size), RoPE-Mixed and LieRE₈ reach 95 % accuracy in every "
        "seed, LieRE (dense) in 2 of 3, absolute in none. At 372 px, LieRE₈ still does in every seed, LieRE (dense) in "
        "2 of 3, RoPE-Mixed in none. There, the order of the top two is undecided: LieRE₈,"
    )
    assert text.endswith("LieRE₈ is ahead of absolute in every seed, with p < 0.05 over seeds.")


def test_finding_does_not_depend_on_the_order_of_seeds():
    orders = ((0, 1, 2), (2, 1, 0), (1, 0, 2))
    turned = [
        {name: tuple([one[i] for i in order] for one in both) for name, both in SEEDS.items()} for order in orders
    ]
    assert len({headline(comparison_of_seeds(seeds)) for seeds in turned}) == 1


def test_finding_of_two_that_both_keep_the_task_names_no_winner():
    both = dict.fromkeys(("liere8", "liere"), SEEDS["liere8"])
    assert headline(comparison_of_seeds(both)) == (
        "With 3 seeds per encoding: at 108 px (the training size), LieRE₈ and LieRE (dense) reach 95 % accuracy in "
        "every seed. At 372 px, LieRE₈ and LieRE (dense) still do in every seed."
    )


def test_finding_of_one_seed_compares_models_not_encodings():
    for names in (None, ["absolute", "visionllama"], ["liere8", "liere"]):
        text = headline(make_comparison(names, seeds=1))
        assert text.startswith("With one seed per encoding, this compares trained models, not encodings: at ")
        assert text.endswith("other seeds may differ.")
    assert headline(make_comparison(seeds=1)).endswith(
        "At 276 px, no model does. There, LieRE (dense) is the most accurate with 91.6 %, ahead of LieRE₈ with 65.1 %: "
        "significant on these test examples (p < 0.001); other seeds may differ."
    )


def test_finding_claims_no_more_than_the_test():
    comparison = make_comparison(["absolute", "visionllama"], seeds=1)
    assert headline(comparison).endswith(
        "absolute with 38.1 %: not significant on these test examples (p = 0.340); other seeds may differ."
    )
    comparison["pairs"] = []
    assert headline(comparison).endswith("absolute with 38.1 %: not tested; other seeds may differ.")
    assert "is undecided: VisionLLaMA, 38.8 % on average" in headline(make_comparison(["absolute", "visionllama"]))


def test_finding_of_ties():
    comparison = make_comparison(sizes=[108], seeds=1)
    assert headline(comparison).endswith(
        "There, LieRE₈, LieRE (dense) and RoPE-Mixed are tied at 100.0 %, followed by absolute with 45.3 %."
    )
    assert headline(make_comparison(sizes=[108])) == (
        "With 3 seeds per encoding: at 108 px (the training size), RoPE-Mixed, LieRE₈ and LieRE (dense) reach 95 % "
        "accuracy in every seed, absolute and VisionLLaMA in none."
    )


def test_finding_of_little():
    assert headline(make_comparison(["liere"], seeds=1, sizes=[108])) == (
        "With a single seed, this describes one trained model, not its encoding: at 108 px (the training size), "
        "LieRE (dense) reaches 95 % accuracy. There, LieRE (dense) scores 100.0 %."
    )
    assert headline(make_comparison([])) == "Nothing has been evaluated yet."


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_report_makes_no_claim_about_other_test_examples(tmp_path, seeds):
    write_report(make_comparison(seeds=seeds), Pictures(), tmp_path)
    assert not any("say the same" in (tmp_path / f"report.{kind}").read_text() for kind in ("md", "html", "json"))


def test_facts():
    comparison = make_comparison(["absolute", "liere"])
    comparison["encodings"][0]["seeds"] = [0]
    assert comparison_setup(comparison)["seeds per encoding"] == "1 to 3"
    assert comparison_setup(comparison)["test examples"] == "2,000"
    comparison["versions"]["timm"] = None
    assert machine_and_versions(comparison)["memory, GB"] == "24.0"
    assert "timm" not in machine_and_versions(comparison)


def test_outline_is_yaml():
    yaml = pytest.importorskip("yaml")
    config = {"a": {"b": {"c": 1}, "path": "runs/one", "sizes": [1, 2]}, "none": None, "odd": "a: b # c", "empty": {}}
    assert yaml.safe_load(yaml_text(config)) == config


def test_encodings_of_one_report_have_different_colors():
    comparison = make_comparison()
    comparison["encodings"] += [{"encoding": name} for name in ("sincos", "none", "liere32")]
    colors = colors_of(comparison)
    assert len(set(colors.values())) == len(colors) == 8


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
    assert headline(comparison) in shown
    assert headline(comparison) in markdown
    assert yaml_text(comparison["config"]) in markdown


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


def test_codes_for_terminals_are_written_out(tmp_path):
    odd = "red \x1b[31m, \x9b2J and \u202ebackwards"
    comparison = make_comparison(["liere"]) | {"title": odd, "machine": {odd: odd}}
    write_report(comparison, Pictures(), tmp_path)
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text()
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
        assert r"\u202ebackwards" in text


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
    assert result_table(comparison).texts[0][1] == ("–" if missing == "evaluations" else "45.3 (40.8-51.2)")


def test_unknown_format(tmp_path):
    with pytest.raises(ValueError, match=r"format 'liere-comparison-9', but only 'liere-comparison-1' is supported"):
        write_report(make_comparison() | {"format": "liere-comparison-9"}, Pictures(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_replaced_leaves_nothing_behind(tmp_path):
    (tmp_path / "report" / "overview.png").mkdir(parents=True)
    with pytest.raises(OSError, match=r"overview\.png"):
        write_report(make_comparison(["liere"]), Pictures(), tmp_path)
    assert not list(tmp_path.rglob(".*"))
