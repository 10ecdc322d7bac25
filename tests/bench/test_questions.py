"""Every question with tiny sizes and fake times."""

from __future__ import annotations

import importlib.util
import sys

import pytest
import torch

from liere.bench import loading, memory, points, rotations, scaling, step
from liere.bench.memory_probe import Load, RotationLoad, peak_memory, probe, probe_rotation
from liere.bench.point_model import PointTransformer, random_clouds
from liere.bench.race import Race, spread, watch_nothing
from liere.bench.record import Settings
from liere.rotations import exp_products

pytestmark = pytest.mark.usefixtures("hasty")

TINY = {"size": "vit_tiny", "depth": 1, "image_size": 8, "patch_size": 4, "num_classes": 3}


@pytest.fixture
def clock(monkeypatch):
    """Replace races by fake times: candidate n takes n + 1 seconds, and a tenth more each round."""

    def pretend(contestants, rounds, *, name="", watch=watch_nothing):
        watch(name, rounds, rounds)
        for call in contestants.values():
            call()
        times = {
            one: [(place + 1) * (1 + done / 10) for done in range(rounds)] for place, one in enumerate(contestants)
        }
        return Race(next(iter(contestants)), times)

    for question in (loading, points, rotations, scaling, step):
        monkeypatch.setattr(question, "race", pretend)


def approx(found: dict) -> dict:
    return {"median": pytest.approx(found["median"]), "quartiles": pytest.approx(found["quartiles"])}


def spread_of(*values: float) -> dict:
    return spread(values).as_dict()


def test_rotations(monkeypatch, clock):
    cases = [
        rotations.Case("grid", 5, head_dim=12, heads=2, grid=(3, 2)),
        rotations.Case("fp64, samples, volume", 4, 8, 1, (2, 2, 2), samples=3, dtype=torch.float64),
    ]
    monkeypatch.setattr(rotations, "CASES", cases)
    answer = rotations.measure(Settings(rounds=2))
    assert [row["case"] for row in answer.rows] == ["grid", "fp64, samples, volume"]
    assert [row["matrices"] for row in answer.rows] == [2 * 6 * 2, 3 * 8 * 2]
    assert [row["dtype"] for row in answer.rows] == ["float32", "float64"]
    for row in answer.rows:
        assert row["rounds"] == answer.rounds == 2
        assert exp_products(0.0, 5) <= row["products"] < 20
        for part in (row["forward"], row["forward_backward"]):
            assert list(part["seconds"]) == ["matrix_exp", "exp_skew", "layer", "product"]
            assert list(part["speedup"]) == list(part["share_of_limit"]) == ["exp_skew", "layer"]
            assert part["seconds"]["layer"] == approx(spread_of(3.0, 3.3))
            assert part["speedup"] == {"exp_skew": spread_of(0.5, 0.5), "layer": approx(spread_of(1 / 3, 1 / 3))}
        # The bare product is the fourth, so that all products of the exponential take 4 seconds each.
        products = row["products"]
        assert row["forward"]["limit_seconds"] == approx(spread_of(4 * products, 4.4 * products))
        assert row["forward"]["share_of_limit"]["exp_skew"] == approx(spread_of(2 * products, 2 * products))
        both = 4 * products - 1
        assert row["forward_backward"]["share_of_limit"]["layer"] == approx(spread_of(4 / 3 * both, 4 / 3 * both))


def test_contestants_of_rotations_compute_the_same():
    case = rotations.Case("", 5, head_dim=12, heads=2, grid=(3, 2), init_scale=1.0)
    positions, generators = case.positions(), case.generators()
    layer = next(rotations.position_rotations(positions, generators))
    X = rotations.skew_at_positions(positions, generators[0])
    assert layer.shape == X.shape
    torch.testing.assert_close(layer, torch.matrix_exp(X))


@pytest.mark.parametrize("case", [*rotations.CASES, *rotations.QUICK_CASES], ids=lambda case: case.name)
def test_cases_of_rotations_make_sense(case):
    generators = case.generators()
    assert generators.shape[1:3] == (case.positions().shape[-1], case.heads)
    assert torch.equal(generators, -generators.mT)
    assert generators.dtype == case.positions().dtype == case.dtype


def test_step(monkeypatch, clock):
    monkeypatch.setattr(step, "SITUATIONS", [step.Situation(8, 4, 2, depth=1)])
    answer = step.measure(Settings(rounds=2))
    has_timm = importlib.util.find_spec("timm") is not None
    placed = [f"{encoding} placed" for encoding in step.PLACED]
    own = [*step.ENCODINGS, *placed]
    assert [row["model"] for row in answer.rows[: len(own)]] == own
    assert len(answer.rows) == len(own) + 2 * has_timm
    assert [row["model"] for row in answer.rows if row["placement"]] == placed
    for row in answer.rows:
        if row["placement"]:
            assert row["placement"]["shift"] == 1.75
            assert f"{row['placement']['of']} placed" == row["model"]
            place, twin = (own.index(name) + 1 for name in (row["model"], row["placement"]["of"]))
            assert row["placement"]["ratio"] == approx(spread_of(place / twin, place / twin))
    for part in ("train", "inference"):
        for place, row in enumerate(answer.rows, start=1):
            assert row[part]["seconds"] == approx(spread_of(place, 1.1 * place))
            assert row[part]["ratio"] == approx(spread_of(place, place))
    parameters = {row["model"]: row["parameters"] for row in answer.rows}
    assert parameters.get("timm absolute", parameters["absolute"]) == parameters["absolute"]


