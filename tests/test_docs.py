"""What README and docs say is run: Python as it stands, commands up to their arguments, results against the code."""

from __future__ import annotations

import json
import re
import shlex
import statistics
from pathlib import Path

import pytest

import liere
from liere.bench.tables import make_tables, with_quartiles
from liere.cli import main, make_parser
from liere.terminal.text_table import text_table

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    if path.exists()
]
OTHERS = [
    path for path in [ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *(ROOT / "results").rglob("*.md")] if path.exists()
]

EXAMPLE = "tests/encodings/test_ramp.py"  # of an encoding that a page shows how to add

pytestmark = pytest.mark.skipif(not PAGES, reason="the pages are not beside the tests")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs_as_it_stands(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    for line in capsys.readouterr().out.splitlines():
        shown = line.split()[-1]  # what a block prints, the page tells
        assert (f"{int(shown):,}" if shown.isdigit() else shown) in page.read_text(), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in "\n".join(blocks(page, "bash")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["liere"]:
            make_parser().parse_args(words[1:])
        elif words:
            assert words[0] == "make"
            assert words[1] in targets


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_modules_and_files_that_are_named_exist(page):
    text = page.read_text()
    for path in set(re.findall(r"`((?:src|tests|tools|docs|experiments|results)/[\w./-]*\w)`", text)) - {EXAMPLE}:
        assert (ROOT / path).exists(), path
    for name in set(re.findall(r"\bliere(?:\.[a-z_0-9]+)+\b", text)):
        parts = name.split(".")
        place = ROOT / "src" / Path(*parts[:2])
        if place.is_dir() and len(parts) > 2:  # a module of a package, or a function of the package itself
            module = place / f"{parts[2]}.py"
            exported = re.search(rf'"{parts[2]}"', (place / "__init__.py").read_text())
            assert module.exists() or (place / parts[2]).is_dir() or exported, name
        else:
            assert place.is_dir() or place.with_suffix(".py").exists() or parts[1] in liere.__all__, name


def test_the_api_page_names_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in liere.__all__ if f"`{name}" not in page] == []


def test_results_of_inspect_are_those_of_the_code(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    results = ROOT / "results"
    assert main(["inspect", "vit_small", "--encoding", "liere8", "--out", str(tmp_path)]) == 0
    new, old = (json.loads((folder / "inspect.json").read_text()) for folder in (tmp_path, results))
    assert _leaves(new) == pytest.approx(_leaves(old), rel=1e-2, abs=1e-3)


def _leaves(value) -> list[float]:
    """All numbers of nested data, in order."""
    if isinstance(value, dict | list):
        return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in _leaves(part)]
    return [value] if isinstance(value, int | float) else []


def test_flops_tables_are_what_the_command_prints(capsys):
    page = (ROOT / "docs" / "flops.md").read_text()
    assert main(["flops"]) == 0
    assert capsys.readouterr().out.strip() in page
    assert main(["flops", "--size", "vit_base", "--batch-size", "512"]) == 0
    assert capsys.readouterr().out.split("\n\n")[0] in page
    assert main(["flops", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((ROOT / "results" / "flops.json").read_text())


@pytest.mark.parametrize("question", ["rotations", "step", "memory", "scaling", "loading"])
def test_bench_tables_are_those_of_the_committed_results(question):
    record = json.loads((ROOT / "results" / f"bench_{question}.json").read_text())
    page = (ROOT / "docs" / "performance.md").read_text()
    assert not record["quick"]
    for content in make_tables(record):
        assert "\n".join([content.title, *text_table(content.header, content.rows), *content.legend]) in page


def test_the_costs_in_the_readme_are_those_of_the_committed_results():
    record = json.loads((ROOT / "results" / "bench_step.json").read_text())
    names = {
        "none": "no positions",
        "rope_mixed": "RoPE-Mixed",
        "liere8": "LieRE_8",
        "liere64": "LieRE_64 (dense)",
        "timm absolute": "timm's ViT, absolute",
        "timm rope_mixed": "timm's ViT, RoPE-Mixed",
    }
    for model, name in names.items():
        rows = [row for row in record["rows"] if row["model"] == model]
        assert [row["image_size"] for row in rows] == [32, 224]
        ratios = [with_quartiles(row[part]["ratio"]) for row in rows for part in ("train", "inference")]
        assert f"| {name} | {' | '.join(ratios)} |" in (ROOT / "README.md").read_text()


def test_the_spatial_results_in_readme_and_docs_are_the_committed_ones():
    pytest.importorskip("matplotlib")
    from liere.report.result_table import result_table

    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/spatial.md"))
    for name in ("spatial", "placement"):  # as in the paper, and with random placement
        comparison = json.loads((ROOT / "results" / f"{name}.json").read_text())
        content = result_table(comparison)
        assert "\n".join(text_table(content.header, content.texts)) in page
    for row in comparison["encodings"]:
        seeds = [[100 * value for value in found["by_seed"]] for found in row["evaluations"]]
        ours = [
            f"{statistics.fmean(values):.1f}" + (f" ({min(values):.1f}-{max(values):.1f})" if len(values) > 1 else "")
            for values in seeds
        ]
        paper = " / ".join(f"{value:.1f}" for value in row["paper"].values())
        assert f" | {' | '.join(ours)} | {paper} |\n" in readme
        for value in row["options"].values():  # what the recipe does not say stands in the command below the table
            assert f"{row['encoding'].split(':')[0]}:init_scale={value}" in readme


def test_the_counts_of_the_campaign_are_the_committed_ones():
    found = json.loads((ROOT / "results" / "campaign.json").read_text())
    page = " ".join((ROOT / "docs" / "training.md").read_text().split())
    peak = max(attack["peak_memory_mb"] for attack in found["attacks"].values())
    assert found["lost"] == sum(attack["lost"] for attack in found["attacks"].values()) == 0
    assert f"{found['cases']:,} cases, among them {found['attacks']['damages']['cases']:,} damaged checkpoints" in page
    assert f"no process took more than {peak} MB" in page


def test_the_tables_of_studies_are_the_committed_ones():
    pytest.importorskip("pydantic")
    from liere.reproduce.row_labels import label

    page = (ROOT / "docs" / "placement.md").read_text()
    columns = {
        "start": [(108, ""), (168, ""), (276, ""), (372, "")],
        "cifar10": [(32, ""), (48, "extend"), (64, "extend"), (48, "rescale"), (64, "rescale")],
        "larger": [(276, ""), (372, ""), (540, "")],
    }
    for name, tests in columns.items():
        study = json.loads((ROOT / "results" / "studies" / f"{name}.json").read_text())
        rows: dict[tuple[str, str], dict[tuple[int, str], str]] = {}
        for row in study["rows"]:
            seeds = ", ".join(f"{100 * value:.1f}" for value in row["by_seed"])
            cells = rows.setdefault((row["variant"], label(row["encoding"])), {})
            cells[row["size"], row.get("policy", "")] = f"{100 * statistics.fmean(row['by_seed']):.1f} ({seeds})"
        for (variant, encoding), cells in rows.items():
            first = f"| {variant} | {encoding} |" if len(rows) > 6 else f"| {encoding} |"
            assert f"{first} {' | '.join(cells[test] for test in tests)} |" in page


def test_what_came_out_is_what_the_committed_results_say():
    pytest.importorskip("pydantic")
    from liere.reproduce.row_labels import label

    folder = ROOT / "results" / "reproduce" / "small"
    page, positions = ((ROOT / "docs" / name).read_text() for name in ("reproduce.md", "how-to/other-resolutions.md"))
    resolution, compute, shuffling = (
        json.loads((folder / f"{name}.json").read_text())["numbers"] for name in ("resolution", "compute", "shuffling")
    )

    def scan(recipe: str, policy: str, encoding: str) -> str:
        cells = resolution[f"{recipe}, {policy}"][encoding]
        return " / ".join(f"{100 * cells[size]['value']:.1f}" for size in ("32 px", "48 px", "64 px"))

    recipes = [(recipe, policy) for recipe in ("as trained", "fine-tuned") for policy in ("extend", "rescale")]
    for encoding in ("rope_mixed", "liere"):
        assert f"| {label(encoding)} | {' | '.join(scan(*recipe, encoding) for recipe in recipes)} |" in page
        for recipe in recipes:
            assert f"{scan(*recipe, encoding).split(' / ')[2]}" in positions
    own = [scan(*recipe, "absolute") for recipe in recipes]
    assert own[0] == own[1]
    assert own[2] == own[3]
    assert f"| absolute, init 0.02 (interpolated) | {own[0]} | the same | {own[2]} | the same |" in page

    for encoding in compute["absolute"]:
        saved = [compute[name][encoding]["fewer_than_whole_training"] for name in ("absolute:init_std=1", "absolute")]
        cells = [f"{ratio:.2f}" if ratio else "not reached" for ratio in saved]
        assert f"| {label(encoding)} | {' | '.join(cells)} |" in page

    for column, names in {
        "CIFAR-10, patches": ("liere8", "rope_mixed", "absolute:init_std=1"),
        "Atari clips, patches": ("liere8", "rope_mixed", "liere"),
        "Atari clips, frames": ("liere8", "rope_mixed"),
    }.items():
        for name in names:
            assert f"{100 * shuffling['drop'][column][name]['value']:.1f}" in page


def test_the_measured_tables_are_those_of_the_committed_results():
    pytest.importorskip("pydantic")
    from liere.reproduce.row_labels import label

    folder = ROOT / "results" / "reproduce" / "small"
    main_numbers = json.loads((folder / "main.json").read_text())["numbers"]["accuracy"]
    drops = json.loads((folder / "shuffling.json").read_text())["numbers"]["drop"]
    page = (ROOT / "docs" / "reproduce.md").read_text()
    for encoding, row in main_numbers.items():
        cell = row["CIFAR-10"]
        accuracy = f"{100 * cell['value']:.1f}"
        seeds = ", ".join(f"{100 * value:.1f}" for value in cell["by_seed"])
        lost = f"{100 * drops['CIFAR-10, patches'][encoding]['value']:.0f} %"
        start = f"| {label(encoding)} | {accuracy} | {seeds} | {lost} |"
        assert start in page
        if "Atari clips" in row:
            clips = row["Atari clips"]
            found = f"{100 * clips['value']:.1f} ({100 * clips['low']:.1f}-{100 * clips['high']:.1f})"
            frames = f"{100 * drops['Atari clips, frames'][encoding]['value']:.0f} %"
            assert f"{start} {found} | {frames} |" in page
