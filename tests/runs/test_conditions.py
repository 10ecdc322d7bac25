from __future__ import annotations

import json
from typing import ClassVar

import pytest
import torch

pytest.importorskip("tests.training.requirements")

from liere.cli import main
from liere.data.counter_random import combine
from liere.evaluation.evaluate import evaluate
from liere.evaluation.predictions import Predictions
from liere.evaluation.shuffled_data import shuffle_patches
from liere.runs.conditions import Condition
from liere.runs.model import load_model
from liere.training.fit import train
from tests.training.tiny import make_run, quiet

pytestmark = quiet
EXAMPLES = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("run") / "run")
    train(run, say=print)
    return run


@torch.no_grad()
def plain(run, images, policy="extend") -> list[int]:
    model = load_model(run.config, run.final_weights)
    model.position_policy = policy
    return model((images.float() / 255 - 0.9) / 0.3).argmax(1).tolist()


def predictions(run, condition: Condition) -> Predictions:
    evaluate(run, [condition], examples=EXAMPLES, batch_size=5, say=print)
    return Predictions.read(run.folder / "predictions" / f"final-test-{condition.name}.csv")


class TestCondition:
    def test_records_tell_their_condition(self):
        for condition in (Condition(32), Condition(48, "rescale"), Condition(48, "extend", "patches")):
            assert Condition.of(condition.as_dict() | {"examples": 3}) == condition

    @pytest.mark.usefixtures("no_shape_checks")
    @pytest.mark.parametrize("size", [0, -36, True, None, 36.0, "36"])
    def test_sizes_are_positive_integers(self, size):
        with pytest.raises((TypeError, ValueError), match="size must be "):
            Condition(size)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [({"policy": "rescal"}, "did you mean 'rescale'"), ({"shuffle": "patch"}, "did you mean 'patches'")],
    )
    def test_unknown_ones_are_reported(self, fields, message):
        with pytest.raises(ValueError, match=message):
            Condition(32, **fields)


class TestEvaluation:
    def test_patches_are_shuffled_with_an_order_for_each_example_that_no_batch_changes(self, run):
        images, _ = run.config.data.load("test", length=EXAMPLES).batch(range(EXAMPLES))
        words = combine(torch.tensor(0), torch.arange(EXAMPLES))
        expected = plain(run, shuffle_patches(images, (12, 12), words))
        assert predictions(run, Condition(36, shuffle="patches")).predictions == expected

    @pytest.mark.parametrize("policy", ["extend", "rescale", "reference"])
    def test_positions_are_those_of_the_policy(self, run, policy):
        images, _ = run.config.data.load("test", size=60, length=EXAMPLES).batch(range(EXAMPLES))
        assert predictions(run, Condition(60, policy)).predictions == plain(run, images, policy)

    def test_conditions_are_kept_beside_each_other(self, run):
        before = {Condition.of(record) for record in run.evaluations()}
        evaluate(run, [36, Condition(36, shuffle="patches")], examples=EXAMPLES, say=print)
        after = [Condition.of(record) for record in run.evaluations("final")]
        assert len(set(after)) == len(after)
        assert set(after) == before | {Condition(36), Condition(36, shuffle="patches")}

    def test_images_have_no_frames(self, run):
        with pytest.raises(ValueError, match="no frames to shuffle in images of 2 axes: shuffle patches instead"):
            evaluate(run, [Condition(36, shuffle="frames")], examples=2, say=print)

    def test_the_command_tests_every_combination(self, run, capsys):
        arguments = f"{run.folder} --sizes 36 48 --policies extend rescale --shuffle patches --examples 4 --json"
        assert main(["eval", *arguments.split()]) == 0
        records = json.loads(capsys.readouterr().out)
        assert [Condition.of(record) for record in records] == [
            Condition(size, policy, shuffle)
            for size in (36, 48)
            for policy in ("extend", "rescale")
            for shuffle in ("", "patches")
        ]


class TestFineTuning:
    FIELDS: ClassVar = {
        "training__examples": 8,
        "optimizer__learning_rate": 1e-12,
        "optimizer__generator_learning_rate": 1e-12,
    }

    def test_it_starts_with_the_final_weights_of_another_run_at_another_size(self, run):
        fields = self.FIELDS | {"data__size": 60, "model__image_size": 36, "training__start_from": "run"}
        tuned = make_run(run.folder.parent / "tuned", **fields)
        train(tuned, say=print)
        one, other = (load_model(r.config, r.final_weights).state_dict() for r in (run, tuned))
        assert one.keys() == other.keys()
        for name, value in one.items():
            torch.testing.assert_close(other[name], value, rtol=0, atol=1e-8)
        images, _ = run.config.data.load("test", size=60, length=4).batch(range(4))
        assert predictions(tuned, Condition(60)).predictions[:4] == plain(run, images)

    def test_a_path_will_do(self, run, tmp_path):
        tuned = make_run(tmp_path / "tuned", training__start_from=str(run.folder), **self.FIELDS)
        assert tuned.source().folder == run.folder

    def test_what_is_not_there_is_reported(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no run at nowhere"):
            train(make_run(tmp_path / "tuned", training__start_from="nowhere"), say=print)
