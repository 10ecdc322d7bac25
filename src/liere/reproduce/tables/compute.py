"""Training compute needed to reach the final accuracy of absolute positions."""

from __future__ import annotations

from collections.abc import Mapping

from liere.errors import InputError
from liere.evaluation.compute_saving import ComputeSaving, Curve, compute_savings, mean_curve
from liere.evaluation.seeds import compare_seeds
from liere.report.table_cells import NOTHING, Cell, Column, Table
from liere.reproduce.claims import judge
from liere.reproduce.outcome import Claim, Outcome
from liere.reproduce.outcome_charts import draw_curves
from liere.reproduce.paper_numbers import COMPUTE_RATIO
from liere.reproduce.results import Results
from liere.reproduce.row_labels import label, paper_row
from liere.reproduce.wanted_runs import Key
from liere.runs.cost import forward_operations, scaled
from liere.runs.encoding_text import parse_encoding

__all__ = ["build_compute"]


def build_compute(results: Results) -> Outcome:
    """Return the learning curves on the first data set, and one table per initialization of absolute positions.

    Raises:
        ValueError: If there is no finished run of absolute positions.
    """
    data = results.data[0]
    encodings = [name for name in results.experiment.encodings if Key(data, "", name) in results.runs]
    keys = {name: Key(data, "", name) for name in encodings}
    baselines = [name for name in encodings if parse_encoding(name)[0] == "absolute"]
    if not baselines:
        raise InputError("there is no finished run of absolute positions, which is the baseline: add absolute")
    by_seed = {name: {run.config.training.seed: run.curve() for run in results.runs[key]} for name, key in keys.items()}
    curves = {name: list(found.values()) for name, found in by_seed.items()}
    cost = {name: forward_operations(results.runs[key][0].config) for name, key in keys.items()}
    tables, claims, numbers = [], [], {}
    for baseline in baselines:
        savings = compute_savings(curves, cost, baseline)
        budget = max(point["examples"] for point in mean_curve(curves[baseline])) * cost[baseline]
        whole = {name: budget / one.operations if one.operations else None for name, one in savings.items()}
        tables.append(_table(data, baseline, savings, whole, with_paper=paper_row(baseline, encodings) is not None))
        numbers[baseline] = {
            name: vars(saving) | {"fewer_than_whole_training": whole[name]} for name, saving in savings.items()
        }
        claims.append(_claim(baseline, whole, _shares(by_seed, cost, baseline)))
    figure = {
        "Learning curves": draw_curves(
            f"Validation accuracy ({data}), %",
            "training examples seen",
            {
                name: [(point["examples"], 100 * point["accuracy"]) for point in mean_curve(curves[name])]
                for name in encodings
            },
        )
    }
    notes = [
        f"Compute: multiply-adds per forward pass ({scaled(cost[encodings[0]])} for {label(encodings[0])}) x examples.",
        "The first two factors are relative to the point where the baseline itself first reached that accuracy; the "
        "third and the paper's are relative to the baseline's whole training.",
        "Schedules cover the whole run: a run meant to end earlier would decay its learning rate earlier.",
    ]
    return Outcome(tables, claims, figure, numbers, notes)


def _table(
    data: str,
    baseline: str,
    savings: Mapping[str, ComputeSaving],
    whole: Mapping[str, float | None],
    *,
    with_paper: bool,
) -> Table:
    """Return one row per encoding: the compute it needs to reach the baseline's final accuracy."""
    rows = []
    for name, saving in savings.items():
        reached = saving.examples is not None
        rows.append(
            [
                Cell(label(name)),
                Cell(f"{saving.examples:,.0f}") if reached else Cell("not reached"),
                Cell(f"{saving.fewer_examples:.2f}") if reached else NOTHING,
                Cell(f"{saving.fewer_operations:.2f}") if reached else NOTHING,
                Cell(f"{whole[name]:.2f}") if reached else NOTHING,
                Cell(f"{COMPUTE_RATIO}") if name == "liere8" and with_paper else NOTHING,
            ]
        )
    columns = [
        Column("encoding", numeric=False),
        Column("examples to reach it"),
        Column("times fewer examples"),
        Column("times less compute"),
        Column("times less than whole training"),
        Column("paper"),
    ]
    target = next(iter(savings.values())).target
    return Table(f"{data}: to reach {100 * target:.1f} %, the final accuracy of {label(baseline)}", columns, rows)


def _shares(by_seed: Mapping[str, Mapping[int, Curve]], cost: Mapping[str, float], baseline: str) -> dict[int, float]:
    """Return the fraction of the baseline's training compute that LieRE_8 needs in each seed; 1 if never reached."""
    name, shares = "liere8", {}
    for seed in sorted(by_seed[baseline].keys() & by_seed.get(name, {}).keys()):
        curves = {one: [by_seed[one][seed]] for one in (baseline, name)}
        saving = compute_savings(curves, {one: cost[one] for one in curves}, baseline)[name]
        budget = max(point["examples"] for point in by_seed[baseline][seed]) * cost[baseline]
        shares[seed] = saving.operations / budget if saving.operations else 1.0
    return shares


def _claim(baseline: str, ratios: dict[str, float | None], shares: dict[int, float]) -> Claim:
    """Return a verdict on the claim, from the fraction of the training compute that each seed needs."""
    text = f"LieRE₈ reaches the final accuracy of {label(baseline)} with {COMPUTE_RATIO} times less compute"
    if "liere8" not in ratios:
        return Claim(text, "is not decided", "not run")
    ratio = ratios["liere8"]
    evidence = "not reached" if ratio is None else f"{ratio:.2f} times less than the baseline's whole training"
    over_seeds = compare_seeds(dict.fromkeys(shares, 1 / COMPUTE_RATIO), shares)
    mean = -1 if ratio is None or ratio < COMPUTE_RATIO else 1
    each = ", ".join(f"{1 / share:.2f}" for share in shares.values())
    if len(shares) > 1:
        evidence += f" with curves averaged over seeds (by seed: {each})"
    return judge(text, over_seeds, mean, f"{evidence}; not tested over examples")
