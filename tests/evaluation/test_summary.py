from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

pytest.importorskip("tests.training.requirements")

from scipy import stats

from liere.evaluation.intervals import accuracy_interval
from liere.evaluation.predictions import Predictions
from liere.evaluation.seeds import seed_spread
from liere.evaluation.summary import examples_to_target, summarize
from liere.report.headline import headline
from liere.report.result_table import result_table
from liere.runs.config_file import parse_config
from tests.training.tiny import make_run

EXAMPLES = 200


def pretend(folder, encoding: str, seed: int, accuracy: float, *, curve=(), sizes=(36, 48), **fields):
    """Create a run with results as if it had been trained and evaluated."""
    run = make_run(folder, model__encoding=encoding, training__seed=seed, **fields)
    result = {"seconds": 10.0 + seed, "parameters": 1_000, "encoding_parameters": 10, "examples": 72, "step": 9}
    result |= {"machine": {"cpu": "one", "cores": 2}, "versions": {"torch": "2.13.0"}, "best": None}
    result |= {"fingerprint": run.config.fingerprint, "date": "2026-01-01T00:00:00+00:00"}
    run.result_file.write_text(json.dumps(result))
    lines = ["step,examples,seconds,learning_rate,train_loss,val_loss,val_accuracy"]
    lines += [f"{i},{8 * i},0.1,,,0.5,{value}" for i, value in enumerate(curve, start=1)]
    run.metrics.write_text("\n".join(lines) + "\n")
    records, dice = [], random.Random(f"{encoding} {seed}")
    for size in sizes:
        right = [dice.random() < accuracy for _ in range(EXAMPLES)]
        predictions = Predictions(list(range(EXAMPLES)), [1] * EXAMPLES, [int(r) for r in right], [0.5] * EXAMPLES)
        predictions.write(run.folder / "predictions" / f"test-{size}.csv")
        records.append(
            {"size": size, "weights": "final", "examples": EXAMPLES, "predictions": f"predictions/test-{size}.csv"}
            | {"accuracy": {"value": sum(right) / EXAMPLES}}
        )
    run.evaluation_file.write_text(json.dumps(records))
    return run


@pytest.fixture
def runs(tmp_path):
    return [
        pretend(tmp_path / "runs" / f"{encoding}-seed{seed}", encoding, seed, accuracy, curve=curve)
        for encoding, accuracy, curve in [("absolute", 0.4, [0.3, 0.4]), ("liere8", 0.9, [0.5, 0.96, 0.9])]
        for seed in (0, 1, 2)
    ]


def correct(run, size: int) -> list[float]:
    return Predictions.read(run.folder / "predictions" / f"test-{size}.csv").correct.tolist()


def test_an_encoding_is_the_mean_of_its_seeds_example_by_example(runs, tmp_path):
    found = summarize(runs, command="liere report", root=tmp_path)
    assert found["sizes"] == [36, 48]
    assert [row["encoding"] for row in found["encodings"]] == ["absolute", "liere8"]
    for row, group in zip(found["encodings"], (runs[:3], runs[3:]), strict=True):
        assert row["seeds"] == [0, 1, 2]
        for evaluation in row["evaluations"]:
            by_seed = [correct(run, evaluation["size"]) for run in group]
            shares = [sum(column) / 3 for column in zip(*by_seed, strict=True)]
            assert evaluation["by_seed"] == pytest.approx([sum(answers) / EXAMPLES for answers in by_seed])
            assert evaluation["accuracy"]["value"] == pytest.approx(sum(shares) / EXAMPLES)
            assert evaluation["over_seeds"] == seed_spread(evaluation["by_seed"]).as_dict()
            assert evaluation["accuracy"] == pytest.approx(accuracy_interval(shares).as_dict())
        assert row["seconds"] == pytest.approx(11.0)


def test_pairs_are_reported_for_every_two_encodings_and_every_size(runs, tmp_path):
    found = summarize(runs, command="", root=tmp_path)["pairs"]
    assert [(pair["size"], pair["first"], pair["second"]) for pair in found] == [
        (36, "liere8", "absolute"),
        (48, "liere8", "absolute"),
    ]
    for pair in found:
        assert pair["low"] < pair["difference"] < pair["high"]
        assert pair["difference"] == pytest.approx(0.5, abs=0.1)
        assert pair["p"] < 1e-3  # the smallest p-value of 9,999 permutations


