"""Models whose parameters are sharded over processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from liere.sharding import gathered, memory_may_be_reused, sharded_like

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def alone():
    """A process group of this process."""
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("torch without gloo")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
class TestOneProcess:
    @pytest.mark.parametrize("name", ["liere8", "rope_mixed", "absolute", "visionllama"])
    def test_sharded_models_train_as_others_do(self, name):
        from tests.sharded import check_models

        check_models([name])

    def test_rotations_of_a_sharded_encoding(self):
        from tests.sharded import check_rotations

        check_rotations()

    @pytest.mark.filterwarnings("ignore:DTensor random operators may not have complete support on cpu")
    def test_models_from_meta(self):
        from tests.sharded import check_meta

        check_meta()

    def test_state_dicts_are_whole_and_fit_a_plain_model(self):
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
        from torch.distributed.device_mesh import init_device_mesh

        from tests.models import small_model
        from tests.sharded import shard

        model = small_model("liere8")
        x = torch.randn(1, 3, 16, 16)
        before, names = model(x), set(model.state_dict())
        shard(model, "blocks and whole", init_device_mesh("cpu", (1,)))
        with torch.no_grad():
            model(x)
        state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
        assert set(state) == names, "caches are not saved"
        plain = small_model("liere8", seed=1)
        plain.load_state_dict(state)
        assert torch.equal(plain(x), before)

    def test_tensors_are_sharded_like_a_parameter(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor

        parameter = distribute_tensor(torch.zeros(3, 2), init_device_mesh("cpu", (1,)), [Shard(0)])
        whole = torch.randn(3, 2)
        found = sharded_like(whole, parameter)
        assert found.placements == parameter.placements
        assert torch.equal(gathered(found), whole)

    def test_addresses_are_not_trusted_where_parameters_are_gathered_in_place(self):
        import torch.distributed.fsdp  # noqa: F401

        assert memory_may_be_reused()


def test_ordinary_parameters_are_returned_as_they_are():
    for x in (torch.zeros(2), nn.Parameter(torch.zeros(2)), nn.Buffer(torch.zeros(2))):
        assert gathered(x) is x
        assert sharded_like(torch.ones(2), x).equal(torch.ones(2))


@pytest.mark.slow
def test_two_processes_agree_with_one(tmp_path):
    command = [sys.executable, "-W", "ignore", "-m", "tests.sharded", str(tmp_path / "store")]
    running = [
        subprocess.Popen(
            [*command, str(rank), "2"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    for process in running:
        printed, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert printed == "agreed\n"
