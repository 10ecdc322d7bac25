from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from liere.training.muon import COEFFICIENTS, ITERATIONS, Muon, orthogonalize

MOMENTUM, RATE, DECAY = 0.95, 0.03, 0.2


def slow_orthogonalize(matrix: torch.Tensor) -> torch.Tensor:
    """Return the matrix with the quintic applied to its singular values, in fp64."""
    a, b, c = COEFFICIENTS
    u, s, vh = torch.linalg.svd(matrix.double(), full_matrices=False)
    s = s / max(float(s.norm()), 1e-7)
    for _ in range(ITERATIONS):
        s = a * s + b * s**3 + c * s**5
    return u @ torch.diag(s) @ vh


def slow_matrix(start: torch.Tensor, gradients: list[torch.Tensor], blocks: int) -> torch.Tensor:
    """Return a matrix after some steps of Muon, computed block by block in fp64."""
    weight, momentum = start.double(), torch.zeros_like(start).double()
    for gradient in gradients:
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * gradient
        looked_ahead = MOMENTUM * momentum + (1 - MOMENTUM) * gradient
        rows = start.shape[0] // blocks
        for first in range(0, start.shape[0], rows):
            part = slice(first, first + rows)
            scale = RATE * max(1, rows / start.shape[1]) ** 0.5
            weight[part] = (1 - RATE * DECAY) * weight[part] - scale * slow_orthogonalize(looked_ahead[part])
    return weight


class TestOrthogonalize:
    @given(rows=st.integers(1, 9), columns=st.integers(1, 9), size=st.floats(-6, 6), seed=st.integers(0, 2**31))
    def test_singular_values_follow_the_quintic_and_vectors_stay(self, rows, columns, size, seed):
        torch.manual_seed(seed)
        matrix = 10**size * torch.randn(rows, columns, dtype=torch.float64)
        torch.testing.assert_close(orthogonalize(matrix), slow_orthogonalize(matrix), rtol=0, atol=1e-11)

    def test_in_fp32(self):
        matrix = torch.randn(64, 192)
        torch.testing.assert_close(orthogonalize(matrix).double(), slow_orthogonalize(matrix), rtol=0, atol=2e-5)

    def test_singular_values_come_near_1(self):
        found = torch.linalg.svdvals(orthogonalize(torch.diag(torch.logspace(-2, 0, 20, dtype=torch.float64))))
        assert found.min() > 0.6
        assert found.max() < 1.3

    @given(rows=st.integers(1, 6), columns=st.integers(1, 6), seed=st.integers(0, 2**31))
    def test_a_batch_is_that_of_its_members(self, rows, columns, seed):
        torch.manual_seed(seed)
        matrices = torch.randn(2, 3, rows, columns, dtype=torch.float64)
        for found, matrix in zip(orthogonalize(matrices).flatten(0, 1), matrices.flatten(0, 1), strict=True):
            torch.testing.assert_close(found, slow_orthogonalize(matrix), rtol=0, atol=1e-11)

    def test_a_gradient_of_zeros_moves_nothing(self):
        assert torch.equal(orthogonalize(torch.zeros(3, 4)), torch.zeros(3, 4))


