"""Data sheets of GPUs, for estimates of training times."""

from __future__ import annotations

from dataclasses import dataclass

from liere.errors import InputError, suggest

__all__ = ["DEFAULT_GPU", "SHEETS", "UTILIZATION", "Gpu", "choose_gpu"]


@dataclass(frozen=True)
class Gpu:
    """The peak speed of a GPU and the share of it that training reaches.

    Attributes:
        name: Its name.
        peak: Floating-point operations per second by precision, as `hardware.precision` names it; dense products,
            without sparsity.
        utilization: Share of the peak that training reaches.
    """

    name: str
    peak: dict[str, float]
    utilization: float

    def speed(self, precision: str) -> float:
        """Return the operations per second that training does.

        Example:
            >>> f"{choose_gpu('l40').speed('32') / 1e12:.0f} T"
            '20 T'
        """
        return self.utilization * self.peak[precision]

    def describe(self, precision: str) -> str:
        """Return the assumption as text."""
        kind = {"32": "fp32", "bf16-mixed": "bf16"}[precision]
        return (
            f"{self.name}, {self.peak[precision] / 1e12:g} T operations per second in {kind}, of which training "
            f"reaches {100 * self.utilization:.0f} %"
        )


# Operations per second, from NVIDIA's data sheets: in fp32 without TF32, as torch multiplies by default.
SHEETS = {
    "l4": ("L4", {"32": 30.3e12, "bf16-mixed": 121e12}),
    "l40": ("L40", {"32": 90.5e12, "bf16-mixed": 181e12}),
    "a100": ("A100 SXM", {"32": 19.5e12, "bf16-mixed": 312e12}),
    "h100": ("H100 SXM", {"32": 67e12, "bf16-mixed": 989e12}),
}
DEFAULT_GPU = "l40"
UTILIZATION = 0.22
"""That of the paper: its ImageNet runs, 28 E operations, took two days on 8 L40."""


def choose_gpu(name: str | None = None, *, tflops: float | None = None, utilization: float | None = None) -> Gpu:
    """Return a GPU by name, or one with a given peak speed.

    Args:
        name: Name of a data sheet; None for the GPU of the paper.
        tflops: Peak speed in 1e12 operations per second, instead of a data sheet, for every precision.
        utilization: Share of the peak that training reaches; None for the paper's.

    Raises:
        ValueError: If the name is unknown, both a name and a speed are given, or a number is out of range.
    """
    share = UTILIZATION if utilization is None else utilization
    if not 0 < share <= 1:
        raise InputError(f"--utilization must be above 0 and at most 1, got {share:g}: use for example 0.3")
    if tflops is not None:
        if name is not None:
            raise InputError(f"--gpu {name} and --gpu-tflops {tflops:g} are both given: choose one")
        if tflops <= 0:
            raise InputError(f"--gpu-tflops must be above 0, got {tflops:g}: use for example 100")
        return Gpu("GPU", dict.fromkeys(SHEETS[DEFAULT_GPU][1], 1e12 * tflops), share)
    name = DEFAULT_GPU if name is None else name
    if name not in SHEETS:
        raise InputError(f"unknown GPU {name!r}: {suggest(name, SHEETS)}, or give its speed with --gpu-tflops")
    return Gpu(*SHEETS[name], share)
