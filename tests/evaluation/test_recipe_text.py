from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.evaluation.recipe_text import common_recipe, describe_recipes
from tests.evaluation.test_summary import pretend


def test_a_recipe_is_what_runs_have_in_common(tmp_path):
    runs = [
        pretend(tmp_path / "a", "absolute", 0, 0.5),
        pretend(tmp_path / "b", "liere8", 1, 0.5, model__position_shift=0.5),
    ]
    recipe = common_recipe(runs)
    assert recipe["model"]["position_shift"] == 0.5  # of the run that has all fields
    assert not {"encoding", "options"} & set(recipe["model"])
    assert "seed" not in recipe["training"]
    assert "title" not in recipe


def test_sizes_seeds_and_differences_are_reported(tmp_path):
    one = [pretend(tmp_path / f"a{seed}", "absolute", seed, 0.5) for seed in (0, 1)]
    other = [pretend(tmp_path / "b", "liere8", 0, 0.5, optimizer__clip=2.0)]
    text = describe_recipes({"absolute": one, "liere8": other})
    assert text.startswith("Small transformers of about 0.001 M parameters, trained on 72 examples of 36 px")
    assert "with 1 to 2 seeds per encoding." in text
    assert text.endswith("Recipes are not the same: they differ in optimizer.clip.")
