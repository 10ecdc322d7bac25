"""Experiments of the paper's tables: hyperparameters from its appendix, and a run for each printed number."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
import yaml

from liere.cli import parse_arguments
from liere.files.shipped import experiments_folder
from liere.reproduce import paper_numbers
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.experiment import read_experiment
from liere.reproduce.row_labels import paper_row
from liere.reproduce.wanted_runs import Key, plan_runs
from liere.runs.config_file import read_config

TABLES = sorted(path.parent.name for path in (experiments_folder() / "tables").glob("*/paper.yaml"))
EPOCH = {"cifar100": 50_000, "imagenet": 1_281_167, "ucf101": 9_537}


@pytest.fixture(scope="module")
def planned():
    """All runs at the paper's scale, by table."""
    return {name: plan_runs(read_experiment(name, "paper"), {}, Path("runs")) for name in TABLES}


def keys(wanted) -> set[Key]:
    return {one.key for one in wanted}


class TestFiles:
    def test_every_table_has_both_scales_in_the_same_form(self):
        for name in TABLES:
            small, paper = (
                read_config(experiments_folder() / "tables" / name / f"{s}.yaml") for s in ("small", "paper")
            )
            optional = {"note", "test_examples", "vary"}
            assert small.keys() - optional == paper.keys() - optional, name
            assert set(small.get("vary", {})) <= set(paper.get("vary", {})), name

    @pytest.mark.parametrize("name", TABLES)
    @pytest.mark.parametrize("scale", ["small", "paper"])
    def test_its_header_has_its_command(self, name, scale):
        text = (experiments_folder() / "tables" / name / f"{scale}.yaml").read_text()
        command = f"liere reproduce {name} --scale {scale}"
        assert f"# Command:  {command}\n" in text
        assert parse_arguments(command.split()[1:]).scale == scale

    def test_every_entry_of_the_catalogue_has_an_experiment(self):
        assert {entry.experiment for entry in CATALOGUE.values()} - {""} == set(TABLES)

    def test_unknown_tables_are_told_with_the_nearest(self):
        with pytest.raises(FileNotFoundError, match="no experiment 'mian' at scale 'paper': did you mean 'main'"):
            read_experiment("mian", "paper")

    @pytest.mark.parametrize(
        ("text", "message"),
        [("title: x\n", "data"), ("title: x\nseeds: [-1]\ndata: {}\nencodings: [a]\n", "seeds"), ("ttle: x\n", "ttle")],
    )
    def test_what_is_wrong_with_a_file_is_told(self, tmp_path, monkeypatch, text, message):
        (tmp_path / "tables" / "main").mkdir(parents=True)
        (tmp_path / "tables" / "main" / "small.yaml").write_text(text)
        monkeypatch.setattr("liere.reproduce.experiment.experiments_folder", lambda: tmp_path)
        with pytest.raises(ValueError, match=message):
            read_experiment("main", "small")


class TestAppendix:
    """Adam 1e-4, betas 0.9/0.999, eps 1e-8, cosine, 200 epochs, batch 512 or 64, dropout 0.1, CLS."""

    def test_every_run_has_its_hyper_parameters(self, planned):
        for name, wanted in planned.items():
            for one in wanted:
                config, optimizer = one.planned.config, one.planned.config.optimizer
                assert optimizer.betas == (0.9, 0.999)
                assert optimizer.eps == 1e-8
                assert optimizer.weight_decay == 0
                assert optimizer.warmup_steps == 0
                assert optimizer.learning_rate == (1e-5 if one.key.fine_tuned else 1e-4)
                assert config.model.dropout == 0.1
                assert config.model.pool == ("mean" if one.key.variant == "mean" else "cls")
                assert config.training.batch_size == (64 if config.data.name == "ucf101" else 512)
                if name != "size":
                    assert config.model.size == "vit_base"

    def test_epochs_and_inputs_are_those_of_the_data_set(self, planned):
        patches = {"cifar100": 4, "imagenet": 16, "ucf101": (2, 16, 16), "spatial": 12}
        sides = {"cifar100": 32, "imagenet": 224, "ucf101": 224, "spatial": 108}
        for wanted in planned.values():
            for one in wanted:
                data, training = one.planned.config.data, one.planned.config.training
                assert one.planned.config.model.patch_size == patches[data.name]
                assert data.side == (256 if one.key.fine_tuned else sides[data.name])
                if data.name == "spatial":
                    assert training.examples == data.train_examples
                    assert training.examples == (2_000_000 if one.key.variant else 800_000)
                else:
                    epochs = training.examples / (EPOCH[data.name] * data.fraction)
                    assert epochs == pytest.approx(30 if one.key.fine_tuned else 200)
                if data.name in ("cifar100", "imagenet"):
                    assert data.rand_augment is not None
                if data.name == "ucf101":
                    assert data.frames == 8

    def test_model_sizes_are_those_of_the_table(self, planned):
        sizes = {one.key.variant: one.planned.config.model.size for one in planned["size"]}
        assert sizes == {
            "ViT-Tiny": "vit_small",
            "ViT-Base": "vit_base",
            "ViT-Large": "vit_large",
            "ViT-Huge": "vit_huge",
        }

    def test_fine_tuned_runs_start_from_their_own_first_run(self, planned):
        bases = {one.key: one.planned for one in planned["resolution"] if not one.key.fine_tuned}
        tuned = [one for one in planned["resolution"] if one.key.fine_tuned]
        assert len(tuned) == len(bases)
        for one in tuned:
            base = bases[one.key._replace(fine_tuned=False)]
            assert one.planned.config.training.start_from == base.folder.name
            assert one.planned.config.model.image_size == (224, 224)


