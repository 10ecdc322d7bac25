from __future__ import annotations

import pytest

pytest.importorskip("tests.training.requirements")
from liere.runs.encoding_text import parse_encoding
from tests.comparison.plans import plan
from tests.training.tiny import CONFIG


class TestPlan:
    def test_there_is_a_run_for_each_encoding_and_seed(self, tmp_path):
        made = plan(tmp_path, ["none", "liere8"], [0, 3])
        names = ["none-seed0", "none-seed3", "liere8-seed0", "liere8-seed3"]
        assert [run.folder for run in made.runs] == [tmp_path / "runs" / name for name in names]
        assert [(run.config.model.encoding, run.config.training.seed) for run in made.runs] == [
            ("none", 0),
            ("none", 3),
            ("liere8", 0),
            ("liere8", 3),
        ]
        assert made.sizes == [36]
        assert list(tmp_path.iterdir()) == []

    def test_duplicates_are_run_once(self, tmp_path):
        made = plan(tmp_path, ["none", "liere8", "none"], [1, 1, 0])
        assert [run.folder.name for run in made.runs] == ["none-seed1", "none-seed0", "liere8-seed1", "liere8-seed0"]

    def test_options_of_an_encoding_are_passed_on(self, tmp_path):
        (run,) = plan(tmp_path, ["absolute:init_std=1"]).runs
        assert (run.config.model.encoding, run.config.model.options) == ("absolute", {"init_std": 1})
        assert run.folder.name == "absolute-init_std-1-seed0"
        two = plan(tmp_path, ["absolute", "absolute:init_std=1"]).runs
        assert [one.config.model.options for one in two] == [{}, {"init_std": 1}]

    def test_encodings_that_differ_in_options_have_folders_of_their_own(self, tmp_path):
        runs = plan(tmp_path, ["absolute", *(f"absolute:init_std={std}" for std in ("1", "0.1", "0.01"))]).runs
        assert len({run.folder for run in runs}) == 4

    @pytest.mark.parametrize("text", ["absolute:", "absolute:init_std", "absolute:=1", "absolute:a=1,,b=2"])
    def test_options_without_value_are_refused(self, text):
        with pytest.raises(ValueError, match="has an option without a value: write absolute:init_std=1"):
            parse_encoding(text)

    def test_options_are_read_as_yaml_writes_them(self):
        assert parse_encoding("x:a=true,b=0.5,c=word,d=null") == ("x", {"a": True, "b": 0.5, "c": "word", "d": None})

    def test_numbers_with_an_exponent_are_numbers(self):
        assert parse_encoding("absolute:init_std=1e-3") == ("absolute", {"init_std": 1e-3})

    def test_fields_of_the_command_line_go_to_all(self, tmp_path):
        made = plan(tmp_path, ["none", "liere8"], overrides={"model.dim": "32", "hardware.threads": "1"})
        assert [(run.config.model.dim, run.config.hardware.threads) for run in made.runs] == [(32, 1)] * 2

    def test_threads_are_shared_out_where_nothing_is_said(self, tmp_path, monkeypatch):
        monkeypatch.setattr("liere.comparison.executors.local.available_cores", lambda: 8)
        text = CONFIG.replace(", threads: 1", "")
        assert "threads" not in text
        for slots, threads in [(1, 8), (2, 4), (3, 2)]:
            made = plan(tmp_path, ["none", "liere8", "absolute"], slots=slots, text=text)
            assert made.slots == slots
            assert {run.config.hardware.threads for run in made.runs} == {threads}
        assert plan(tmp_path, slots=5).slots == 1  # no more than there are runs

    def test_threads_of_the_recipe_are_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr("liere.comparison.executors.local.available_cores", lambda: 8)
        assert plan(tmp_path, slots=1).runs[0].config.hardware.threads == 1

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"encodings": ["lieer8"]}, "unknown encoding 'lieer8': did you mean 'liere8'?"),
            ({"encodings": ["liere8:share_head=1"]}, "share_head"),
            ({"encodings": []}, "encodings and seeds must not be empty"),
            ({"seeds": []}, "encodings and seeds must not be empty"),
            ({"sizes": [36, 100]}, "multiple of 12 px"),
            ({"overrides": {"data.size": "100"}}, "multiple of 12 px"),
            ({"text": "model: {dimm: 3}"}, "tiny.yaml: unknown field model.dimm"),
        ],
    )
    def test_what_does_not_fit_is_told_and_nothing_is_made(self, tmp_path, options, message):
        with pytest.raises((ValueError, TypeError)) as raised:
            plan(tmp_path, **options)
        assert message in str(raised.value)
        assert list(tmp_path.iterdir()) == []