def test_a_placed_step_is_compared_with_the_same_encoding():
    result = Race("absolute", {"absolute": [1.0, 1.0], "liere8": [2.0, 4.0], "liere8 placed": [3.0, 6.0]})
    assert step._placement(result, "liere8 placed", "liere8")["ratio"]["median"] == 1.5
    assert step._placement(result, "liere8", None) is None


def test_seven_rounds_of_placed_steps_cover_the_range_of_offsets():
    drawn = []
    call = step._with_draws(lambda: drawn.append((7 * torch.rand(2)).long().tolist()))
    before = torch.get_rng_state()
    for _ in range(8):  # and one to warm up
        call()
    assert torch.equal(torch.get_rng_state(), before)
    assert drawn[0] == drawn[7]
    assert [sorted(axis) for axis in zip(*drawn[1:], strict=True)] == [list(range(7))] * 2


def test_the_draws_of_a_placed_step_are_those_of_its_positions(monkeypatch):
    """The offset is the first random draw of a forward pass."""
    situation = step.Situation(32, 4, 1, depth=1)
    model = step._own_model("liere8", situation, position_shift=step.SHIFT).train()
    moved = []
    monkeypatch.setattr(model.encoding, "embed", lambda tokens, positions, grid: moved.append(positions) or tokens)
    images, _ = step.random_batch(1, 32, num_classes=2)
    call = step._with_draws(lambda: model(images))
    for _ in step.PLACEMENT_SEEDS:
        call()
    drawn = [torch.rand(2, generator=torch.Generator().manual_seed(seed)) for seed in step.PLACEMENT_SEEDS]
    steps = [(7 * positions[0]).round() for positions in moved]  # 0 to 12
    assert torch.equal(torch.stack(steps), (13 * torch.stack(drawn)).floor())


def test_step_says_that_timm_is_missing(monkeypatch):
    monkeypatch.setattr(step, "SITUATIONS", [step.Situation(8, 4, 1, depth=1)])
    monkeypatch.setattr(step, "ENCODINGS", ("absolute", "none"))
    monkeypatch.setitem(sys.modules, "timm", None)
    answer = step.measure(Settings(rounds=1))
    assert [row["model"] for row in answer.rows] == ["absolute", "none"]
    assert answer.notes == ["timm is not installed, so its models are left out: pip install 'liere[timm]'"]


def test_memory_is_that_of_processes_of_their_own(monkeypatch):
    situation = memory.Situation("tiny", 2, ("absolute", "liere8 recompute"), TINY)
    monkeypatch.setattr(memory, "SITUATIONS", [situation])
    ballast = torch.ones(2**28)  # 1 GB that only this process has
    answer = memory.measure(Settings())
    assert peak_memory() > ballast.nbytes
    assert [row["model"] for row in answer.rows] == ["absolute", "liere8 recompute"]
    for row in answer.rows:
        assert 2**26 < row["before_bytes"]["median"] <= row["peak_bytes"]["median"]
        if sys.platform == "linux":
            assert row["peak_bytes"]["median"] < ballast.nbytes
        assert row["step_bytes"]["median"] == row["peak_bytes"]["median"] - row["before_bytes"]["median"]
    assert answer.rows[0]["ratio"]["median"] == 1


def test_memory_names_the_model_that_failed(monkeypatch):
    monkeypatch.setattr(memory, "SITUATIONS", [memory.Situation("bad", 1, ("leire8",), TINY)])
    with pytest.raises(OSError, match=r"'leire8'.*did you mean 'liere8'"):
        memory.measure(Settings())


def test_the_volume_of_the_memory_question_has_785_tokens():
    volume = memory.VOLUMES
    patches = 1
    for side, patch in zip(volume["image_size"], volume["patch_size"], strict=True):
        patches *= side // patch
    assert patches + 1 == 785


def test_the_probe_takes_steps_of_any_number_of_axes():
    model = TINY | {"image_size": [8, 8, 8], "in_channels": 1, "encoding": "liere8", "recompute": True}
    found = probe(Load(1, model, threads=torch.get_num_threads()))
    assert 0 < found["before"] <= found["peak"]