class TestSteps:
    @settings(deadline=None)
    @given(rows=st.integers(1, 5), columns=st.integers(1, 6), blocks=st.integers(1, 3), seed=st.integers(0, 2**31))
    def test_matrices_follow_the_slow_reference(self, rows, columns, blocks, seed):
        torch.manual_seed(seed)
        start = torch.randn(rows * blocks, columns, dtype=torch.float64)
        gradients = [torch.randn_like(start) for _ in range(4)]
        weight = torch.nn.Parameter(start.clone())
        group = {"params": [weight], "matrix_blocks": blocks, "lr": RATE, "weight_decay": DECAY}
        optimizer = Muon([group], momentum=MOMENTUM)
        for gradient in gradients:
            weight.grad = gradient
            optimizer.step()
        torch.testing.assert_close(weight.detach(), slow_matrix(start, gradients, blocks), rtol=0, atol=1e-10)

    def test_matrices_of_several_shapes_and_groups_each_follow_the_reference(self):
        """Those of the same shape are orthogonalized together; a matrix without a gradient stays."""
        torch.manual_seed(0)
        shapes = [(1, (4, 4)), (3, (12, 4)), (1, (4, 4)), (1, (8, 4)), (2, (8, 8)), (1, (4, 8)), (1, (4, 4))]
        starts = [torch.randn(shape, dtype=torch.float64) for _, shape in shapes]
        weights = [torch.nn.Parameter(start.clone()) for start in starts]
        groups: dict[int, list[torch.nn.Parameter]] = {}
        for (blocks, _), weight in zip(shapes, weights, strict=True):
            groups.setdefault(blocks, []).append(weight)
        optimizer = Muon(
            [
                {"params": params, "matrix_blocks": blocks, "lr": RATE, "weight_decay": DECAY}
                for blocks, params in groups.items()
            ],
            momentum=MOMENTUM,
        )
        gradients = [[torch.randn_like(start) for _ in range(3)] for start in starts]
        for step in range(3):
            for weight, own in zip(weights[:-1], gradients, strict=False):
                weight.grad = own[step]
            optimizer.step()
        for (blocks, _), start, weight, own in zip(shapes[:-1], starts, weights, gradients, strict=False):
            torch.testing.assert_close(weight.detach(), slow_matrix(start, own, blocks), rtol=0, atol=1e-10)
        assert torch.equal(weights[-1], starts[-1])

    def test_everything_else_is_adams_to_the_bit(self):
        torch.manual_seed(0)
        ours, theirs = (torch.nn.Parameter(torch.ones(7)) for _ in range(2))
        matrix = torch.nn.Parameter(torch.randn(4, 3))
        options = {"betas": (0.8, 0.95), "eps": 1e-6}
        muon = Muon([{"params": [matrix], "matrix_blocks": 1}, {"params": [ours], "lr": 0.1}], **options)
        adam = torch.optim.AdamW([{"params": [theirs], "lr": 0.1}], **options)
        for _ in range(5):
            ours.grad = theirs.grad = torch.randn(7)
            matrix.grad = torch.randn(4, 3)
            muon.step()
            adam.step()
        assert torch.equal(ours, theirs)

    def test_a_parameter_without_gradient_is_left_alone(self):
        weight = torch.nn.Parameter(torch.ones(2, 2))
        Muon([{"params": [weight], "matrix_blocks": 1, "weight_decay": 0.5}]).step()
        assert torch.equal(weight, torch.ones(2, 2))

    def test_a_loaded_state_goes_on_to_the_bit(self):
        def make() -> tuple[torch.nn.Linear, Muon]:
            torch.manual_seed(1)
            layer = torch.nn.Linear(3, 6)
            groups = [{"params": [layer.weight], "matrix_blocks": 2, "lr": RATE}, {"params": [layer.bias]}]
            return layer, Muon(groups, momentum=0.8)

        def steps(layer: torch.nn.Linear, optimizer: Muon, inputs: list[torch.Tensor]) -> None:
            for x in inputs:
                optimizer.zero_grad()
                layer(x).square().sum().backward()
                optimizer.step()

        inputs = [torch.randn(5, 3) for _ in range(6)]
        straight, optimizer = make()
        steps(straight, optimizer, inputs)
        first, optimizer = make()
        steps(first, optimizer, inputs[:3])
        second, resumed = make()
        second.load_state_dict(first.state_dict())
        resumed.load_state_dict(optimizer.state_dict())
        steps(second, resumed, inputs[3:])
        assert torch.equal(second.weight, straight.weight)
        assert torch.equal(second.bias, straight.bias)

    def test_a_closure_sees_all_groups_and_its_loss_is_returned(self):
        def make() -> tuple[torch.nn.Linear, Muon]:
            torch.manual_seed(1)
            layer = torch.nn.Linear(3, 6)
            return layer, Muon([{"params": [layer.weight], "matrix_blocks": 1, "lr": RATE}, {"params": [layer.bias]}])

        inputs = [torch.randn(5, 3) for _ in range(3)]
        plain, optimizer = make()
        for x in inputs:
            optimizer.zero_grad()
            plain(x).square().sum().backward()
            optimizer.step()
        closed, optimizer = make()
        for x in inputs:

            def closure(x: torch.Tensor = x) -> float:
                optimizer.zero_grad()
                loss = closed(x).square().sum()
                loss.backward()
                return loss.item()

            assert optimizer.step(closure) > 0
        assert torch.equal(closed.weight, plain.weight)
        assert torch.equal(closed.bias, plain.bias)

    def test_hooks_run_once_per_step(self):
        torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))])  # constructing it makes torch hook the class
        weight, calls = torch.nn.Parameter(torch.ones(2, 2)), []
        optimizer = Muon([{"params": [weight], "matrix_blocks": 1}])
        optimizer.register_step_post_hook(lambda *_: calls.append(1))
        optimizer.step()
        assert len(calls) == 1

    def test_groups_may_be_added_and_their_parameters_iterators(self):
        first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        optimizer = Muon([{"params": (p for p in [first.weight]), "matrix_blocks": 1, "lr": RATE}], lr=0.5)
        optimizer.add_param_group({"params": second.weight})
        for weight in (first.weight, second.weight):
            weight.grad = torch.ones(2, 2)
        before = first.weight.detach().clone(), second.weight.detach().clone()
        optimizer.step()
        assert (first.weight - before[0]).norm() <= RATE * 1.3  # rank one: only one direction moves
        torch.testing.assert_close(second.weight.detach(), before[1] * (1 - 0.5 * 0.01) - 0.5)  # Adam's first step

    @pytest.mark.parametrize("blocks", [-1, 1.5, "3"])
    def test_wrong_numbers_of_blocks_are_refused(self, blocks):
        with pytest.raises(ValueError, match=f"matrix_blocks must be 0 .*, got {blocks!r}"):
            Muon([{"params": [torch.nn.Parameter(torch.ones(2, 2))], "matrix_blocks": blocks}])

    @pytest.mark.parametrize(("shape", "blocks"), [((4,), 1), ((4, 3), 3), ((2, 2, 2), 1)])
    def test_what_is_no_matrix_of_blocks_is_refused(self, shape, blocks):
        with pytest.raises(ValueError, match=rf"matrix_blocks={blocks}.*{list(shape)}".replace("[", r"\[")):
            Muon([{"params": [torch.nn.Parameter(torch.ones(shape))], "matrix_blocks": blocks}])
