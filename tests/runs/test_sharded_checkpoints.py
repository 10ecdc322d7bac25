"""Checkpoints in shards: written atomically, reassembled whole, and read without executing code."""

from __future__ import annotations

import hashlib
import json
import pickle

import pytest
import torch
from torch.torch_version import TorchVersion

pytest.importorskip("tests.training.requirements")
from safetensors.torch import load_file, save_file

from liere.runs import sharded_checkpoints
from liere.runs.checkpoints import (
    CheckpointError,
    ForeignCheckpointError,
    load_checkpoint,
    load_newest,
    save_checkpoint,
    save_sharded_checkpoint,
)
from liere.runs.sharded_checkpoints import INDEX
from tests.runs.test_checkpoints import KEPT, contents, make_checkpoint
from tests.sparse_files import make_sparse


@pytest.fixture(scope="module", autouse=True)
def alone():
    """A process group of this process."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch without gloo")
    if TorchVersion(torch.__version__) < "2.9":
        pytest.skip("torch is older than its sharded safetensors")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def folder(tmp_path):
    """Two checkpoints: the last one at step 2, the previous one at step 1."""
    for step in (1, 2):
        save_sharded_checkpoint(make_checkpoint(step), tmp_path)
    return tmp_path


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def shard_of(folder):
    (shard,) = (folder / "last.ckpt").glob("*.safetensors")
    return shard


def forge(folder, **fields) -> None:
    """Change fields of the index, and set the checksums of the shards; its own is left out, as in earlier versions."""
    index = json.loads((folder / "last.ckpt" / INDEX).read_text())
    del index["checksum"]
    shards = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (folder / "last.ckpt").glob("*.safetensors")
    }
    (folder / "last.ckpt" / INDEX).write_text(json.dumps(index | {"shards": shards} | fields))


def test_a_changed_digit_in_the_index_is_damage(folder):
    index = folder / "last.ckpt" / INDEX
    text = index.read_text()
    assert "1.25" in text  # the sum of losses
    index.write_text(text.replace("1.25", "1.35"))
    found, (line,) = load_newest(folder, "this run")
    assert found.step == 1
    assert line == f"{index} is damaged (wrong checksum): the checkpoint is not used"


def test_a_shard_that_is_a_link_to_nothing_is_missing(folder):
    shard = shard_of(folder)
    shard.unlink()
    shard.symlink_to("nothing")
    found, (line,) = load_newest(folder, "this run")
    assert found.step == 1
    assert line == f"{shard} is missing: the checkpoint is not used"


def test_what_is_saved_is_loaded(tmp_path):
    checkpoint = make_checkpoint(7)
    save_sharded_checkpoint(checkpoint, tmp_path)
    assert names(tmp_path) == {"last.ckpt"}
    found = load_checkpoint(tmp_path / "last.ckpt", "this run", 7, checkpoint.state_dict, KEPT)
    checkpoint.optimizer["param_groups"] = []  # the configuration decides these
    assert contents(found) == contents(checkpoint)


def test_files_and_folders_replace_each_other(tmp_path):
    for step, save in enumerate(
        [save_checkpoint, save_sharded_checkpoint, save_sharded_checkpoint, save_checkpoint], 1
    ):
        save(make_checkpoint(step), tmp_path)
        assert load_checkpoint(tmp_path / "last.ckpt").step == step
        if step > 1:
            assert load_checkpoint(tmp_path / "previous.ckpt").step == step - 1
    save_checkpoint(make_checkpoint(5), tmp_path)
    save_checkpoint(make_checkpoint(6), tmp_path)
    assert names(tmp_path) == {"last.ckpt", "previous.ckpt"}
    assert load_checkpoint(tmp_path / "previous.ckpt").step == 5


def test_a_process_killed_between_renames_loses_nothing(folder):
    (folder / "last.ckpt").replace(folder / "new-last.ckpt")
    found, refused = load_newest(folder, "this run")
    assert found is not None
    assert (found.step, refused) == (2, [])
    save_sharded_checkpoint(make_checkpoint(3), folder)
    assert names(folder) == {"last.ckpt", "previous.ckpt"}
    assert [load_checkpoint(folder / f"{name}.ckpt").step for name in ("last", "previous")] == [3, 2]


def test_a_full_disk_is_named_and_what_was_saved_is_kept(folder, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"could not be written \(No space left on device\)"):
        save_sharded_checkpoint(make_checkpoint(3), folder)
    monkeypatch.undo()
    assert load_newest(folder, "this run")[0].step == 2


class TestDamaged:
    def refuse(self, folder, reason: str) -> None:
        """Assert that the last checkpoint is rejected for this reason and the previous one is used."""
        with pytest.raises(CheckpointError, match=reason):
            load_checkpoint(folder / "last.ckpt", "this run", 2, make_checkpoint(2).state_dict, KEPT)
        found, refused = load_newest(folder, "this run", 2, make_checkpoint(2).state_dict, KEPT, set_aside=True)
        assert found is not None
        assert found.step == 1
        assert len(refused) == 1
        assert names(folder) == {"previous.ckpt", "refused-last.ckpt"}

    def test_a_shard_that_was_cut_off(self, folder):
        shard = shard_of(folder)
        shard.write_bytes(shard.read_bytes()[:-100])
        self.refuse(folder, rf"{shard} is damaged \(wrong checksum\)")

    def test_a_shard_of_holes(self, folder, monkeypatch):
        monkeypatch.setattr(sharded_checkpoints, "ALLOWANCE", 1_000)
        shard = shard_of(folder)
        with shard.open("ab") as file:
            file.write(bytes(10**7))
        forge(folder)
        make_sparse(shard)
        self.refuse(folder, r"is damaged or not a checkpoint \(DamagedError\)")

    def test_a_shard_with_another_bit(self, folder):
        shard = shard_of(folder)
        content = bytearray(shard.read_bytes())
        content[-5] ^= 1
        shard.write_bytes(content)
        self.refuse(folder, rf"{shard} is damaged \(wrong checksum\)")

    def test_a_shard_that_is_missing(self, folder):
        shard = shard_of(folder)
        shard.unlink()
        self.refuse(folder, f"{shard} is missing")

    def test_a_shard_of_another_checkpoint(self, folder):
        (folder / "last.ckpt" / "more.safetensors").write_bytes(shard_of(folder).read_bytes())
        self.refuse(folder, "is not one of the shards in its index")

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "another"}'])
    def test_an_index_that_is_damaged(self, folder, text):
        (folder / "last.ckpt" / INDEX).write_text(text)
        self.refuse(folder, str(folder / "last.ckpt"))

    @pytest.mark.parametrize("shards", [None, {}, [], {"../last.ckpt/a.safetensors": "0"}, {"index.json": "0"}])
    def test_an_index_that_names_other_files(self, folder, shards):
        forge(folder, shards=shards)
        self.refuse(folder, str(folder / "last.ckpt"))

    @pytest.mark.parametrize("change", [{"step": 3}, {"step": "2"}, {"seconds": -1}, {"journal": {}}])
    def test_fields_that_are_invalid(self, folder, change):
        forge(folder, **change)
        self.refuse(folder, f"invalid {next(iter(change))}")

    def test_tensors_of_another_model(self, folder):
        tensors = load_file(shard_of(folder))
        save_file({name.replace("weight", "mass"): tensor for name, tensor in tensors.items()}, shard_of(folder))
        forge(folder)
        self.refuse(folder, "invalid state_dict")

    def test_another_run(self, folder):
        with pytest.raises(ForeignCheckpointError, match="belongs to a run with another configuration"):
            load_checkpoint(folder / "last.ckpt", "another run")


class TestHostile:
    @pytest.mark.parametrize("offset", [[10**12, 0], [10**30, 0], [-5, 0], "many", [0.5, 0], [[0], 0], [2]])
    def test_offsets_that_claim_more_than_the_files_hold(self, folder, offset):
        tensors = load_file(shard_of(folder))
        places = {name: {"saved_offsets": [0] * tensor.ndim} for name, tensor in tensors.items()}
        places["model.weight"] = {"saved_offsets": offset}
        save_file(tensors, shard_of(folder), {"DCP_SHARDING_INFO": json.dumps(places)})
        forge(folder)
        TestDamaged().refuse(folder, "is not used")

    def test_no_code_of_any_file_is_executed(self, folder, tmp_path):
        """Torch's own format describes shards in a pickle, which is not read here."""
        touched = tmp_path / "touched"

        class Hostile:
            def __reduce__(self):
                return (type(touched).touch, (touched,))

        code = pickle.dumps(Hostile())
        for name in (".metadata", "__0_0.distcp", "metadata.pkl"):
            (folder / "last.ckpt" / name).write_bytes(code)
        assert load_newest(folder, "this run")[0].step == 2
        shard_of(folder).write_bytes(code)
        forge(folder)
        with pytest.raises(CheckpointError, match="is not used"):
            load_checkpoint(folder / "last.ckpt")
        (folder / "last.ckpt" / INDEX).write_bytes(code)
        with pytest.raises(CheckpointError, match="is not used"):
            load_checkpoint(folder / "last.ckpt")
        assert not touched.exists()
        pickle.loads(code)
        assert touched.exists(), "the test itself"


def test_tensors_of_several_types_and_shapes(tmp_path):
    checkpoint = make_checkpoint(2)
    checkpoint.state_dict["_extra_state"] = torch.tensor([3, 4])
    checkpoint.state_dict["half"] = torch.rand(2, 0, 3).bfloat16()
    save_sharded_checkpoint(checkpoint, tmp_path)
    found = load_checkpoint(tmp_path / "last.ckpt").state_dict
    assert {name: (x.dtype, x.shape) for name, x in found.items()} == {
        name: (x.dtype, x.shape) for name, x in checkpoint.state_dict.items()
    }
    assert all(torch.equal(x, checkpoint.state_dict[name]) for name, x in found.items())
