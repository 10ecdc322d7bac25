from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("tests.training.requirements")

from liere.cli import main
from liere.evaluation.evaluate import evaluate
from liere.evaluation.placements import agreement, describe_placements
from liere.evaluation.predictions import Predictions
from liere.inspection.placement_sensitivity import attention_changes
from liere.positions import grid_positions
from liere.runs.conditions import Condition
from liere.runs.model import load_model
from liere.training.fit import train
from tests.models import small_model
from tests.training.tiny import make_run, quiet

pytestmark = quiet


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("placements") / "run")
    train(run, say=print)
    return run


def test_agreement_is_about_every_placement():
    assert agreement([[1, 2, 3, 4], [1, 2, 3, 0], [1, 0, 3, 4]]) == 0.5


@torch.no_grad()
def test_predictions_of_a_placement_are_those_of_moved_positions(run):
    (record,) = evaluate(run, [Condition(36, placement="2,5")], examples=6, say=print)
    model = load_model(run.config, run.final_weights)
    moved = grid_positions((3, 3)) + torch.tensor([2 / 2, 5 / 2])  # a step is half the extent
    model._know_positions = lambda *_: type(model._known_positions)(None, moved, 0, moved[0], moved[0])
    images, _ = run.config.data.load("test").batch(range(6))
    expected = model((images.float() / 255 - 0.9) / 0.3).argmax(1)
    assert Predictions.read(run.folder / record["predictions"]).predictions == expected.tolist()
    assert record["placement"] == "2,5"


@torch.no_grad()
def test_the_attention_scale_is_that_of_the_condition_and_no_longer(run):
    conditions = [Condition(60, attention_scale="log"), Condition(60)]
    records = evaluate(run, conditions, examples=6, say=print)
    model = load_model(run.config, run.final_weights)
    images, labels = run.config.data.load("test", size=60).batch(range(6))
    for record, scale in zip(records, (math.log(26) / math.log(10), 1.0), strict=True):
        for block in model.blocks:
            block.attention.forward = _scaled(block.attention, scale)
        losses = torch.nn.functional.cross_entropy(model((images.float() / 255 - 0.9) / 0.3), labels)
        assert record["loss"]["value"] == pytest.approx(losses.item(), rel=1e-4)


def _scaled(attention, scale):
    def forward(x, rotations, prefix, _=None):
        q, k, v, _ = attention.queries_keys_values(x, rotations, prefix)
        weights = (scale * q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return attention.projection((weights @ v).transpose(1, 2).flatten(2))

    return forward


def test_the_command_tells_how_much_placements_matter(run, capsys):
    assert main(["eval", str(run.folder), "--placements", "0", "3", "0,7", "--examples", "10"]) == 0
    out = capsys.readouterr().out
    assert "36 px, placed at 0,7: accuracy" in out
    assert "36 px, 3 placements: accuracy" in out
    assert "the same answer at all of them for" in out


def test_conditions_are_described_apart(run):
    records = evaluate(
        run, [Condition(size, placement=place) for size in (36, 60) for place in ("0", "4")], examples=5, say=print
    )
    lines = list(describe_placements(run, records))
    assert [line.split(":")[1].split(",")[0].strip() for line in lines] == ["36 px", "60 px"]


@pytest.mark.parametrize("placement", ["x", "1,2,3", "nan"])
def test_a_placement_is_numbers(run, placement, capsys):
    assert main(["eval", str(run.folder), "--placements", placement]) == 2
    assert "use for example 8 or 0,8" in capsys.readouterr().err


def test_encodings_without_coordinates_have_no_placements(tmp_path):
    run = make_run(tmp_path / "run", model__encoding="absolute", training__examples=8)
    train(run, say=print)
    with pytest.raises(ValueError, match="placements move coordinates, but the encoding absolute has none"):
        evaluate(run, [Condition(36, placement="3")], examples=4, say=print)


class TestSensitivity:
    @torch.no_grad()
    def test_it_is_the_attention_that_moves_in_a_slow_loop(self):
        model = small_model("liere8", depth=1).double().eval()
        images, offset = torch.randn(2, 3, 16, 16, dtype=torch.float64), (3.0, 1.0)
        tokens, grid = model.patch_embed(images)
        tokens = torch.cat([model.cls_token.expand(2, -1, -1), tokens], dim=1)
        attention = model.blocks[0].attention
        step = 1 / (grid[0] - 1)
        maps = []
        for moved in (0.0, 1.0):
            positions = grid_positions(grid, dtype=torch.float64) + moved * step * torch.tensor(offset)
            rotations = model.encoding.rotations(positions)
            q, k, _, _ = attention.queries_keys_values(model.blocks[0].norm1(tokens), rotations, 1)
            maps.append((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        change = 0.5 * (maps[0] - maps[1]).abs().sum(-1).mean((0, 1))
        (found,) = attention_changes(model, images, [offset])
        assert found.prefix == pytest.approx(change[0].item())
        assert found.patches == pytest.approx(change[1:].mean().item())

    def test_commuting_generators_do_not_care_and_others_do(self):
        images = torch.randn(2, 3, 16, 16)
        mixed, dense = (
            attention_changes(small_model(name, pool="mean"), images, [(5, 2)]) for name in ("rope_mixed", "liere")
        )
        assert max(layer.patches for layer in mixed) < 1e-4
        assert min(layer.patches for layer in dense) > 1e-3
        assert mixed[0].prefix is None

    @pytest.mark.parametrize(("training", "offsets"), [(True, [(1, 1)]), (False, [])])
    def test_it_needs_eval_mode_and_offsets(self, training, offsets):
        with pytest.raises(ValueError, match="eval mode and at least one offset"):
            attention_changes(small_model("liere8").train(training), torch.randn(1, 3, 16, 16), offsets)

    def test_absolute_positions_cannot_be_moved(self):
        with pytest.raises(ValueError, match="Absolute has no coordinates"):
            attention_changes(small_model("absolute"), torch.randn(1, 3, 16, 16), [(1, 1)])


@pytest.mark.parametrize("text", ["8", "8.0", "8,8", " 8, 8.0"])
def test_a_placement_has_one_name(text):
    assert Condition(36, placement=text) == Condition(36, placement="8")


def test_a_placement_of_too_many_axes_is_refused_before_anything_is_predicted(run):
    run.evaluation_file.unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"placement must be .*got '1,2,3'"):
        evaluate(run, [Condition(36), Condition(36, placement="1,2,3")], examples=4, say=print)
    assert not run.evaluation_file.exists()