def test_pairs_are_compared_over_seeds_where_there_are_several(runs, tmp_path):
    found = summarize(runs, command="", root=tmp_path)
    absolute, liere8 = ([sum(correct(run, 48)) / EXAMPLES for run in group] for group in (runs[:3], runs[3:]))
    over_seeds = found["pairs"][1]["over_seeds"]
    assert over_seeds["p"] == pytest.approx(stats.ttest_rel(liere8, absolute).pvalue)
    assert (over_seeds["ahead"], over_seeds["pairs"], over_seeds["verdict"]) == (3, 3, 1)
    assert "p over seeds: a paired t test" in found["pairs_note"]


def test_examples_that_some_runs_lack_do_not_decide_who_is_ahead(runs, tmp_path):
    def write(run, rows: list[tuple[int, bool]]) -> None:
        ids, right = [list(column) for column in zip(*rows, strict=True)]
        for record in (records := json.loads(run.evaluation_file.read_text())):
            Predictions(ids, [1] * len(ids), [*map(int, right)], [0.5] * len(ids)).write(
                run.folder / record["predictions"]
            )
            record["examples"] = len(ids)
        run.evaluation_file.write_text(json.dumps(records))

    for run in runs:
        is_better, seed = run.config.model.encoding == "liere8", run.config.training.seed
        common = [(number, number % 10 < (7 if is_better else 5) and number != 10 * seed) for number in range(100)]
        own = [(100 + number, False) for number in range(50)] if is_better else [(150 + n, True) for n in range(50)]
        write(run, common + own)
    found = summarize(runs, command="", root=tmp_path)
    (pair, _), (absolute, liere8) = found["pairs"], [row["evaluations"][0] for row in found["encodings"]]
    assert liere8["by_seed"] == pytest.approx([0.69] * 3)
    assert absolute["by_seed"] == pytest.approx([0.49] * 3)
    assert (liere8["examples"], liere8["left_out"], pair["left_out"]) == (100, 100, 100)
    assert pair["difference"] == pytest.approx(0.2)
    assert pair["over_seeds"]["difference"] == pytest.approx(0.2)
    assert "LieRE₈, 69.0 % on average (69.0 to 69.0), is ahead of absolute, 49.0 % on average" in headline(found)
    assert result_table(found).texts[1][1] == "69.0 (69.0-69.0)"
    assert "are left out of all results: 100 at 36 px, 100 at 48 px." in result_table(found).notes[0]


def test_subsets_of_files_of_different_lengths_are_not_paired(runs, tmp_path):
    def tested(run, count: int, **fields):
        ids = [number for number in range(count) if number != 3 or not fields]
        for record in (records := json.loads(run.evaluation_file.read_text())):
            ones = [1] * len(ids)
            Predictions(ids, ones, ones, [0.5] * len(ids)).write(run.folder / record["predictions"])
            record |= {"examples": len(ids), "skipped": 0} | fields
        run.evaluation_file.write_text(json.dumps(records))
        return replace(run, config=run.config.model_copy(update={"data": parse_config({"data": files}).data}))

    files = {"name": "images", "root": "my-photos", "size": 36}
    same = [tested(runs[0], 100), tested(runs[3], 100, skipped=1)]
    assert summarize(same, command="", root=tmp_path)["pairs"][0]["left_out"] == 1
    with pytest.raises(ValueError, match=r"tested on 100 examples of 36 px and .* on 99, .*with the same --examples"):
        summarize([same[0], tested(runs[3], 99)], command="", root=tmp_path)
    old = [same[0], tested(runs[3], 100, asked=None)]  # as written before unreadable examples were counted
    assert summarize(old, command="", root=tmp_path)["pairs"][0]["left_out"] == 1


def test_one_seed_compares_models_not_encodings(runs, tmp_path):
    found = summarize([runs[0], runs[3]], command="", root=tmp_path)
    assert [pair["over_seeds"] for pair in found["pairs"]] == [None, None]
    assert "this compares these trained models, not the encodings" in found["pairs_note"]
    assert found["encodings"][0]["evaluations"][0]["over_seeds"]["low"] is None
    assert summarize(runs[:1], command="", root=tmp_path)["pairs_note"] == ""


def test_examples_to_the_target_are_those_of_the_first_validation_that_is_as_good(runs, tmp_path):
    assert [examples_to_target(run) for run in runs] == [None] * 3 + [16] * 3
    rows = summarize(runs, command="", root=tmp_path)["encodings"]
    assert [(row["examples_to_target"], row["seeds_at_target"]) for row in rows] == [(None, 0), (16, 3)]


