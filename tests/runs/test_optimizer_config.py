from __future__ import annotations

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
from liere.runs.config_file import parse_config


def test_the_rate_of_matrices_counts_with_muon():
    rates = [{}, {"matrix_learning_rate": 0.03}, {"matrix_learning_rate": 0.05}]
    configs = [parse_config({"optimizer": {"name": "muon"} | rate}) for rate in rates]
    assert [config.optimizer.matrix_rate for config in configs] == [0.02, 0.03, 0.05]
    assert len({config.fingerprint for config in configs}) == 3
