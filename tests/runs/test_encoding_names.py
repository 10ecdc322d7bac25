from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")

from liere.runs.encoding_names import encoding_names
from tests.training.tiny import make_run


def test_options_are_part_of_a_name_where_they_tell_two_apart(tmp_path):
    plain = make_run(tmp_path / "a", model__encoding="absolute")
    with_option = make_run(tmp_path / "b", model__encoding="absolute", model__options={"init_std": 1})
    other = make_run(tmp_path / "c", model__encoding="none")
    configs = [run.config for run in (plain, with_option, other)]
    assert encoding_names(configs) == ["absolute", "absolute:init_std=1", "none"]
    assert encoding_names(configs[1:]) == ["absolute", "none"]


def test_options_are_named_in_the_order_of_the_alphabet(tmp_path):
    options = [{"share_heads": True, "init_scale": 1.0}, {"init_scale": 1.0}]
    runs = [
        make_run(tmp_path / str(place), model__encoding="liere8", model__options=one)
        for place, one in enumerate(options)
    ]
    names = encoding_names([run.config for run in runs])
    assert names == ["liere8:init_scale=1.0,share_heads=True", "liere8:init_scale=1.0"]
