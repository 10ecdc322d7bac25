"""Rules for positions, and the memory of the last ones; the rule of RoPEs is compared with timm in test_rope.py."""

from __future__ import annotations

import copy
import pickle

import torch

from liere import grid_positions
from liere.integrations.position_rules import GridRule, PositionMemory, RopeRule

CPU = torch.device("cpu")


def test_the_rule_of_this_library():
    rule = GridRule((3, 5))
    positions = rule.of_grid((4, 4), CPU, torch.float32)
    assert torch.equal(positions, grid_positions((4, 4), reference_shape=(3, 5)))
    assert torch.equal(positions[-1], torch.tensor([1.5, 0.75]))
    cells = torch.tensor([[[0, 0], [2, 4], [3, 3]]])
    assert torch.equal(rule.of_patches(cells, torch.float32), torch.tensor([[[0, 0], [1, 1], [1.5, 0.75]]]))
    assert rule.augment(positions) is positions
    assert torch.equal(GridRule((1, 1)).of_patches(cells, torch.float32), cells.float())


def test_rules_of_patches_take_the_size_of_each_image():
    rule = RopeRule("centered")
    cells = torch.tensor([[[0, 0], [0, 1], [1, 0], [1, 1]], [[0, 0], [0, 1], [0, 2], [0, 3]]])
    found = rule.of_patches(cells, torch.float64)
    for number, grid in enumerate([(2, 2), (1, 4)]):
        torch.testing.assert_close(found[number], rule.of_grid(grid, CPU, torch.float64))


def test_a_pixel_rule_of_one_patch():
    assert torch.equal(RopeRule("pixel").of_grid((1, 2), CPU, torch.float32), torch.tensor([[-1.0, -1.0], [-1.0, 1.0]]))


def test_the_same_tensor_is_returned_while_nothing_changes():
    memory, rule = PositionMemory(), GridRule((3, 3))
    first = memory.of_grid(rule, (3, 3), CPU, torch.float32)
    assert memory.of_grid(rule, (3, 3), CPU, torch.float32) is first
    assert memory.of_grid(GridRule((3, 4)), (3, 3), CPU, torch.float32) is not first
    assert memory.of_grid(rule, (3, 3), CPU, torch.float64).dtype == torch.float64
    again = memory.of_grid(rule, (3, 3), CPU, torch.float32)
    again.add_(1)  # somebody writes to it
    assert torch.equal(memory.of_grid(rule, (3, 3), CPU, torch.float32), first)


def test_what_is_remembered_in_inference_mode_serves_training():
    memory, rule = PositionMemory(), GridRule((3, 3))
    with torch.inference_mode():
        memory.of_grid(rule, (3, 3), CPU, torch.float32)
    assert not memory.of_grid(rule, (3, 3), CPU, torch.float32).is_inference()


def test_copies_begin_empty():
    memory = PositionMemory()
    first = memory.of_grid(GridRule((3, 3)), (3, 3), CPU, torch.float32)
    for other in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert other.of_grid(GridRule((3, 3)), (3, 3), CPU, torch.float32) is not first
