from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
import liere
from liere.runs.optimizer_config import OptimizerConfig
from liere.training.optimizer import learning_rate_factor, make_optimizer

SIZE = {"image_size": 24, "patch_size": 12, "num_classes": 4, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}


def groups(model: torch.nn.Module, config: OptimizerConfig) -> dict[str, tuple[float, float]]:
    """Return learning rate and weight decay of every parameter."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = [
        (names[id(parameter)], (group["lr"], group["weight_decay"]))
        for group in make_optimizer(model, config).param_groups
        for parameter in group["params"]
    ]
    assert len(found) == len(dict(found)) == len(names)
    return dict(found)


class TestSchedule:
    @given(step=st.integers(0, 299), warmup=st.integers(0, 320))
    def test_it_rises_in_a_line_and_falls_in_half_a_cosine(self, step, warmup):
        factor = learning_rate_factor(step, total_steps=300, warmup_steps=warmup)
        if step < warmup:
            assert factor == pytest.approx((step + 1) / (warmup + 1))
        else:
            angle = (step - warmup) / (300 - warmup) * 180
            assert factor == pytest.approx(math.cos(math.radians(angle / 2)) ** 2)

    def test_the_rate_is_never_0_and_once_full(self):
        for warmup in (0, 1, 5):
            factors = [learning_rate_factor(step, total_steps=50, warmup_steps=warmup) for step in range(50)]
            assert min(factors) > 0
            assert factors[warmup] == 1
            assert factors[: warmup + 1] == sorted(factors[: warmup + 1])
            assert factors[warmup:] == sorted(factors[warmup:], reverse=True)
            assert max(factors) == 1

    def test_it_falls_below_a_thousandth_in_the_end(self):
        assert learning_rate_factor(99, total_steps=100, warmup_steps=10) < 1e-3
        assert learning_rate_factor(100, total_steps=100, warmup_steps=10) == pytest.approx(0)

    def test_a_run_that_ends_in_its_warm_up_is_no_error(self):
        assert learning_rate_factor(1, total_steps=2, warmup_steps=10) == pytest.approx(2 / 11)
        assert learning_rate_factor(0, total_steps=1, warmup_steps=0) == 1


class TestGroups:
    @pytest.mark.parametrize("encoding", ["liere8", "rope_mixed", "absolute", "visionllama", "none"])
    def test_matrices_decay_and_nothing_else_does(self, encoding):
        model = liere.create_model(None, encoding=encoding, num_registers=1, **SIZE)
        config = OptimizerConfig(weight_decay=0.3)
        linear = {f"{name}.weight" for name, part in model.named_modules() if isinstance(part, torch.nn.Linear)}
        for name, (rate, decay) in groups(model, config).items():
            assert rate == 1e-4
            assert decay == (0.3 if name in linear else 0.0), name

    @pytest.mark.parametrize(("encoding", "count"), [("liere8", 1), ("rope_mixed", 1), ("absolute", 0)])
    def test_generators_have_a_learning_rate_of_their_own(self, encoding, count):
        model = liere.create_model(None, encoding=encoding, **SIZE)
        found = groups(model, OptimizerConfig(learning_rate=1e-3, generator_learning_rate=7e-5, weight_decay=0.1))
        special = {name: values for name, values in found.items() if values[0] != 1e-3}
        assert len(special) == count
        assert all(name.startswith("encoding.") and values == (7e-5, 0.0) for name, values in special.items())

    def test_without_one_generators_have_that_of_all(self):
        model = liere.create_model(None, encoding="liere8", **SIZE)
        assert {rate for rate, _ in groups(model, OptimizerConfig(learning_rate=0.5)).values()} == {0.5}

    def test_decay_is_decoupled_and_adams_numbers_are_passed_on(self):
        model = liere.create_model(None, encoding="none", **SIZE)
        optimizer = make_optimizer(model, OptimizerConfig(betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1))
        assert isinstance(optimizer, torch.optim.AdamW)
        assert all((group["betas"], group["eps"]) == ((0.8, 0.95), 1e-6) for group in optimizer.param_groups)
        weight, bias = model.head.weight, model.head.bias
        before = weight.detach().clone(), bias.detach().clone()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        torch.testing.assert_close(weight.detach(), before[0] * (1 - 1e-4 * 0.1), rtol=1e-6, atol=0)
        assert torch.equal(bias, before[1])


class TestMuon:
    @pytest.mark.parametrize("encoding", ["liere8", "absolute"])
    def test_matrices_of_the_layers_are_muons_and_nothing_else_is(self, encoding):
        model = liere.create_model(None, encoding=encoding, **SIZE)
        config = OptimizerConfig(name="muon", learning_rate=1e-3, matrix_learning_rate=0.03, weight_decay=0.1)
        rates = groups(model, config)
        blocks = {
            id(parameter): group["matrix_blocks"]
            for group in make_optimizer(model, config).param_groups
            for parameter in group["params"]
        }
        inside = {
            name for name, _ in model.named_parameters() if name.startswith("blocks.") and name.endswith(".weight")
        }
        inside -= {name for name in inside if "norm" in name}
        assert len(inside) == 2 * 4
        for name, parameter in model.named_parameters():
            assert blocks[id(parameter)] == (0 if name not in inside else 3 if "qkv" in name else 1)
            assert rates[name][0] == (0.03 if name in inside else 1e-3)
        assert rates["blocks.0.attention.qkv.weight"] == (0.03, 0.1)

    def test_queries_keys_and_values_can_be_left_to_adam(self):
        model = liere.create_model(None, encoding="liere8", **SIZE)
        everything, some = (
            OptimizerConfig(name="muon", learning_rate=1e-3, weight_decay=0.1, muon_for_qkv=flag)
            for flag in (True, False)
        )
        before, after = groups(model, everything), groups(model, some)
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {f"blocks.{layer}.attention.qkv.weight" for layer in range(2)}
        assert {after[name] for name in changed} == {(1e-3, 0.1)}
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        for group in make_optimizer(model, some).param_groups:
            if any("qkv" in names[id(parameter)] for parameter in group["params"]):
                assert group["matrix_blocks"] == 0

    def test_generators_keep_a_learning_rate_of_their_own(self):
        model = liere.create_model(None, encoding="liere8", **SIZE)
        found = groups(model, OptimizerConfig(name="muon", generator_learning_rate=7e-5))
        assert {rate for name, (rate, _) in found.items() if "generators" in name} == {7e-5}


class TestFusedAdam:
    def test_it_is_adamw_up_to_rounding(self):
        torch.manual_seed(0)
        model = liere.create_model(None, encoding="liere8", **SIZE)
        other = liere.create_model(None, encoding="liere8", **SIZE)
        other.load_state_dict(model.state_dict())
        config = OptimizerConfig(learning_rate=1e-2, weight_decay=0.1, betas=(0.8, 0.95))
        ours = make_optimizer(model, config)
        theirs = torch.optim.AdamW(
            [{**group, "params": [], "fused": False} for group in ours.param_groups], betas=(0.8, 0.95)
        )
        twins = dict(zip(model.parameters(), other.parameters(), strict=True))
        for mine, group in zip(ours.param_groups, theirs.param_groups, strict=True):
            group["params"] = [twins[parameter] for parameter in mine["params"]]
        for _ in range(5):
            for parameter, twin in twins.items():
                parameter.grad = torch.randn_like(parameter)
                twin.grad = parameter.grad.clone()
            ours.step()
            theirs.step()
        for parameter, twin in twins.items():
            torch.testing.assert_close(parameter, twin, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("name", ["adam", "muon"])
    def test_gradients_can_be_clipped_in_mixed_precision(self, name):
        """Lightning refuses to clip for optimizers that unscale gradients themselves."""
        pytest.importorskip("tests.training.requirements")
        from liere.optional.lightning_import import import_lightning

        import_lightning()
        from lightning.fabric.plugins.precision.amp import _optimizer_handles_unscaling

        optimizer = make_optimizer(liere.create_model(None, encoding="liere8", **SIZE), OptimizerConfig(name=name))
        assert all(group["fused"] for group in optimizer.param_groups)
        assert not _optimizer_handles_unscaling(optimizer)
