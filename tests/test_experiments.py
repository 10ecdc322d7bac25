"""Every experiment is a valid configuration whose header gives its cost and expected score."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
yaml = pytest.importorskip("yaml")

from liere.cli import parse_arguments  # noqa: E402
from liere.comparison.demo import QUICK_RECIPE, RECIPE  # noqa: E402
from liere.reproduce.experiment import Experiment  # noqa: E402
from liere.reproduce.wanted_runs import plan_runs  # noqa: E402
from liere.runs.config_file import parse_config, read_config  # noqa: E402
from liere.runs.model import build_model  # noqa: E402

ROOT = Path(__file__).parents[1]
CONFIGURATIONS = (ROOT / "experiments").rglob("*.yaml")
EXPERIMENTS = [path for path in sorted(CONFIGURATIONS) if not {"tables", "studies"} & {*path.parts}]
STUDIES = sorted((ROOT / "experiments" / "studies").glob("*.yaml"))
PAPER = sorted((ROOT / "experiments" / "spatial" / "paper").glob("*.yaml"))

pytestmark = pytest.mark.skipif(not EXPERIMENTS, reason="the experiments are not available")


def config_of(path: Path):
    return parse_config(read_config(path))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_its_header_gives_command_cost_and_score(path):
    header = path.read_text().split("\ntitle:")[0]
    text = re.sub(r"\n#\s+", " ", header)
    assert f"--config {path.relative_to(ROOT)}" in text
    for command in re.findall(
        r"liere (?:train|eval|compare|reproduce) [^\n]*?(?= (?:Cost|Evaluate|Expected|Table):|\n|$)", text
    ):
        parse_arguments(shlex.split(command)[1:])
    assert "Cost:" in text
    assert "Expected:" in text


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_the_paper_s_configurations_have_the_paper_s_hyper_parameters(path):
    config = config_of(path)
    assert config.model.size == "vit_base"
    assert (config.model.patch_size, config.model.dropout, config.model.pool) == (12, 0.1, "cls")
    assert config.optimizer.learning_rate == 1e-4
    assert (config.optimizer.betas, config.optimizer.eps, config.optimizer.weight_decay) == ((0.9, 0.999), 1e-8, 0)
    assert (config.optimizer.warmup_steps, config.training.batch_size) == (0, 512)
    examples = 2_000_000 if path.stem == "absolute_2m" else 800_000
    assert config.data.size == 108
    assert config.training.examples == config.data.train_examples == examples


def test_the_paper_s_encodings_are_all_there():
    found = {path.stem: config_of(path).model for path in PAPER}
    assert {name: model.encoding for name, model in found.items()} == {
        "absolute": "absolute",
        "absolute_2m": "absolute",
        "visionllama": "visionllama",
        "rope_mixed": "rope_mixed",
        "liere8": "liere8",
        "liere64": "liere64",
    }
    assert found["absolute"].options == {"init_std": 1.0}


def test_the_paper_s_model_has_85_million_parameters():
    model = build_model(config_of(ROOT / "experiments" / "spatial" / "paper" / "absolute.yaml"))
    assert sum(p.numel() for p in model.parameters()) == 85_427_716


def test_the_recipes_of_the_demo_are_experiments():
    assert {ROOT / "experiments" / name for name in (RECIPE, QUICK_RECIPE)} <= {*EXPERIMENTS}
    assert config_of(ROOT / "experiments" / RECIPE).fingerprint.startswith("256b974b")


def test_placement_differs_from_the_small_experiment_in_what_its_header_says_alone():
    small, placed = (config_of(ROOT / "experiments" / "spatial" / f"{name}.yaml") for name in ("small", "placement"))
    model = {name: getattr(placed.model, name) for name in ("position_shift", "position_noise", "attention_scale")}
    assert model == {"position_shift": 1.75, "position_noise": 0.2, "attention_scale": "log"}
    changed = ("name", "matrix_learning_rate", "generator_learning_rate")
    muon = {name: getattr(placed.optimizer, name) for name in changed}
    assert list(muon.values()) == ["muon", 0.03, 0.02]
    assert placed.training.examples < small.training.examples
    same = {
        "title": placed.title,
        "model": small.model.model_copy(update=model),
        "optimizer": small.optimizer.model_copy(update=muon),
        "training": small.training.model_copy(update={"examples": placed.training.examples}),
    }
    assert small.model_copy(update=same) == placed


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_can_be_planned_and_says_how_to_run_it(path, tmp_path):
    text = path.read_text()
    assert f"# Command:  python tools/study.py experiments/studies/{path.name}\n" in text
    assert "# Cost:" in text
    assert "# Expected:" in text
    experiment = Experiment.model_validate(read_config(path))
    assert len({one.planned.folder for one in plan_runs(experiment, {}, tmp_path)}) > 1
