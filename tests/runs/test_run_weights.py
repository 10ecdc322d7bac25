from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("safetensors")
from safetensors.torch import load_file, save_file

from liere.data.facts import DataFacts
from liere.files.reading import DamagedError
from liere.runs import run_weights
from liere.runs.run_weights import KEY, read_facts, save_weights

FACTS = DataFacts(("a", "\u00e9"), 1, (8, 8), (0.5,), (0.25,))


class TestWeights:
    def test_weights_are_saved_as_safetensors(self, tmp_path):
        weights = {"a": torch.randn(3, 4).mT, "b": torch.arange(3), "c": torch.nn.Parameter(torch.randn(2))}
        save_weights(weights, tmp_path / "w.safetensors")
        loaded = load_file(tmp_path / "w.safetensors")
        assert loaded.keys() == weights.keys()
        assert all(torch.equal(loaded[name], tensor) for name, tensor in weights.items())

    def test_tensors_that_share_memory_are_loaded_with_the_same_values(self, tmp_path):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = self.second = torch.nn.Parameter(torch.randn(3, 4))
                self.turned = torch.nn.Parameter(self.first.detach().mT)
                whole = torch.randn(10)
                for name, part in {"whole": whole, "start": whole[:4], "middle": whole[2:7], "rest": whole[4:]}.items():
                    self.register_buffer(name, part)
                self.register_buffer("empty", whole[:0])

        model, other = Tied(), Tied()
        save_weights(model.state_dict(), tmp_path / "w.safetensors")
        other.load_state_dict(load_file(tmp_path / "w.safetensors"))
        for name, tensor in model.state_dict().items():
            assert torch.equal(other.state_dict()[name], tensor)
        assert other.first is other.second

    def test_the_old_weights_are_kept_if_the_new_ones_cannot_be_written(self, tmp_path, monkeypatch):
        pytest.importorskip("safetensors")
        file = tmp_path / "w.safetensors"
        save_weights({"a": torch.ones(2)}, file)
        before = file.read_bytes()

        def fail(path, content, confirm=None):
            raise OSError("full")

        monkeypatch.setattr(run_weights, "write_atomically", fail)
        with pytest.raises(OSError, match="full"):
            save_weights({"a": torch.zeros(2)}, file)
        assert file.read_bytes() == before


class TestFacts:
    def test_facts_are_kept_beside_the_weights(self, tmp_path):
        file = tmp_path / "w.safetensors"
        save_weights({"a": torch.ones(2)}, file, FACTS)
        assert read_facts(file) == FACTS

    def test_weights_without_facts_have_none(self, tmp_path):
        save_weights({"a": torch.ones(2)}, tmp_path / "w.safetensors")
        assert read_facts(tmp_path / "w.safetensors") is None
        assert read_facts(tmp_path / "w.pt") is None

    @pytest.mark.parametrize("text", ["{", json.dumps({"classes": []}), "[" * 100_000])
    def test_facts_that_cannot_be_are_refused(self, tmp_path, text):
        save_file({"a": torch.ones(2)}, tmp_path / "w.safetensors", {KEY: text})
        with pytest.raises(DamagedError, match=r"w\.safetensors is damaged"):
            read_facts(tmp_path / "w.safetensors")
