"""The tables and figures of the paper, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from liere.errors import InputError, suggest
from liere.reproduce.experiment import Experiment
from liere.reproduce.outcome import Outcome
from liere.reproduce.tables.attention import build_attention
from liere.reproduce.tables.block import build_block
from liere.reproduce.tables.compute import build_compute
from liere.reproduce.tables.flops import build_flops
from liere.reproduce.tables.fraction import build_fraction
from liere.reproduce.tables.initialization import build_init
from liere.reproduce.tables.loss import build_loss
from liere.reproduce.tables.main import build_main
from liere.reproduce.tables.pooling import build_pooling
from liere.reproduce.tables.resolution import build_resolution
from liere.reproduce.tables.sharing import build_sharing
from liere.reproduce.tables.shuffling import build_shuffling
from liere.reproduce.tables.significance import build_significance
from liere.reproduce.tables.size import build_size
from liere.reproduce.tables.spatial import build_spatial
from liere.runs.encoding_text import parse_encoding

__all__ = ["CATALOGUE", "Entry", "find_entry"]


def _all(experiment: Experiment) -> Experiment:
    return experiment


def _first_data_set(experiment: Experiment) -> Experiment:
    name, column = next(iter(experiment.data.items()))
    return experiment.model_copy(update={"data": {name: column}})


def _two_encodings(experiment: Experiment) -> Experiment:
    data = {name: column.model_copy(update={"encodings": None}) for name, column in experiment.data.items()}
    return experiment.model_copy(update={"data": data, "encodings": ["rope_mixed", "liere8"]})


def _first_seed(experiment: Experiment) -> Experiment:
    return experiment.model_copy(update={"seeds": experiment.seeds[:1], "vary": {"": {}}})


def _takes_any(encodings: Sequence[str]) -> str:
    return ""


def _takes_none(encodings: Sequence[str]) -> str:
    return "it compares only RoPE-Mixed and LieRE₈: omit --encodings"


def _takes_a_baseline(encodings: Sequence[str]) -> str:
    if any(parse_encoding(encoding)[0] == "absolute" for encoding in encodings):
        return ""
    return "its baseline is absolute positions: add absolute, or absolute:init_std=1 for the published initialization"


def _takes_blocks(encodings: Sequence[str]) -> str:
    names = {encoding: parse_encoding(encoding)[0] for encoding in encodings}
    others = [encoding for encoding, name in names.items() if name != "rope_mixed" and not name.startswith("liere")]
    if not others:
        return ""
    return f"it compares block sizes, which only rope_mixed and liere have: omit {' '.join(others)}"


@dataclass(frozen=True)
class Entry:
    """A table or figure of the paper.

    Attributes:
        name: Its name in `liere reproduce`.
        paper: Its number and subject in the paper.
        experiment: The experiment whose runs it needs; `""` if it needs none.
        build: Builds it from the results; takes no argument if it needs no runs.
        needs_weights: Whether it needs the weights of the runs, not only their predictions.
        narrow: Reduces the experiment to the runs it needs.
        refuse: Returns why it cannot be made with the given encodings; `""` if it can.
    """

    name: str
    paper: str
    experiment: str
    build: Callable[..., Outcome]
    needs_weights: bool = False
    narrow: Callable[[Experiment], Experiment] = _all
    refuse: Callable[[Sequence[str]], str] = _takes_any


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry("main", "Table 1: accuracy on three data sets", "main", build_main),
        Entry("loss", "Table 9: validation loss on three data sets", "main", build_loss),
        Entry(
            "significance",
            "Table 2: RoPE-Mixed vs. LieRE₈, p-values",
            "main",
            build_significance,
            narrow=_two_encodings,
            refuse=_takes_none,
        ),
        Entry("size", "Table 6 and Figure 8: model sizes", "size", build_size),
        Entry("fraction", "Figure 4: fraction of the training examples", "fraction", build_fraction),
        Entry("spatial", "Table 3: the spatial reasoning task", "spatial", build_spatial),
        Entry("block", "Table 10 and Figure 6: block sizes", "block", build_block, refuse=_takes_blocks),
        Entry("sharing", "Table 4: generators shared across heads and layers", "sharing", build_sharing),
        Entry("init", "Table 7: initialization, paired z-test", "init", build_init),
        Entry("pooling", "appendix: mean pooling", "pooling", build_pooling),
        Entry("shuffling", "Table 5: shuffled patches and frames", "shuffling", build_shuffling),
        Entry(
            "resolution", "Figure 7: other resolutions, with and without fine-tuning", "resolution", build_resolution
        ),
        Entry("flops", "Table 8: operations of a forward pass", "", build_flops),
        Entry(
            "compute",
            "Figure 9: compute to reach absolute's accuracy",
            "main",
            build_compute,
            narrow=_first_data_set,
            refuse=_takes_a_baseline,
        ),
        Entry(
            "attention",
            "Figures 10 to 12: attention maps",
            "spatial",
            build_attention,
            needs_weights=True,
            narrow=_first_seed,
        ),
    )
}


def find_entry(name: str) -> Entry:
    """Return a table or figure by name.

    Raises:
        ValueError: If there is none with that name.
    """
    if name not in CATALOGUE:
        raise InputError(f"unknown table or figure {name!r}: {suggest(name, (*CATALOGUE, 'list', 'all'))}")
    return CATALOGUE[name]
