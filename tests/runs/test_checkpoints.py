from __future__ import annotations

import dataclasses
import errno
import math
import os
import pickle
import random
import resource

import pytest
import torch

from liere.runs import checkpoints
from liere.runs.checkpoint_content import Checkpoint, CheckpointError
from liere.runs.checkpoints import (
    FORMAT,
    load_checkpoint,
    load_newest,
    save_checkpoint,
)

SHAPES = [torch.Size([30, 40]), torch.Size([30])]
KEPT = [{"step": torch.Size(), "exp_avg": shape, "exp_avg_sq": shape} for shape in SHAPES]


def make_checkpoint(step: int, fingerprint: str = "this run") -> Checkpoint:
    model = torch.nn.Linear(40, 30)
    with torch.no_grad():
        model.weight.fill_(step)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(2, 40)).sum().backward()
    optimizer.step()
    for state in optimizer.state.values():
        state["step"].fill_(step)
    journal = {"losses": [1.25, 3], "best": {"step": 1, "accuracy": 0.5, "loss": 1.0}, "reached_target": False}
    return Checkpoint(fingerprint, step, 1.5 * step, model.state_dict(), optimizer.state_dict(), journal)


CHANGES = [
    {"exp_avg": torch.ones(30)},  # the shape of the other parameter
    {"exp_avg": torch.ones(30, 40).long()},
    {"exp_avg": None},
    {"exp_avg": 0.5},
    {"exp_avg": torch.zeros(1).expand(30, 40)},  # a fused optimizer would write behind its memory
    {"exp_avg": torch.zeros(30, 80)[:, :40]},
    {"exp_avg": torch._neg_view(torch.zeros(30, 40))},
    {"exp_avg": torch.zeros(1200).as_strided((30, 40), (1, 1))},
    {"step": torch.tensor(math.nan)},
    {"more": torch.ones(())},
    {"number": 2},
    {"number": "0"},
]
BESTS = [
    {"step": "2"},
    {"step": 0},
    {"step": 3},
    {"accuracy": None},
    {"accuracy": 1.5},
    {"accuracy": math.nan},
    {"loss": []},
    {"more": torch.ones(3)},
    {"more": "more"},
]


def changed_optimizer(number=0, **change) -> dict:
    """Return the optimizer state after two steps with a changed, missing (None) or foreign entry."""
    optimizer = make_checkpoint(2).optimizer
    state = {name: value for name, value in (optimizer["state"].pop(0) | change).items() if value is not None}
    return optimizer | {"state": optimizer["state"] | {number: state}}


def changed_best(**change) -> dict:
    journal = make_checkpoint(2).journal
    return journal | {"best": journal["best"] | change}


def contents(checkpoint: Checkpoint) -> list:
    """Return the contents of a checkpoint in a form that can be compared with `==`."""

    def plain(value):
        if isinstance(value, torch.Tensor):
            return (str(value.dtype), value.tolist())
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        return value

    return [plain(getattr(checkpoint, field.name)) for field in dataclasses.fields(checkpoint)]


@pytest.fixture
def folder(tmp_path):
    """Two checkpoints: the last one at step 2, the previous one at step 1."""
    for step in (1, 2):
        save_checkpoint(make_checkpoint(step), tmp_path)
    return tmp_path


def test_what_is_saved_is_loaded(tmp_path):
    checkpoint = make_checkpoint(7)
    save_checkpoint(checkpoint, tmp_path)
    assert contents(load_checkpoint(tmp_path / "last.ckpt")) == contents(checkpoint)
    found, refused = load_newest(tmp_path, "this run")
    assert found is not None
    assert contents(found) == contents(checkpoint)
    assert refused == []


def test_two_checkpoints_are_kept_and_nothing_else(folder):
    save_checkpoint(make_checkpoint(3), folder)
    assert sorted(path.name for path in folder.iterdir()) == ["last.ckpt", "previous.ckpt"]
    assert load_checkpoint(folder / "last.ckpt").step == 3
    assert load_checkpoint(folder / "previous.ckpt").step == 2


