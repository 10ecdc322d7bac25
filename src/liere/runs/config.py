"""What a run is: data, model, optimizer, training and hardware, with every field checked before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from liere.config_fields import Section
from liere.data.config import DataConfig, data_fields
from liere.data.spatial import SpatialData
from liere.encodings import RotaryEncoding, find_encoding
from liere.errors import InputError
from liere.files.reading import shorten
from liere.layers import grid_shape
from liere.presets import image_and_patch
from liere.runs.hardware_config import HardwareConfig
from liere.runs.logger_config import LoggerConfig
from liere.runs.model_config import ModelConfig
from liere.runs.optimizer_config import OptimizerConfig
from liere.runs.training_config import TrainingConfig

# `liere.config_fields` has told what to install where these are missing.
import yaml  # isort: skip
from pydantic import model_validator  # isort: skip
from pydantic.fields import FieldInfo  # isort: skip

__all__ = [
    "COORDINATE_FIELDS",
    "HardwareConfig",
    "ModelConfig",
    "OptimizerConfig",
    "RunConfig",
    "TrainingConfig",
    "config_fields",
]


COORDINATE_FIELDS = ("position_shift", "position_stretch", "position_zoom", "position_noise", "cls_position")
"""Fields of a model that mean something only for encodings with coordinates."""


class ModelConfig(Section):
    """The vision transformer, `liere.create_model`."""

    encoding: str = "liere"
    """position encoding: absolute, visionllama, rope_mixed, liere8, liere (dense), ..."""
    options: dict[str, Any] = {}  # noqa: RUF012  (pydantic copies it)
    """options of the encoding, like {share_heads: true}"""
    size: str | None = None
    """vit_tiny ... vit_huge, or null with all four dimensions"""
    dim: Width | None = None
    """width of a token"""
    depth: Few | None = None
    """layers"""
    heads: Few | None = None
    """attention heads"""
    mlp_dim: Width | None = None
    """width of the MLPs"""
    patch_size: Side | tuple[Side, ...] = 12
    """side of a patch, px; or one number an axis, like [2, 16, 16]"""
    image_size: Side | tuple[Side, ...] | None = None
    """the images that positions are relative to; null: the training images"""
    pool: Literal["cls", "mean"] = "cls"
    """what the classifier looks at"""
    dropout: Rate = 0.0
    """of embedded tokens, attention outputs and MLPs"""
    attn_dropout: Rate = 0.0
    """of attention probabilities"""
    drop_path: Rate = 0.0
    """stochastic depth of the last layer"""
    num_registers: FewOrZero = 0
    """register tokens"""
    qk_norm: Switch = False
    """whether queries and keys are normalized before they are rotated"""
    qkv_bias: Switch = False
    """whether queries, keys and values have biases"""
    position_policy: Literal["extend", "rescale", "reference"] = "extend"
    """positions at other resolutions"""
    position_shift: Annotated[Real, Field(ge=0, le=GREATEST_AMOUNT)] = 0.0
    """random placement: in training, offsets of the grid up to this many times its extent"""
    position_stretch: Annotated[Real, Field(ge=1, le=GREATEST_AMOUNT)] = 1.0
    """in training, greatest factor of each axis of the positions"""
    position_zoom: Annotated[Real, Field(ge=1, le=GREATEST_AMOUNT)] = 1.0
    """in training, greatest factor of all axes of the positions"""
    position_noise: Annotated[Real, Field(ge=0, le=GREATEST_AMOUNT)] = 0.0
    """in training, greatest offset of each token, in token steps"""
    cls_position: Literal["none", "center", "unseen"] = "none"
    """what CLS knows of positions: none, center, or unseen (its query sees keys before rotation)"""
    attention_scale: Literal["constant", "log"] = "constant"
    """log: scores of attention grow with log(tokens) / log(tokens in training)"""

    @model_validator(mode="after")
    def _options_are_finite(self) -> ModelConfig:
        for name, value in self.options.items():
            if not _is_finite(value):
                raise InputError(f"model.options.{shorten(name)} must be finite, got {shorten(repr(value))}")
        return self

    def unsupported_fields(self) -> dict[str, str]:
        """Return defaults, as text, for the fields that the encoding does not support and that are set.

        A recipe for several encodings may move positions; those that have no coordinates are trained without that, and
        those that rotate nothing without keys that CLS sees unrotated.
        """
        encoding = find_encoding(self.encoding)[0]
        unfit = () if encoding.has_coordinates else COORDINATE_FIELDS
        if self.cls_position == "unseen" and not issubclass(encoding, RotaryEncoding):
            unfit = (*unfit, "cls_position")
        defaults = {name: ModelConfig.model_fields[name].default for name in unfit}
        return {f"model.{name}": str(value) for name, value in defaults.items() if getattr(self, name) != value}

    def build(self, *, image_size: int | tuple[int, ...], num_classes: int, in_channels: int = 3) -> VisionTransformer:
        """Make the model; its weights come from torch's global generator."""
        return create_model(
            **self.model_dump(exclude={"options", "image_size"}),
            **self.options,
            image_size=image_size if self.image_size is None else self.image_size,
            num_classes=num_classes,
            in_channels=in_channels,
        )