def test_runs_are_listed_with_their_curves_and_relative_folders(runs, tmp_path):
    found = summarize(runs, command="", root=tmp_path)["runs"]
    assert found[3]["run"] == "runs/liere8-seed0"
    assert [point["accuracy"] for point in found[3]["curve"]] == [0.5, 0.96, 0.9]
    assert [point["examples"] for point in found[3]["curve"]] == [8, 16, 24]
    json.dumps(found)


def test_only_sizes_that_all_runs_have_are_compared(tmp_path):
    runs = [
        pretend(tmp_path / "a", "absolute", 0, 0.5, sizes=(36, 48)),
        pretend(tmp_path / "b", "none", 0, 0.5, sizes=(48, 60)),
    ]
    assert summarize(runs, command="", root=tmp_path)["sizes"] == [48]
    runs[1] = pretend(tmp_path / "c", "none", 0, 0.5, sizes=(60,))
    with pytest.raises(ValueError, match=r"no image size was evaluated in all runs, only \[\[36, 48\], \[60\]\]"):
        summarize(runs, command="", root=tmp_path)


def test_runs_that_cannot_be_compared_are_named(tmp_path):
    one = pretend(tmp_path / "one", "absolute", 3, 0.5)
    with pytest.raises(ValueError, match=r"absolute has two runs with the same seed \(\[3, 3\]\)"):
        summarize([one, pretend(tmp_path / "two", "absolute", 3, 0.5)], command="", root=tmp_path)
    one.evaluation_file.unlink()
    with pytest.raises(ValueError, match="has not been evaluated: run liere eval"):
        summarize([one], command="", root=tmp_path)
    one.result_file.unlink()
    with pytest.raises(ValueError, match="is not finished: run liere train --resume"):
        summarize([one], command="", root=tmp_path)


def test_recipes_that_differ_are_reported(tmp_path):
    runs = [
        pretend(tmp_path / "a", "absolute", 0, 0.5),
        pretend(tmp_path / "b", "none", 0, 0.5, optimizer__learning_rate=0.1, model__dim=32),
    ]
    text = summarize(runs, command="", root=tmp_path)["description"]
    assert "Recipes are not the same: they differ in model.dim, optimizer.learning_rate." in text
    assert "Recipes" not in summarize(runs[:1], command="", root=tmp_path)["description"]


def test_a_scale_of_attention_is_reported_if_all_have_it(tmp_path):
    scales = {"none": "log", "absolute": "constant"}
    runs = [pretend(tmp_path / name, name, 0, 0.5, model__attention_scale=scale) for name, scale in scales.items()]
    assert "log(tokens in training)" in summarize(runs[:1], command="", root=tmp_path)["description"]
    both = summarize(runs, command="", root=tmp_path)["description"]
    assert "log(tokens in training)" not in both
    assert "they differ in model.attention_scale" in both


def test_seeds_are_counted_per_encoding_and_what_one_cannot_have_is_said(tmp_path):
    moved = {"model__position_shift": 1.75, "model__cls_position": "unseen"}
    runs = [pretend(tmp_path / f"l{seed}", "liere8", seed, 0.5, **moved) for seed in range(3)]
    assert "with 3 seeds per encoding." in summarize(runs, command="", root=tmp_path)["description"]
    runs.append(pretend(tmp_path / "s", "sincos", 0, 0.5, model__position_shift=1.75))
    runs.append(pretend(tmp_path / "a", "absolute", 0, 0.5))
    text = summarize(runs, command="", root=tmp_path)["description"]
    assert "with 1 to 3 seeds per encoding. The recipe has position_shift 1.75, cls_position unseen; sincos and" in text
    assert "absolute do not support that and are trained without." in text
    assert "Recipes" not in text
    assert "one seed per encoding." in summarize(runs[2:], command="", root=tmp_path)["description"]


def test_variants_of_an_encoding_have_rows_of_their_own(tmp_path):
    plain = pretend(tmp_path / "a", "absolute", 0, 0.5)
    with_option = pretend(tmp_path / "b", "absolute", 0, 0.5, model__options={"init_std": 1})
    rows = summarize([plain, with_option], command="", root=tmp_path)["encodings"]
    assert [row["encoding"] for row in rows] == ["absolute", "absolute:init_std=1"]