def test_there_may_be_none(tmp_path):
    assert load_newest(tmp_path, "this run") == (None, [])


class TestDamaged:
    def refuse(self, folder, reason: str) -> str:
        """Assert that the last checkpoint is rejected for this reason and the previous one is used."""
        last = folder / "last.ckpt"
        with pytest.raises(CheckpointError, match=reason):
            load_checkpoint(last, "this run")
        found, (line,) = load_newest(folder, "this run")
        assert found is not None
        assert found.step == 1
        assert str(last) in line
        assert line.endswith("it is not used")
        assert "\n" not in line
        return line

    def test_a_truncated_file_is_refused_wherever_it_was_cut(self, folder):
        whole = (folder / "last.ckpt").read_bytes()
        for length in [0, 1, 3, 4, 5, 100, *range(512, len(whole), 997), len(whole) - 22, len(whole) - 1]:
            (folder / "last.ckpt").write_bytes(whole[:length])
            self.refuse(folder, "not a checkpoint")

    def test_bytes_missing_anywhere_are_damage_and_no_trouble_of_the_machine(self, folder):
        whole = (folder / "last.ckpt").read_bytes()
        for start in range(0, len(whole) - 200, 331):
            for length in (1, 100, len(whole) // 2):
                (folder / "last.ckpt").write_bytes(whole[:start] + whole[start + length :])
                self.refuse(folder, "not a checkpoint|is damaged|not a liere checkpoint")

    @pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ENOSPC])
    def test_trouble_of_the_machine_is_not_taken_for_damage(self, folder, monkeypatch, code):
        def fail(*arguments, **options):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(checkpoints.zipfile, "ZipFile", fail)
        with pytest.raises(OSError, match=rf"{os.strerror(code)}: '.*last\.ckpt'$"):
            load_newest(folder, "this run")

    def test_a_flipped_bit_in_a_tensor_is_refused(self, folder):
        whole = bytearray((folder / "last.ckpt").read_bytes())
        weights = make_checkpoint(2).state_dict["weight"]
        start = bytes(whole).index(bytes(weights.flatten().view(torch.uint8).tolist())[:400])
        for place in (start, start + 1, start + 777, start + weights.numel() * 4 - 1):
            damaged = whole.copy()
            damaged[place] ^= 0b100
            (folder / "last.ckpt").write_bytes(damaged)
            self.refuse(folder, r"damaged \(wrong checksum of ")

    def test_a_changed_byte_anywhere_is_refused_or_changes_nothing(self, folder):
        whole = bytearray((folder / "last.ckpt").read_bytes())
        expected, chance = contents(load_checkpoint(folder / "last.ckpt")), random.Random(0)
        refused = 0
        for place in chance.sample(range(len(whole)), 150):
            damaged = whole.copy()
            damaged[place] ^= 1 << chance.randrange(8)
            (folder / "last.ckpt").write_bytes(damaged)
            try:
                found = load_checkpoint(folder / "last.ckpt", "this run")
            except CheckpointError:
                refused += 1
            else:
                assert contents(found) == expected
        assert refused > 50

    @pytest.mark.parametrize("content", [b"", b"just a text\n", b"PK\x03\x04", bytes(5_000)])
    def test_another_file_is_refused(self, folder, content):
        (folder / "last.ckpt").write_bytes(content)
        self.refuse(folder, "not a checkpoint")

    def test_a_folder_is_refused(self, folder):
        (folder / "last.ckpt").unlink()
        (folder / "last.ckpt").mkdir()
        self.refuse(folder, "not a checkpoint")

    @pytest.mark.parametrize("save", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
    @pytest.mark.parametrize("place", ["alone", "as a step"])
    def test_code_in_a_checkpoint_is_not_executed(self, folder, save, place):
        class Trap:
            def __reduce__(self):
                return os.mkdir, (str(folder / "executed"),)

        fields = vars(make_checkpoint(2))
        save(Trap() if place == "alone" else {"format": FORMAT, **fields, "step": Trap()}, folder / "last.ckpt")
        self.refuse(folder, "not a checkpoint")
        assert not (folder / "executed").exists()
        torch.load(folder / "last.ckpt", weights_only=False) if save is torch.save else None
        assert (folder / "executed").exists() == (save is torch.save)  # the trap would have worked

    @pytest.mark.parametrize(
        "content",
        [
            {"weight": torch.ones(3)},
            [1, 2],
            torch.ones(3),
            {"state_dict": {}, "epoch": 3, "global_step": 10, "pytorch-lightning_version": "2.5"},
            {"format": "liere-checkpoint-2", **vars(make_checkpoint(2))},
        ],
    )
    def test_what_another_program_saved_is_refused(self, folder, content):
        torch.save(content, folder / "last.ckpt")
        self.refuse(folder, "not a liere checkpoint")

    @pytest.mark.parametrize("change", [{"extra": 1}, {"journal": None}])
    def test_fields_of_another_version_are_refused(self, folder, change):
        content = {"format": FORMAT, **vars(make_checkpoint(2)), **change}
        torch.save({name: value for name, value in content.items() if value is not None}, folder / "last.ckpt")
        self.refuse(folder, "from another version .*(extra|journal)")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            *(("step", step) for step in (-5, 0, 5000, 2.0, True, "2", None)),
            ("step", 3),  # the optimizer counted 2
            *(("seconds", seconds) for seconds in (-1.0, math.nan, math.inf, 2**63, None)),
            *(("optimizer", content) for content in ({}, {"state": {}, "param_groups": []}, {"state": {0: {}}}, None)),
            *(("state_dict", content) for content in (None, {"weight": 1.0}, [])),
            *(("state_dict", content) for content in ({}, {"weight": torch.ones(30, 41), "bias": torch.ones(30)})),
            ("state_dict", {"weight": torch.ones(30, 40, dtype=torch.int64), "bias": torch.ones(30)}),
            ("optimizer", {"state": [1], "param_groups": []}),
            *(("optimizer", changed_optimizer(**change)) for change in CHANGES),
            *(("journal", content) for content in (None, {}, {"losses": [1.0, 2]})),
            ("journal", {"losses": "many", "best": None, "reached_target": False}),
            ("journal", {"losses": [1.0, -1], "best": None, "reached_target": False}),
            ("journal", {"losses": [1.0, 2], "best": 3, "reached_target": False}),
            ("journal", {"losses": [1.0, 2], "best": None, "reached_target": False, "more": 1}),
            *(("journal", changed_best(**change)) for change in BESTS),
        ],
    )
    def test_a_state_that_cannot_be_is_refused(self, folder, field, value):
        torch.save({"format": FORMAT} | vars(make_checkpoint(2)) | {field: value}, folder / "last.ckpt")
        found, (line,) = load_newest(folder, "this run", 100, like=make_checkpoint(1).state_dict, kept=KEPT)
        assert found is not None
        assert found.step == 1
        wrong = "optimizer" if (field, value) == ("step", 3) else field
        assert line.endswith(f"last.ckpt is damaged (invalid {wrong}): it is not used")

    @pytest.mark.parametrize("state", [torch.arange(5), torch.zeros(0), torch.ones(2, 3)], ids=str)
    def test_extra_state_may_change_its_shape_and_type_in_training(self, folder, state):
        like, latest = (make_checkpoint(step).state_dict for step in (1, 2))
        like["encoding._extra_state"], latest["encoding._extra_state"] = torch.arange(3), state
        torch.save({"format": FORMAT} | vars(make_checkpoint(2)) | {"state_dict": latest}, folder / "last.ckpt")
        found, refused = load_newest(folder, "this run", 100, like=like, kept=KEPT)
        assert (found.step, refused) == (2, [])
        unknown = latest | {"other._extra_state": state}
        torch.save({"format": FORMAT} | vars(make_checkpoint(2)) | {"state_dict": unknown}, folder / "last.ckpt")
        assert "invalid state_dict" in load_newest(folder, "this run", 100, like=like, kept=KEPT)[1][0]

    def test_the_order_of_axes_in_memory_does_not_matter(self, folder):
        """The optimizer state of a parameter is laid out like the parameter, which may be a transposed matrix."""
        transposed = changed_optimizer(exp_avg=torch.ones(40, 30).T, exp_avg_sq=torch.ones(40, 30).T)
        torch.save({"format": FORMAT} | vars(make_checkpoint(2)) | {"optimizer": transposed}, folder / "last.ckpt")
        found, refused = load_newest(folder, "this run", 100, like=make_checkpoint(1).state_dict, kept=KEPT)
        assert (found.step, refused) == (2, [])

    def test_a_checkpoint_of_another_run_is_refused(self, folder):
        save_checkpoint(make_checkpoint(9, "another run"), folder)
        (folder / "previous.ckpt").unlink()
        save_checkpoint(make_checkpoint(1), folder)
        for one, other in [("last", "x"), ("previous", "last"), ("x", "previous")]:
            (folder / f"{one}.ckpt").replace(folder / f"{other}.ckpt")
        self.refuse(folder, "belongs to a run with another configuration")
        assert load_checkpoint(folder / "last.ckpt").step == 9

    def test_what_could_not_be_read_again_is_an_error_when_it_is_saved_first(self, tmp_path):
        checkpoint = make_checkpoint(1)
        sparse = {**checkpoint.state_dict, "buffer": torch.eye(3).to_sparse()}
        with pytest.raises(ValueError, match=r"model contains torch\._utils\._rebuild_sparse.*: keep only plain"):
            save_checkpoint(dataclasses.replace(checkpoint, state_dict=sparse), tmp_path)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (torch.ones(1).expand(16), "buffer is an expanded tensor, .*: clone it in the model"),
            ({"axes": 2}, "buffer is a dict, .*: return a tensor from get_extra_state"),
        ],
    )
    def test_what_cannot_be_loaded_is_an_error_when_it_is_saved_first(self, tmp_path, value, message):
        checkpoint = make_checkpoint(1)
        state = {**checkpoint.state_dict, "buffer": value}
        with pytest.raises(ValueError, match=message):
            save_checkpoint(dataclasses.replace(checkpoint, state_dict=state), tmp_path)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("dtype", [torch.uint16, torch.float8_e4m3fn, torch.bfloat16, torch.complex64, torch.bool])
    def test_buffers_of_any_type_are_read_again(self, tmp_path, dtype):
        state = {"weight": torch.ones(3), "buffer": torch.ones(4, dtype=torch.uint8).to(dtype)}
        save_checkpoint(dataclasses.replace(make_checkpoint(1), state_dict=state), tmp_path)
        found = load_checkpoint(tmp_path / "last.ckpt", like=state).state_dict["buffer"]
        assert found.dtype == dtype
        assert torch.equal(found.view(torch.uint8), state["buffer"].view(torch.uint8))

    def test_the_one_with_the_most_steps_is_used_whatever_its_name(self, folder):
        for one, other in [("last", "x"), ("previous", "last"), ("x", "previous")]:
            (folder / f"{one}.ckpt").replace(folder / f"{other}.ckpt")
        found, refused = load_newest(folder, "this run")
        assert (found.step, refused) == (2, [])

    def test_trouble_with_an_older_one_does_not_matter(self, folder, monkeypatch):
        load = checkpoints.load_checkpoint

        def fail(path, *arguments):
            if path.name == "previous.ckpt":
                raise OSError(errno.EIO, "disk")
            return load(path, *arguments)

        monkeypatch.setattr(checkpoints, "load_checkpoint", fail)
        assert load_newest(folder, "this run")[0].step == 2

    @pytest.mark.parametrize("target", ["last.ckpt", "nothing"])
    def test_a_link_to_itself_or_to_nothing_is_refused(self, folder, target):
        (folder / "last.ckpt").unlink()
        (folder / "last.ckpt").symlink_to(target)
        self.refuse(folder, "not a checkpoint")

    @pytest.mark.parametrize("kind", ["damaged", "folder", "loop"])
    @pytest.mark.parametrize("name", ["new-last.ckpt", "last.ckpt", "previous.ckpt"])
    def test_what_is_refused_is_set_aside_and_not_in_the_way_of_the_next_ones(self, folder, name, kind):
        for time in range(3):
            path = folder / name
            path.unlink(missing_ok=True)
            if kind == "damaged":
                path.write_bytes(bytes(100))
            elif kind == "folder":
                (path / "inside").mkdir(parents=True)
            else:
                path.symlink_to(name)
            found, (line,) = load_newest(folder, "this run", set_aside=True)
            assert found.step == 2 * time + (1 if name == "last.ckpt" else 2)
            assert str(path) in line
            whole = {load_checkpoint(path).step for path in folder.glob("[lp]*.ckpt")}
            save_checkpoint(make_checkpoint(2 * time + 3), folder)
            assert max(whole) in {load_checkpoint(path).step for path in folder.glob("[lp]*.ckpt")}
            save_checkpoint(make_checkpoint(2 * time + 4), folder)
            assert load_newest(folder, "this run")[1] == []
        assert len(list(folder.glob("refused-*"))) == (3 if kind == "folder" else 1)

    def test_all_may_be_refused(self, folder):
        for name in ("last.ckpt", "previous.ckpt"):
            (folder / name).write_text("nothing")
        found, refused = load_newest(folder, "this run")
        assert found is None
        assert [name in line for name, line in zip(("last.ckpt", "previous.ckpt"), refused, strict=True)] == [True] * 2