class OptimizerConfig(Section):
    """Adam or Muon, with a cosine schedule after warm-up."""

    name: Literal["adam", "muon"] = "adam"
    """adam, or muon for the matrices of the layers and adam for everything else"""
    matrix_learning_rate: Positive | None = None
    """muon: greatest learning rate of the matrices of the layers, whose weight decay it scales, too; null: 0.02"""
    muon_for_qkv: bool = True
    """muon: also for the projections to queries, keys and values; false: adam for these"""
    learning_rate: Positive = 1e-4
    """greatest learning rate"""
    generator_learning_rate: Positive | None = None
    """that of generators; null: the same"""
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    """decay of Adam's averages"""
    eps: Positive = 1e-8
    """Adam's epsilon"""
    weight_decay: Annotated[Real, Field(ge=0, le=1e6)] = 0.0
    """decoupled, of matrices only: not of norms, biases, tokens and positions"""
    warmup_steps: CountOrZero = 0
    """steps in which the rate grows from 0"""
    clip: Positive | None = None
    """greatest norm of the gradient; null: no clipping"""

    @property
    def matrix_rate(self) -> float:
        """Learning rate of the matrices of the layers, with Muon."""
        return 0.02 if self.matrix_learning_rate is None else self.matrix_learning_rate

    @model_validator(mode="after")
    def _options_of_muon_are_for_muon(self) -> OptimizerConfig:
        for field in ("matrix_learning_rate", "muon_for_qkv"):
            value = getattr(self, field)
            if self.name != "muon" and value != type(self).model_fields[field].default:
                raise InputError(
                    f"optimizer.{field} {value!r} is for optimizer.name muon, which is {self.name}: leave it out, or "
                    "use muon"
                )
        return self


class TrainingConfig(Section):
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
    stop_at_accuracy: Share | None = None
    """stop once validation accuracy is as good; null: never"""
    start_from: str | None = None
    """folder of a finished run whose final weights to begin with; null: new weights"""
    seed: Seed = 0
    """seed of weights, dropout, augmentation and the order of examples"""
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
            raise InputError(
                f"training.batch_size {self.batch_size} cannot be cut into training.accumulate {self.accumulate} "
                "equal parts: choose numbers that divide"
            )
        return self


class HardwareConfig(Section):
    """What it runs on."""

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    """cpu, gpu, or auto: gpu where there is one"""
    devices: Few = 1
    """devices of a node; with cpu: processes"""
    nodes: Few = 1
    """nodes"""
    strategy: Literal["auto", "ddp"] = "auto"
    """ddp, and auto the same for several devices"""
    precision: Annotated[Literal["32", "bf16-mixed"], BeforeValidator(str)] = "32"
    """32 or bf16-mixed"""
    threads: Annotated[Count, Field(le=1024)] | None = None
    """threads of torch on the CPU; null: torch's choice"""
    workers: FewOrZero = 0
    """processes that load data; 0: none"""

    def check(self) -> None:
        """Raise `ValueError` if this machine does not have it."""
        gpus = torch.cuda.device_count() or int(torch.backends.mps.is_available())
        if self.accelerator == "gpu" and not gpus:
            raise InputError("hardware.accelerator is gpu, but torch finds none here: use cpu or auto")
        if self.accelerator != "cpu" and 0 < gpus < self.devices:
            raise InputError(f"hardware.devices is {self.devices}, but torch finds {gpus} here: use at most as many")


class RunConfig(Section):
    """All of a run."""

    title: str = ""
    """what the run is about, for reports"""
    data: DataConfig = SpatialData()
    model: ModelConfig = ModelConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    training: TrainingConfig = TrainingConfig()
    hardware: HardwareConfig = HardwareConfig()
    logger: LoggerConfig = LoggerConfig()

    @model_validator(mode="after")
    def _fits_devices(self) -> RunConfig:
        world = self.hardware.devices * self.hardware.nodes
        if self.training.part_size % world:
            raise InputError(
                f"training.batch_size {self.training.batch_size} in {self.training.accumulate} parts cannot be spread "
                f"evenly over {world} devices: choose numbers that divide"
            )
        self.check_validation(self.training.validation_examples, "training.validation_examples")
        return self

    def check_validation(self, examples: int, source: str = "the validation set") -> None:
        """Raise `ValueError` if there are too few validation examples for each device to have some."""
        world = self.hardware.devices * self.hardware.nodes
        if -(-examples // self.training.part_size) < world:
            raise InputError(
                f"{source}: {examples} examples are too few for {world} devices, since every device validates a part "
                f"of {self.training.part_size}; use more examples, fewer devices or a smaller training.batch_size"
            )

    def check_size(self, size: int) -> None:
        """Raise `ValueError` if images of a size are not available, or cannot be cut into the model's patches."""
        facts = self.data.load("test", size=size, length=1).facts
        grid_shape(*image_and_patch(facts.image_size, self.model.patch_size))

    @property
    def fingerprint(self) -> str:
        """Tell runs apart: of all that decides the weights: all but the hardware, the logger and how often to save.

        Fields with their default values are left out, so that runs of before a field was added keep their fingerprint.
        Where a known data set is kept does not matter, nor whether its default size is written out.
        """
        decisive = self.model_dump(
            mode="json",
            exclude={
                "hardware": True,
                "logger": True,
                "title": True,
                "data": True,
                "training": {"checkpoint_every", "log_every"},
            },
            exclude_defaults=True,
        )
        if data := self.data.decisive_fields():
            decisive["data"] = data
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def to_yaml(self) -> str:
        """Return the whole configuration as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


def config_fields() -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted name of every field with what is known of it; `data` has those of all data sets."""
    for section, part in RunConfig.model_fields.items():
        if isinstance(part.default, Section):
            fields = data_fields() if section == "data" else type(part.default).model_fields.items()
            for name, field in fields:
                yield f"{section}.{name}", field
        else:
            yield section, part
