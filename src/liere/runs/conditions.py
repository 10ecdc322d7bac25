"""Test conditions of a run: size, positions, attention scale, order of patches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from liere.errors import InputError, InputTypeError, check_least, suggest, whole_number

__all__ = ["POLICIES", "SCALES", "SHUFFLES", "Condition"]

POLICIES = ("extend", "rescale", "reference")
SCALES = ("constant", "log")
SHUFFLES = ("patches", "frames")
FARTHEST = 1e6  # token steps; far beyond, rotations lose all precision


@dataclass(frozen=True, order=True)
class Condition:
    """A condition under which a run is tested.

    Attributes:
        size: Side of the images.
        policy: Position policy, `"extend"`, `"rescale"` or `"reference"`; `""`: that of the model.
        shuffle: What is shuffled, `"patches"` or `"frames"`; `""`: nothing.
        attention_scale: Scale of the attention scores, `"constant"` or `"log"`; `""`: that of the model.
        placement: Offset of the grid in token steps: one number for all axes, or one per axis, for example `"0,8"`;
            `""`: at the origin, as usual.

    Example:
        >>> Condition(48, policy="rescale").name, Condition(32).name, Condition(32, placement="0,8").name
        ('48-rescale', '32', '32-placed-0,8')
    """

    size: int
    policy: str = ""
    shuffle: str = ""
    attention_scale: str = ""
    placement: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole_number("size", self.size))  # a NumPy integer is no JSON
        check_least("size", self.size, 1)
        for name in ("policy", "shuffle", "attention_scale", "placement"):
            if not isinstance(getattr(self, name), str):
                raise InputTypeError(f"{name} must be text, got {getattr(self, name)!r}")
        for name, value, known in (
            ("policy", self.policy, POLICIES),
            ("shuffle", self.shuffle, SHUFFLES),
            ("attention_scale", self.attention_scale, SCALES),
        ):
            if value and value not in known:
                raise InputError(f"unknown {name} {value!r}: {suggest(value, known)}")
        if self.placement:
            numbers = self.offsets(len(self.placement.split(",")))
            # Normalized, so that each placement has one record.
            short = numbers[:1] if len(set(numbers)) == 1 else numbers
            object.__setattr__(self, "placement", ",".join(f"{number:g}" for number in short))

    def offsets(self, axes: int) -> tuple[float, ...]:
        """Return the offsets of the placement, one number per axis.

        Raises:
            ValueError: If it does not consist of numbers, or has the wrong number of axes.

        Example:
            >>> Condition(32, placement="8").offsets(2), Condition(32, placement="0,8").offsets(2)
            ((8.0, 8.0), (0.0, 8.0))
        """
        try:
            numbers = tuple(float(part) for part in self.placement.split(","))
        except ValueError:
            numbers = ()
        if not numbers or not all(abs(number) <= FARTHEST for number in numbers) or len(numbers) not in (1, axes):
            raise InputError(
                f"placement must be one number of token steps for all axes, or one per axis, at most {FARTHEST:,.0f}, "
                f"got {self.placement!r}: use for example 8 or 0,8"
            )
        return numbers * axes if len(numbers) == 1 else numbers

    @property
    def name(self) -> str:
        """Name of its files."""
        parts = [
            self.policy,
            self.shuffle and f"shuffled-{self.shuffle}",
            self.attention_scale and f"scale-{self.attention_scale}",
            self.placement and f"placed-{self.placement}",
        ]
        return "-".join([str(self.size), *filter(None, parts)])

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the size differs from training."""
        return self == Condition(self.size)

    def describe(self) -> str:
        """Return a description for readers.

        Example:
            >>> Condition(32, shuffle="patches").describe()
            '32 px, shuffled patches'
        """
        parts = [f"{self.size} px"]
        parts += [f"positions {self.policy}"] if self.policy else []
        parts += [f"shuffled {self.shuffle}"] if self.shuffle else []
        parts += [f"attention scale {self.attention_scale}"] if self.attention_scale else []
        parts += [f"placed at {self.placement}"] if self.placement else []
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for `evaluation.json`; default values are left out."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Condition:
        """Return the condition of a record of `evaluation.json`."""
        return cls(**{field.name: record[field.name] for field in fields(cls) if field.name in record})
