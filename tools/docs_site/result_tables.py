"""The tables of the results pages by name, all of them made of the committed numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tools.demo_robustness import as_table
from tools.docs_site.committed import RESULTS, numbers_of
from tools.docs_site.plain_tables import bench_table, markdown_tables, plain_table
from tools.docs_site.study_tables import attention_scale, sensitivity, study_table

from liere.bench.tables import make_tables
from liere.report.encoding_style import plain_label
from liere.report.result_table import result_table
from liere.report.table_cells import Table
from liere.reproduce.catalog import CATALOGUE

__all__ = ["TABLES"]

SMALL = RESULTS / "reproduce" / "small"


def comparison(name: str) -> list[Table]:
    """Return the table of a comparison: accuracy at every size beside the paper's."""
    return [result_table(numbers_of(f"{name}.json"))]


def robustness() -> list[Table]:
    """Return what each seed of the demo has to reach, and how many do."""
    header, rows = as_table(numbers_of("demo_robustness.json")["rows"])
    named = [[plain_label(name), *rest] for name, *rest in rows]
    title = "Accuracy in percent over seeds, and what each seed has to reach"
    return [plain_table(title, header, named, heads=2)]


def bench(question: str) -> list[Table]:
    """Return the tables of a benchmark."""
    return [
        bench_table(table, heads=2 if table.header[0] in ("situation", "varied", "encoding") else 1)
        for table in make_tables(numbers_of(f"bench_{question}.json"))
    ]


def bench_of_placement(question: str) -> list[Table]:
    """Return the one table of a benchmark that is about random placement."""
    return [table for table in bench(question) if "placement" in table.title]


def bench_without_placement(question: str) -> list[Table]:
    """Return the other tables."""
    return [table for table in bench(question) if "placement" not in table.title]


def of_the_paper(name: str) -> list[Table]:
    """Return the tables of a reproduction at small scale."""
    return markdown_tables((SMALL / f"{name}.md").read_text())


def flops() -> list[Table]:
    """Return multiply-adds at batch 1: what the paper prints, what its formula gives, and the true count."""

    def giga(value: float, increase: float | None, digits: int) -> str:
        return f"{value:.3f}" + ("" if increase is None else f" (+{increase:.{digits}f} %)")

    rows = []
    for row in numbers_of("flops.json")["rows"]:
        printed = row["printed"]
        text = giga(printed["giga"], printed["increase_percent"], 3)
        rows.append(
            [
                row["size"],
                plain_label(row["encoding"]),
                f"{text}*" if printed["slip"] else text,
                giga(row["paper"] / 1e9, row["paper_increase_percent"], 3),
                giga(row["true"] / 1e9, row["true_increase_percent"], 1),
            ]
        )
    header = ["model", "encoding", "printed in the paper", "as the paper counts", "true, batch 1"]
    notes = [
        "In units of 1e9 multiply-adds of a forward pass, per image; in parentheses, how much more than absolute "
        "positions. As the paper counts: without the matrix exponential. True: with it, computed once per batch.",
        "* An error in the paper: its own formula gives the number to the right.",
    ]
    return [plain_table("Multiply-adds of a forward pass, CIFAR-100 input", header, rows, heads=2, notes=notes)]


def campaign() -> list[Table]:
    """Return the attacks on runs and files, with their counts."""
    found = numbers_of("campaign.json")
    rows = [
        [name, attack["about"], f"{attack['cases']:,}", str(attack["lost"]), str(attack["peak_memory_mb"])]
        for name, attack in found["attacks"].items()
    ]
    rows.append(["all", "", f"{found['cases']:,}", str(found["lost"]), str(found["peak_memory_mb"])])
    header = ["attack", "what happens, and what must follow", "cases", "lost", "peak memory, MB"]
    return [plain_table("Attacks on runs and data files", header, rows, heads=2)]


TABLES: dict[str, Callable[[], list[Table]]] = {
    **{name: partial(comparison, name) for name in ("spatial", "placement", "placement_adam", "demo")},
    "robustness": robustness,
    "attention_scale": attention_scale,
    "sensitivity": sensitivity,
    **{f"studies/{name}": partial(study_table, name) for name in ("larger", "cifar10", "start")},
    **{
        f"bench/{name}": partial(bench, name)
        for name in ("rotations", "memory", "scaling", "loading", "points", "timm", "timm_dinov3", "training", "gpu")
    },
    "bench/step": partial(bench_without_placement, "step"),
    "bench/placement": partial(bench_of_placement, "step"),
    "bench/placement_second": partial(bench_of_placement, "step_second"),
    **{f"paper/{name}": partial(of_the_paper, name) for name in CATALOGUE if (SMALL / f"{name}.md").exists()},
    "flops": flops,
    "campaign": campaign,
}
"""What `{result-table} NAME` shows."""