class TestWriting:
    def state(self, folder) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def test_a_link_to_a_folder_of_shards_is_replaced_like_a_file(self, folder, tmp_path):
        shards = tmp_path / "shards"
        (shards / "deeper").mkdir(parents=True)
        (folder / "previous.ckpt").unlink()
        (folder / "previous.ckpt").symlink_to(shards)
        save_checkpoint(make_checkpoint(3), folder)
        assert [load_checkpoint(folder / name).step for name in ("last.ckpt", "previous.ckpt")] == [3, 2]
        assert (shards / "deeper").is_dir()

    def test_a_full_disk_leaves_both_checkpoints_and_nothing_else(self, folder):
        before = self.state(folder)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))
        try:
            with pytest.raises(OSError, match=r"last\.ckpt could not be written \(File too large\): free some space"):
                save_checkpoint(make_checkpoint(3), folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert self.state(folder) == before

    @pytest.mark.parametrize("renames", [1, 2, 3])
    def test_killed_between_two_renames_the_newest_whole_checkpoint_is_found(self, folder, monkeypatch, renames):
        # The new file gets its name (1), the last one becomes the previous one (2), the new one becomes the last (3).
        replace, calls = os.replace, []

        class Killed(BaseException):
            pass

        def counted(*names):
            calls.append(names)
            if len(calls) == renames:
                raise Killed
            replace(*names)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", counted)
            with pytest.raises(Killed):
                save_checkpoint(make_checkpoint(3), folder)
        found, refused = load_newest(folder, "this run")
        assert refused == []
        assert found is not None
        assert found.step == (2 if renames == 1 else 3)
        save_checkpoint(make_checkpoint(4), folder)
        assert load_newest(folder, "this run")[0].step == 4
        assert load_checkpoint(folder / "previous.ckpt").step in (2, 3)

    def test_a_new_checkpoint_that_is_damaged_is_passed_over(self, folder):
        (folder / "new-last.ckpt").write_bytes((folder / "last.ckpt").read_bytes()[:500])
        found, (line,) = load_newest(folder, "this run")
        assert found is not None
        assert found.step == 2
        assert "new-last.ckpt is truncated" in line

    def test_there_is_a_whole_checkpoint_at_every_moment(self, folder, monkeypatch):
        replace, seen = os.replace, []

        def looked_at(*names):
            replace(*names)
            seen.append(load_newest(folder, "this run")[0].step)

        monkeypatch.setattr(os, "replace", looked_at)
        save_checkpoint(make_checkpoint(3), folder)
        assert seen == [3, 3, 3]
