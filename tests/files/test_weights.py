from __future__ import annotations

import os
import pickle
import zipfile

import pytest
import torch

from liere.files import torch_files, weights
from liere.files.weights import check_size, load_weights
from tests.sparse_files import make_sparse


@pytest.mark.parametrize("wrap", [False, True])
def test_reads_state_dicts_and_lightning_checkpoints(tmp_path, wrap):
    weights = {"a": torch.randn(3)}
    torch.save({"state_dict": weights, "epoch": 3} if wrap else weights, tmp_path / "w.ckpt")
    assert torch.equal(load_weights(tmp_path / "w.ckpt")["a"], weights["a"])


def test_reads_safetensors(tmp_path):
    save_file = pytest.importorskip("safetensors.torch").save_file
    save_file({"a": torch.ones(3)}, tmp_path / "w.safetensors")
    assert torch.equal(load_weights(tmp_path / "w.safetensors")["a"], torch.ones(3))


@pytest.mark.parametrize(("protocol", "what"), [(2, "__builtin__.print, which"), (4, "objects that")])
def test_code_is_not_executed(tmp_path, protocol, what):
    path = tmp_path / "w.pt"
    path.write_bytes(pickle.dumps(print, protocol))
    with pytest.raises(
        ValueError,
        match=rf"w\.pt contains {what} no file of tensors has.*: save plain tensors, as in model\.state_dict",
    ):
        load_weights(path)


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_damaged_files_are_named(tmp_path, name):
    if name.endswith("safetensors"):
        pytest.importorskip("safetensors")
    (tmp_path / name).write_bytes(b"PK\x03\x04" + 100 * b"x")
    with pytest.raises(ValueError, match=rf"{name} is damaged, or not a weights file") as raised:
        load_weights(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_other_content_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no weights file"):
        load_weights(tmp_path / "w.pt")
    torch.save({"a": 3}, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"does not contain a state dict: save model.state_dict\(\)"):
        load_weights(tmp_path / "w.pt")


def test_a_compressed_file_is_refused_before_it_expands(tmp_path):
    torch.save({"a": torch.zeros(10_000)}, tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "w.pt") as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "w.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"w\.pt has [\d,]+ bytes, but claims [\d,]+: save it again with torch\.save"):
        load_weights(tmp_path / "w.pt")


@pytest.mark.parametrize("repeats", [10**12, 10**3])
def test_weights_that_are_one_number_over_and_over_are_refused(tmp_path, repeats):
    torch.save({str(n): torch.zeros(1).expand(repeats) for n in range(10**6 // repeats or 1)}, tmp_path / "w.pt")
    if repeats == 10**3:
        assert len(load_weights(tmp_path / "w.pt")) == 1_000  # small enough
        return
    with pytest.raises(ValueError, match=r"w\.pt has weights that claim 4,000,000,000,000 bytes, but a file"):
        load_weights(tmp_path / "w.pt")


def test_names_must_be_words(tmp_path):
    torch.save({0: torch.zeros(3)}, tmp_path / "w.pt")
    with pytest.raises(ValueError, match="does not contain a state dict"):
        load_weights(tmp_path / "w.pt")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"w\.pt is a named pipe"):
        load_weights(tmp_path / "w.pt")


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_a_sparse_file_is_refused_before_it_is_read(tmp_path, monkeypatch, name):
    for module in (weights, torch_files):
        monkeypatch.setattr(module, "ALLOWANCE", 1_000)
    content = {"a": torch.zeros(10**6)}
    if name == "w.pt":  # an archive is checked as such
        torch.save(content, tmp_path / name, _use_new_zipfile_serialization=False)
    else:
        pytest.importorskip("safetensors.torch").save_file(content, tmp_path / name)
    assert load_weights(tmp_path / name)["a"].shape == (10**6,)
    make_sparse(tmp_path / name)
    with pytest.raises(ValueError, match=r"has 4,000,\d+ bytes, but only [\d,]+ of them are on disk: copy it again"):
        load_weights(tmp_path / name)


def test_a_sparse_file_is_too_small_for_a_large_model(tmp_path):
    arguments = {
        "image_size": 8,
        "patch_size": 4,
        "num_classes": 2,
        "dim": 4096,
        "depth": 2,
        "heads": 16,
        "mlp_dim": 4096,
        "encoding": "none",
    }
    (tmp_path / "w.pt").touch()
    os.truncate(tmp_path / "w.pt", 10**12)
    with pytest.raises(ValueError, match=r"w\.pt has 1,000,000,000,000 bytes, but only 0 of them are on disk"):
        check_size(tmp_path / "w.pt", arguments)
    os.truncate(tmp_path / "w.pt", 250 * 10**6)
    with pytest.raises(ValueError, match=r"w\.pt has 0 bytes on disk, but .* a model with at least [\d,]+ parameters"):
        check_size(tmp_path / "w.pt", arguments)
