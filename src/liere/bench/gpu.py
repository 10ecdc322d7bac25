"""What would a train step take on a GPU? Counted kernels, bytes and operations, and the least time for them.

Nothing is measured: the models run on a device that is not there. They are compared with two other ways to compute the
same rotations: `torch.matrix_exp` with torch's own gradient, and the algorithm of the published code, which also
applies the rotations with a batched product in which each example has its own copy of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor

from liere.bench.launches import TAYLOR_RADIUS, Launches, count_launches, fuse
from liere.bench.record import Answer, Settings
from liere.bench.roofline import GPUS, predict_seconds
from liere.encodings.liere import LieRE
from liere.generators import skew_at_positions
from liere.positions import grid_positions
from liere.presets import create_model
from liere.rotations import position_rotations, rotate_together

__all__ = ["ENCODINGS", "QUICK_SITUATIONS", "SITUATIONS", "Situation", "measure"]

ENCODINGS = ("absolute", "none", "sincos", "visionllama", "rope_mixed", "liere8", "liere64")
BLOCKS = (2, 8, 64)
NUM_CLASSES = 100
NOTES = [
    "PREDICTED, NOT MEASURED. The model of a GPU: each kernel takes the time of its operations at peak rate, or of its",
    "bytes at peak bandwidth, whichever is longer, plus 3 us to start. It omits caches, the low efficiency of small",
    "products, waits for the host (which only torch.matrix_exp has), Python's own time, and the optimizer.",
    "GPU rates: NVIDIA data sheets of the A100 80GB SXM and the H100 80GB SXM, without sparsity.",
]


@dataclass(frozen=True)
class Situation:
    """A train step.

    Attributes:
        size: Name of the model size.
        image_size: Side of the images, in pixels.
        patch_size: Side of a patch, in pixels.
        batch_size: Images of a step.
        dtype: Data type of weights and activations; rotations are computed in fp32.
        depth: Number of layers.
    """

    size: str
    image_size: int
    patch_size: int
    batch_size: int
    dtype: torch.dtype
    depth: int = 12

    @property
    def name(self) -> str:
        """Name of the situation in tables."""
        dtype = {torch.bfloat16: "bf16", torch.float32: "fp32"}[self.dtype]
        return f"{self.size}, {self.image_size} px, patch {self.patch_size}, batch {self.batch_size}, {dtype}"


SITUATIONS = [
    Situation("vit_base", 224, 16, 64, torch.bfloat16),
    Situation("vit_small", 32, 4, 512, torch.bfloat16),
]
QUICK_SITUATIONS = [Situation("vit_small", 32, 4, 64, torch.bfloat16, depth=2)]


def measure(settings: Settings) -> Answer:
    """Count a train step of every model in every situation, and predict its time."""
    rows: list[dict[str, Any]] = []
    for situation in QUICK_SITUATIONS if settings.quick else SITUATIONS:
        own: list[dict[str, Any]] = []
        models = [(name, "liere") for name in ENCODINGS]
        models += [(name, how) for how in WAYS if how != "liere" for name in ENCODINGS if name.startswith("liere")]
        for done, (encoding, how) in enumerate(models):
            settings.watch(situation.name, done, len(models))
            own.append(_count_step(situation, encoding, how))
        settings.watch(situation.name, len(models), len(models))
        rows += [row | {"ratio": _ratios(row, own[0])} for row in own]
    rows += [_count_forms(settings, block) for block in BLOCKS]
    return Answer(1, rows, NOTES)


def _ratios(row: dict[str, Any], base: dict[str, Any]) -> dict[str, float]:
    return {gpu: seconds / base["predicted_seconds"][gpu] for gpu, seconds in row["predicted_seconds"].items()}


def _count_step(situation: Situation, encoding: str, how: str) -> dict[str, Any]:
    with torch.device("meta"):
        model = create_model(
            situation.size,
            encoding=encoding,
            image_size=situation.image_size,
            patch_size=situation.patch_size,
            num_classes=NUM_CLASSES,
            depth=situation.depth,
        ).to(situation.dtype)
    squarings = _taylor_squarings(model.encoding, model.grid) if how != "liere" else 0.0

    def step(device: Launches) -> None:
        device.put(model)
        shape = situation.batch_size, 3, situation.image_size, situation.image_size
        images = torch.zeros(shape, device="cuda", dtype=situation.dtype)
        labels = torch.zeros(situation.batch_size, device="cuda", dtype=torch.int64)
        F.cross_entropy(model(images), labels).backward()

    with WAYS[how]():
        found = count_launches(step, operators=how == "liere", squarings=squarings)
    return {
        "part": "step",
        "situation": situation.name,
        **{key: value for key, value in dataclasses.asdict(situation).items() if key != "dtype"},
        "dtype": str(situation.dtype).removeprefix("torch."),
        "model": encoding,
        "how": how,
        "host_waits": found.host_waits,
        **_summary(found.kernels),
    }


def _summary(kernels: list[Any]) -> dict[str, Any]:
    return {
        "launches": len(kernels),
        "bytes": sum(kernel.bytes for kernel in kernels),
        "flops": sum(kernel.flops for kernel in kernels),
        "predicted_seconds": {gpu.name: predict_seconds(kernels, gpu) for gpu in GPUS},
    }


def _taylor_squarings(rope: Any, grid: tuple[int, ...]) -> float:
    """Return the mean number of squarings of `torch.matrix_exp` for new generators, by their 1-norm."""
    like = LieRE(rope.ndim, rope.head_dim, num_heads=2, block_size=rope.block_size)
    X = skew_at_positions(grid_positions(grid), like.skew_generators().detach())
    norms = X.abs().sum(-2).amax(-1)
    return float((norms / TAYLOR_RADIUS).log2().ceil().clamp(min=0).mean())


def _matrix_exp_rotations(positions: Tensor, generators: Tensor) -> Iterator[Tensor]:
    for layer in generators:
        yield torch.matrix_exp(skew_at_positions(positions.to(layer.dtype), layer))


def _rotate_by_matmul(xs: list[Tensor], rotations: Tensor, prefix: int) -> list[Tensor]:
    """Rotate as the published code does: one product for each vector of each example."""
    blocks, size = rotations.shape[-3], rotations.shape[-1]
    outs = []
    for x in xs:
        vectors = x[..., prefix:, :].unflatten(-1, (blocks, size))[..., None]
        rotated = (rotations.to(x.dtype) @ vectors).flatten(-3)
        outs.append(torch.cat([x[..., :prefix, :], rotated], dim=-2))
    return outs


def _with_matrix_exp() -> AbstractContextManager[Any]:
    return mock.patch("liere.encodings.rotary.position_rotations", _matrix_exp_rotations)


@contextmanager
def _as_published() -> Iterator[None]:
    with _with_matrix_exp(), mock.patch("liere.encodings.layer_rotation.rotate_together", _rotate_by_matmul):
        yield


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "liere": nullcontext,
    "torch.matrix_exp": _with_matrix_exp,
    "published": _as_published,
}


def _count_forms(settings: Settings, block: int) -> dict[str, Any]:
    """Count the rotations of a model, made and applied, as operators and as a compiler would fuse ordinary operations.

    `stored_bytes` is what the backward pass reads of what the forward pass wrote.
    """
    batch, heads, depth, grid, width = (4, 2, 2, (8, 8), 64) if settings.quick else (64, 12, 12, (14, 14), 64)

    def run(device: Launches) -> None:
        A = torch.zeros(depth, len(grid), heads, width // block, block, block, device="cuda", requires_grad=True)
        positions = device.tensor(grid_positions(grid))
        q = torch.zeros(batch, heads, len(positions), width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        outs = [x for R in position_rotations(positions, A) for x in rotate_together([q, q], R)]
        device.forward_kernels = len(device.kernels)
        torch.autograd.backward(outs, [torch.zeros_like(x) for x in outs])

    operators, plain = (count_launches(run, operators=operators) for operators in (True, False))
    return {
        "part": "forms",
        "situation": f"rotations of {depth} layers, {heads} heads of {width}, {grid} tokens, batch {batch}",
        "block_size": block,
        "operators": _summary(operators.kernels) | {"stored_bytes": operators.stored_bytes()},
        "fused": _summary(fuse(plain.kernels)) | {"stored_bytes": plain.stored_bytes()},
    }
