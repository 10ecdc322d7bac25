from __future__ import annotations

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.runs.config_file import parse_config


@pytest.mark.parametrize(
    ("examples", "batch_size", "steps"), [(96, 8, 12), (97, 8, 13), (1, 8, 1), (800_000, 128, 6250)]
)
def test_the_last_batch_of_a_run_is_whole(examples, batch_size, steps):
    training = parse_config({"training": {"examples": examples, "batch_size": batch_size}}).training
    assert training.steps == steps
    assert training.part_size == batch_size
