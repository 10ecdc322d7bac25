"""Data sheets of GPUs."""

from __future__ import annotations

import pytest

from liere.errors import InputError
from liere.reproduce.gpu_sheets import SHEETS, choose_gpu


def test_the_default_is_the_papers_gpu_at_the_papers_speed():
    assert choose_gpu().name == "L40"
    days = 28e18 / (8 * choose_gpu().speed("32")) / 86_400
    assert days == pytest.approx(2, rel=0.03)  # an ImageNet run, according to the paper


@pytest.mark.parametrize("name", SHEETS)
def test_a_data_sheet_has_a_speed_for_each_precision(name):
    gpu = choose_gpu(name, utilization=0.5)
    assert gpu.speed("bf16-mixed") > gpu.speed("32") == 0.5 * gpu.peak["32"]
    assert "of which training reaches 50 %" in gpu.describe("bf16-mixed")


def test_a_speed_instead_of_a_data_sheet():
    gpu = choose_gpu(tflops=200, utilization=0.25)
    assert gpu.speed("32") == gpu.speed("bf16-mixed") == 50e12
    assert gpu.describe("32") == "GPU, 200 T operations per second in fp32, of which training reaches 25 %"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("h10", {}, "unknown GPU 'h10': did you mean 'h100'?"),
        ("h100", {"tflops": 100.0}, "--gpu h100 and --gpu-tflops 100 are both given: choose one"),
        (None, {"tflops": 0.0}, "--gpu-tflops must be above 0, got 0"),
        (None, {"utilization": 1.5}, "--utilization must be above 0 and at most 1, got 1.5"),
        (None, {"utilization": float("nan")}, "--utilization must be above 0 and at most 1, got nan"),
    ],
)
def test_errors(name, options, message):
    with pytest.raises(InputError) as raised:
        choose_gpu(name, **options)
    assert message in str(raised.value)
