"""What a run is: data, model, optimiser, training and hardware, with every field checked before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import torch

from liere.data import SpatialReasoning
from liere.presets import create_model, image_and_patch
from liere.vit import VisionTransformer, grid_shape

try:
    import yaml
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
    from pydantic.fields import FieldInfo
except ImportError:
    raise ImportError("training needs more packages: pip install 'liere[train]'") from None

__all__ = [
    "DataConfig",
    "HardwareConfig",
    "ModelConfig",
    "OptimizerConfig",
    "RunConfig",
    "TrainingConfig",
    "config_fields",
]

Whole = Annotated[int, Field(strict=True)]
Count = Annotated[Whole, Field(ge=1)]
CountOrZero = Annotated[Whole, Field(ge=0)]
Seed = Annotated[Whole, Field(ge=0, lt=2**63)]
Real = Annotated[float, Field(strict=True)]
Rate = Annotated[Real, Field(ge=0, lt=1)]
Positive = Annotated[Real, Field(gt=0)]
Switch = Annotated[bool, Field(strict=True)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class DataConfig(_Section):
    """The spatial reasoning task, `liere.data.SpatialReasoning`."""

    name: Literal["spatial"] = "spatial"
    """data set"""
    size: Count = 108
    """side of the training images, px"""
    seed: Seed = 0
    """seed of the data set (training.seed orders it)"""
    train_examples: Count = 800_000
    """how many different training examples there are"""
    distance: Whole | tuple[Whole, Whole] = 1
    """cells from the Y to its target, or a range like [1, 4]"""
    distractor_arrows: CountOrZero = 7
    """arrows besides the target"""
    distractor_letters: CountOrZero = 5
    """letters besides the Y"""
    colours: Literal["black", "random"] = "black"
    """inks"""

    @property
    def mean(self) -> float:
        """Of the pixels of the data set, in [0, 1]."""
        return SpatialReasoning.mean

    @property
    def std(self) -> float:
        """Standard deviation of the pixels of the data set, in [0, 1]."""
        return SpatialReasoning.std

    @property
    def num_classes(self) -> int:
        """Classes of the data set."""
        return len(SpatialReasoning.classes)

    def load(self, split: str, *, size: int | None = None, length: int | None = None) -> SpatialReasoning:
        """Return a split, at another size if asked for."""
        return SpatialReasoning(
            self.size if size is None else size,
            split,
            self.seed,
            self.train_examples if length is None and split == "train" else length,
            distance=self.distance,
            distractor_arrows=self.distractor_arrows,
            distractor_letters=self.distractor_letters,
            colours=self.colours,
        )


class ModelConfig(_Section):
    """The vision transformer, `liere.create_model`."""

    encoding: str = "liere"
    """position encoding: absolute, visionllama, rope_mixed, liere8, liere (dense), ..."""
    options: dict[str, Any] = {}
    """options of the encoding, like {share_heads: true}"""
    size: str | None = None
    """vit_tiny ... vit_huge, or null with all four dimensions"""
    dim: Count | None = None
    """width of a token"""
    depth: Count | None = None
    """layers"""
    heads: Count | None = None
    """attention heads"""
    mlp_dim: Count | None = None
    """width of the MLPs"""
    patch_size: Count = 12
    """side of a patch, px"""
    pool: Literal["cls", "mean"] = "cls"
    """what the classifier looks at"""
    dropout: Rate = 0.0
    """of embedded tokens, attention outputs and MLPs"""
    attn_dropout: Rate = 0.0
    """of attention probabilities"""
    drop_path: Rate = 0.0
    """stochastic depth of the last layer"""
    num_registers: CountOrZero = 0
    """register tokens"""
    qk_norm: Switch = False
    """whether queries and keys are normalised before they are rotated"""
    qkv_bias: Switch = False
    """whether queries, keys and values have biases"""
    position_policy: Literal["extend", "rescale", "reference"] = "extend"
    """positions at other resolutions"""

    def build(self, *, image_size: int, num_classes: int) -> VisionTransformer:
        """Make the model; its weights come from torch's global generator."""
        return create_model(
            **self.model_dump(exclude={"options"}), **self.options, image_size=image_size, num_classes=num_classes
        )


class OptimizerConfig(_Section):
    """Adam with a cosine schedule after warm-up."""

    learning_rate: Positive = 1e-4
    """greatest learning rate"""
    generator_learning_rate: Positive | None = None
    """that of generators; null: the same"""
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    """decay of Adam's averages"""
    eps: Positive = 1e-8
    """Adam's epsilon"""
    weight_decay: Annotated[Real, Field(ge=0)] = 0.0
    """decoupled, of matrices only: not of norms, biases, tokens and positions"""
    warmup_steps: CountOrZero = 0
    """steps in which the rate grows from 0"""
    clip: Positive | None = None
    """greatest norm of the gradient; null: no clipping"""