class TestNumbers:
    """Each number printed in the paper has a run, or is computed from existing runs."""

    def test_main_loss_and_significance(self, planned):
        found = {(paper_row(k.encoding, ["absolute:init_std=1"]), k.data) for k in keys(planned["main"])}
        for table in (paper_numbers.MAIN, paper_numbers.LOSS):
            assert {(row, data) for row, cells in table.items() for data in cells} <= found
        assert set(paper_numbers.P_VALUES) - {"384 px"} <= {data for _, data in found}

    def test_sizes(self, planned):
        found = {(paper_row(k.encoding, ["absolute:init_std=1"]), k.variant) for k in keys(planned["size"])}
        assert {(row, size) for row, cells in paper_numbers.SIZE.items() for size in cells} <= found

    def test_blocks(self, planned):
        found = {(key.data, key.encoding) for key in keys(planned["block"])}
        names = {2: "rope_mixed", 64: "liere"}
        for data, cells in paper_numbers.BLOCK.items():
            assert {(data, names.get(block, f"liere{block}")) for block in [*cells, 48]} <= found

    def test_sharing(self, planned):
        found = {(key.variant, key.encoding) for key in keys(planned["sharing"])}
        assert found == {(variant, row) for variant, cells in paper_numbers.SHARING.items() for row in cells}
        options = {one.key.variant: one.planned.config.model.options for one in planned["sharing"]}
        assert options == {
            "nothing": {},
            "across heads": {"share_heads": True},
            "across layers": {"share_layers": True},
            "across both": {"share_heads": True, "share_layers": True},
        }

    def test_initialisations(self, planned):
        found = {(k.encoding, k.variant) for k in keys(planned["init"])}
        assert found == {(row, variant) for row in paper_numbers.INIT for variant in ("2 pi", "1")}
        for one in planned["init"]:
            assert one.planned.config.model.options == ({"init_scale": 1.0} if one.key.variant == "1" else {})

    def test_shuffling(self, planned):
        conditions = {(one.key.data, c.shuffle) for one in planned["shuffling"] for c in one.planned.conditions}
        assert conditions == {
            ("CIFAR-100", ""),
            ("CIFAR-100", "patches"),
            ("UCF101", ""),
            ("UCF101", "patches"),
            ("UCF101", "frames"),
        }

    def test_resolutions(self, planned):
        sizes = {(c.size, c.policy) for one in planned["resolution"] for c in one.planned.conditions}
        wanted = (192, 224, 256, 320, 384, 448)
        assert sizes == {(size, policy) for size in wanted for policy in ("extend", "rescale")}

    def test_spatial(self, planned):
        found = {(paper_row(k.encoding, ["absolute:init_std=1"]), k.variant) for k in keys(planned["spatial"])}
        assert {(row, "") for row in paper_numbers.SPATIAL} <= found
        assert ("absolute", "2 M examples") in found

    def test_fractions_are_20_to_90_percent_and_all(self, planned):
        found = {one.key.variant: one.planned.config.data.fraction for one in planned["fraction"]}
        assert found == {f"{p} %": pytest.approx(p / 100) for p in (20, 40, 60, 80, 90, 100)}

    def test_tables_share_runs_of_the_same_recipe(self, planned):
        main = {one.planned.folder for one in planned["main"]}
        for name in ("size", "fraction", "block", "sharing", "init", "pooling", "shuffling", "resolution"):
            assert main & {one.planned.folder for one in planned[name]}, name


class TestPaperNumbers:
    @pytest.mark.parametrize("table", ["MAIN", "LOSS", "SIZE", "SPATIAL"])
    def test_a_number_outside_of_its_interval_is_marked_as_a_slip(self, table):
        for cells in getattr(paper_numbers, table).values():
            for number in cells.values():
                inside = number.low < number.value < number.high or number.value == number.high == 100
                assert inside or number.slip

    @pytest.mark.parametrize("table", ["MAIN", "SIZE"])
    def test_an_interval_that_is_longer_on_one_side_is_marked_as_a_slip(self, table):
        for cells in getattr(paper_numbers, table).values():
            for number in cells.values():
                lopsided = abs(number.value - number.low - (number.high - number.value)) > 0.35
                assert lopsided == bool(number.slip)

    def test_drops_are_what_the_accuracies_say_or_slips(self):
        for cells in paper_numbers.SHUFFLING.values():
            for before, after, drop in cells.values():
                right = math.isclose(100 * (1 - after / before), drop.value, abs_tol=0.22)  # accuracies are rounded
                assert right != bool(drop.slip)

    def test_parameters_of_generators_are_those_of_the_formula_or_slips(self):
        for data, cells in paper_numbers.BLOCK.items():
            axes = 3 if data == "UCF101" else 2
            for block, (_, parameters) in cells.items():
                expected = axes * 12 * 12 * (64 // block) * block * (block - 1) // 2
                assert (parameters.value == expected) != bool(parameters.slip)


def test_a_table_s_yaml_is_plain():
    for path in (experiments_folder() / "tables").rglob("*.yaml"):
        assert yaml.safe_load(path.read_text())["title"]