def test_loading(clock):
    pytest.importorskip("torchvision")
    answer = loading.measure(Settings(quick=True, rounds=2))
    assert [row["case"] for row in answer.rows] == [
        "train step",
        "CIFAR, as it is",
        "CIFAR, crop and flip",
        "CIFAR, crop, flip and RandAugment",
        "spatial task, 108 px",
    ]
    for place, row in enumerate(answer.rows, start=1):
        assert row["seconds"] == approx(spread_of(place, 1.1 * place))
        assert row["ratio"] == approx(spread_of(place, place))
        assert row["images_a_second"] == pytest.approx(16 / (1.05 * place))


def test_scaling(monkeypatch, clock):
    base = scaling.Setup((2, 2), batch_size=1)
    variations = {
        "tokens": [base, scaling.Setup((3, 2), batch_size=1)],
        "block size": [base, scaling.Setup((2, 2), block_size=2, batch_size=1)],
        "axes": [scaling.Setup((4,), batch_size=1), base],
        "batch size": [base],
    }
    monkeypatch.setattr(scaling, "VARIATIONS", variations)
    timed = []
    answer = scaling.measure(Settings(rounds=2, watch=lambda name, done, total: timed.append(name)))
    values = [(row["varied"], row["value"]) for row in answer.rows]
    assert values == [
        ("tokens", 4),
        ("tokens", 6),
        ("block size", 8),
        ("block size", 2),
        ("axes", 1),
        ("axes", 2),
        ("batch size", 1),
    ]
    assert len(set(timed)) == 4  # the base once
    for row in answer.rows:
        assert row["ratio"] == spread_of(2.0, 2.0)
        assert row["excess_seconds"] == approx(spread_of(1.0, 1.1))
        assert row["absolute_seconds"] == approx(spread_of(1.0, 1.1))
        assert row["liere_seconds"] == approx(spread_of(2.0, 2.2))


def test_every_variation_of_scaling_changes_one_quantity():
    for variations in (scaling.VARIATIONS, scaling.QUICK_VARIATIONS):
        for varied, setups in variations.items():
            assert len({scaling._value(varied, setup) for setup in setups}) == len(setups)
            if varied not in ("tokens", "axes"):
                assert len({setup.grid for setup in setups}) == 1
        assert len({setup.tokens for setup in variations["axes"]}) == 1


def test_points(monkeypatch, clock):
    monkeypatch.setattr(points, "SITUATION", points.Situation(2, 3, 1, dim=32, heads=2))
    monkeypatch.setattr(points, "LOADS", [RotationLoad("rope_mixed", 5), RotationLoad("liere8", 5)])
    found = {"rope_mixed": 3000, "liere8": 2500}
    monkeypatch.setattr(
        points, "run_probe", lambda load: {"before": 500, "peak": found[load.encoding], "tensors": 1000}
    )
    answer = points.measure(Settings(rounds=2))
    timed, weighed = answer.rows[:3], answer.rows[3:]
    assert [row["model"] for row in timed] == ["none", "rope_mixed", "liere8"]
    assert [row["ratio"]["median"] for row in timed] == pytest.approx([1, 2, 3])
    assert [row["to_rope_mixed"]["median"] for row in timed] == pytest.approx([0.5, 1, 1.5])
    assert timed[2]["parameters"] - timed[0]["parameters"] == 3 * 2 * 2 * 28
    assert [(row["model"], row["used_bytes"], row["memory"]["median"]) for row in weighed] == [
        ("rope_mixed", 2500, 2.5),
        ("liere8", 2000, 2.0),
    ]


def test_positions_of_points_matter_unless_there_are_none():
    clouds, labels = random_clouds(2, 5, num_classes=4)
    assert clouds.shape == (2, 5, 6)
    assert labels.shape == (2,)
    moved = clouds + torch.tensor([0.5, 0, 0.2, 0, 0, 0]) * torch.arange(5)[:, None]
    for encoding, differs in (("none", False), ("rope_mixed", True), ("liere8", True)):
        model = PointTransformer(encoding, dim=32, depth=2, heads=2, num_classes=4)
        assert model(clouds).shape == (2, 4)
        assert torch.allclose(model(clouds), model(moved), atol=1e-6) != differs
        assert torch.allclose(model(clouds)[1:], model(clouds[1:]), atol=1e-6)  # each cloud has its own positions


def test_the_probe_rotates_many_tokens_in_little_memory():
    found = memory.run_probe(RotationLoad("liere8", 20_000, threads=torch.get_num_threads()))
    tensors = 4 * 20_000 * 8 * 64 * 4
    assert found["tensors"] == tensors
    if sys.platform == "linux":
        # The rotations alone would take twice the tensors; kept buffers and torch itself take some more.
        assert found["peak"] - found["before"] < 3 * tensors + 2**27
    small = probe_rotation(RotationLoad("rope_mixed", 10))
    assert 0 < small["before"] <= small["peak"]


@pytest.mark.parametrize(
    ("settings", "rounds"), [(Settings(), 7), (Settings(quick=True), 3), (Settings(quick=True, rounds=5), 5)]
)
def test_rounds_are_those_asked_for_or_the_questions(settings, rounds):
    assert settings.choose_rounds(full=7, quick=3) == rounds