class TrainingConfig(_Section):
    """How long, in what portions, and what happens in between."""

    examples: Count = 800_000
    """examples to train on, repeats counted"""
    batch_size: Count = 128
    """examples a step, over all devices and parts"""
    accumulate: Count = 1
    """parts that a step's batch is cut into, to save memory"""
    validate_every: Count = 100
    """steps from one validation to the next"""
    validation_examples: Count = 10_000
    """examples of a validation"""
    checkpoint_every: Count = 100
    """steps from one checkpoint to the next; there is one at each validation, too"""
    log_every: Count = 10
    """steps from one line of the log to the next"""
    stop_at_accuracy: Annotated[Real, Field(gt=0, le=1)] | None = None
    """stop once validation accuracy is as good; null: never"""
    seed: Seed = 0
    """seed of weights, dropout and the order of examples"""
    deterministic: Switch = False
    """allow deterministic algorithms only"""

    @property
    def steps(self) -> int:
        """Number of steps: the last batch is whole."""
        return -(-self.examples // self.batch_size)

    @property
    def part_size(self) -> int:
        """Examples of a part of a step, over all devices."""
        return self.batch_size // self.accumulate

    @model_validator(mode="after")
    def _parts_are_equal(self) -> TrainingConfig:
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"training.batch_size {self.batch_size} cannot be cut into training.accumulate {self.accumulate} "
                "equal parts: choose numbers that divide"
            )
        return self


class HardwareConfig(_Section):
    """What it runs on."""

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """cpu, gpu, or auto: gpu where there is one"""
    devices: Count = 1
    """devices of a node; with cpu: processes"""
    nodes: Count = 1
    """nodes"""
    strategy: Literal["auto", "ddp"] = "auto"
    """ddp, and auto the same for several devices"""
    precision: Annotated[Literal["32", "bf16-mixed"], BeforeValidator(str)] = "32"
    """32 or bf16-mixed"""
    threads: Count | None = None
    """threads of torch on the CPU; null: torch's choice"""
    workers: CountOrZero = 0
    """processes that load data; 0: none"""

    def check(self) -> None:
        """Raise `ValueError` if this machine does not have it."""
        gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
        if self.accelerator == "gpu" and not gpus:
            raise ValueError("hardware.accelerator is gpu, but torch finds none here: use cpu or auto")
        if self.accelerator != "cpu" and 0 < gpus < self.devices:
            raise ValueError(f"hardware.devices is {self.devices}, but torch finds {gpus} here: use at most as many")


class RunConfig(_Section):
    """All of a run."""

    title: str = ""
    """what the run is about, for reports"""
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    training: TrainingConfig = TrainingConfig()
    hardware: HardwareConfig = HardwareConfig()

    @model_validator(mode="after")
    def _fits_devices(self) -> RunConfig:
        world = self.hardware.devices * self.hardware.nodes
        if self.training.part_size % world:
            raise ValueError(
                f"training.batch_size {self.training.batch_size} in {self.training.accumulate} parts cannot be spread "
                f"evenly over {world} devices: choose numbers that divide"
            )
        if -(-self.training.validation_examples // self.training.part_size) < world:
            raise ValueError(
                f"training.validation_examples {self.training.validation_examples} are too few for {world} devices: "
                f"every device validates a part of {self.training.part_size}; use more of them"
            )
        return self

    def check_size(self, size: int) -> None:
        """Raise `ValueError` if images of a size cannot be had, or cannot be cut into the model's patches."""
        self.data.load("test", size=size)
        grid_shape(*image_and_patch(size, self.model.patch_size))

    @property
    def fingerprint(self) -> str:
        """Tell runs apart: of all that decides the weights, which is all but the hardware and how often to save.

        Fields with their default values are left out, so that runs of before a field was added keep their fingerprint.
        """
        decisive = self.model_dump(
            mode="json",
            exclude={"hardware": True, "title": True, "training": {"checkpoint_every", "log_every"}},
            exclude_defaults=True,
        )
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def to_yaml(self) -> str:
        """Return the whole configuration as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


def config_fields() -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted name of every field with what is known of it."""
    for section, part in RunConfig.model_fields.items():
        if isinstance(part.default, _Section):
            for name, field in type(part.default).model_fields.items():
                yield f"{section}.{name}", field
        else:
            yield section, part
