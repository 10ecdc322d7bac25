"""Models of this library in folders and repositories: they come back the same, and reading executes no code."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from liere import create_model
from liere.encodings import PositionEncoding
from liere.integrations import hub
from liere.integrations.hub import from_pretrained, push_to_hub, save_pretrained
from liere.integrations.hub_description import describe

pytest.importorskip("safetensors")
SMALL = {
    "dim": 24,
    "depth": 2,
    "heads": 2,
    "mlp_dim": 20,
    "image_size": (8, 12),
    "patch_size": (4, 2),
    "num_classes": 3,
}
CASES = [
    {"encoding": "liere8", "share_heads": True, "init_scale": 1.5},
    {"encoding": "liere", "pool": "mean", "cls_position": "none", "num_registers": 0, "recompute": True},
    {"encoding": "rope_mixed", "num_registers": 2, "qk_norm": True, "qkv_bias": True, "cls_position": "center"},
    {
        "encoding": "absolute",
        "init_std": 0.5,
        "in_channels": 1,
        "dropout": 0.25,
        "attn_dropout": 0.5,
        "drop_path": 0.125,
    },
    {"encoding": "sincos", "temperature": 100.0, "attention_scale": "log"},
    {"encoding": "visionllama", "position_policy": "rescale", "dim": 32},
    {"encoding": "none"},
    {"encoding": "liere4", "position_shift": 0.5, "position_noise": 0.25, "spacing": (2.0, 0.5), "num_classes": 0},
]


def make(**options):
    torch.manual_seed(0)
    return create_model(**(SMALL | options)).eval()


@pytest.mark.parametrize("options", CASES, ids=lambda options: options["encoding"])
def test_round_trip(options, tmp_path):
    model = make(**options)
    loaded = from_pretrained(save_pretrained(model, tmp_path / "new" / "folder"))
    assert str(loaded) == str(model)
    assert describe(loaded) == describe(model)
    x = torch.randn(2, model.patch_embed.in_channels, 8, 12)
    with torch.no_grad():
        assert torch.equal(loaded(x), model(x))
    for name, value in describe(model).items():
        if name in options:
            assert (tuple(value) if isinstance(value, list) else value) == options[name] or name == "encoding"
    for name, value in describe(model)["encoding_options"].items():
        assert options.get(name, value) == value


def test_weights_that_are_tied_by_hand_are_saved(tmp_path):
    model = make(encoding="liere8")
    model.blocks[1].norm1.weight = model.blocks[0].norm1.weight
    loaded = from_pretrained(save_pretrained(model, tmp_path))
    assert all(torch.equal(loaded.state_dict()[name], weight) for name, weight in model.state_dict().items())


def test_a_card_is_written_and_kept(tmp_path):
    save_pretrained(make(encoding="liere8"), tmp_path)
    card = tmp_path / "README.md"
    assert card.read_text().startswith("---\nlibrary_name: liere\n")
    card.write_text("mine")
    save_pretrained(make(encoding="liere8"), tmp_path)
    assert card.read_text() == "mine"


@pytest.mark.usefixtures("no_shape_checks")
def test_what_cannot_be_saved(tmp_path):
    class Own(PositionEncoding):
        name = "own"

    with pytest.raises(ValueError, match="encoding Own is not part of this library"):
        save_pretrained(make(encoding=Own()), tmp_path)
    with pytest.raises(TypeError, match=r"must come from liere.create_model, got Linear"):
        save_pretrained(torch.nn.Linear(1, 1), tmp_path)
    assert not list(tmp_path.iterdir())


def test_encodings_in_files_are_not_imported(tmp_path, monkeypatch):
    save_pretrained(make(encoding="liere8"), tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"]["encoding"] = "evil:Class"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"config.json names the encoding 'evil:Class': choose from absolute, liere"):
        from_pretrained(tmp_path)
    assert "evil" not in sys.modules


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": "wide"}, "config.json is damaged: save the model again"),
        ({"dim": 25}, "config.json is damaged: save the model again"),
        ({"extra": 1}, "config.json is damaged: save the model again"),
        ({"encoding_options": {"block_size": "8"}}, "config.json is damaged: save the model again"),
        ({"encoding_options": 8}, "config.json is damaged: save the model again"),
        ({"image_size": None}, "config.json is damaged: save the model again"),
        ({"encoding": "liere999"}, "config.json is damaged: save the model again"),
        ({"encoding": 8}, "names the encoding 8"),
        ({"encoding": "x" * 100_000}, "config.json is damaged: save the model again"),
        ({"encoding": [8] * 100_000}, "names the encoding"),
        ({"depth": 10**9}, r"describes a model with at least [\d,]+ parameters"),
        ({"num_classes": 10**12}, r"describes a model with at least [\d,]+ parameters"),
        ({"num_registers": 10**12}, r"describes a model with at least [\d,]+ parameters"),
        ({"encoding": "absolute", "encoding_options": {}, "image_size": [4 * 10**6, 2 * 10**6]}, "describes a model"),
        ({"spacing": [float("nan"), 1]}, "config.json is damaged: save the model again"),
        ({"num_classes": 4}, "do not fit its config.json: save the model again"),
    ],
    ids=str,
)
def test_damaged_configurations(change, message, tmp_path):
    save_pretrained(make(encoding="liere8"), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"] |= change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message) as raised:
        from_pretrained(tmp_path)
    assert len(str(raised.value)) < 2_000


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": {}}', '{"library": "liere", "model": []}'])
def test_files_that_are_no_configuration(text, tmp_path):
    save_pretrained(make(encoding="liere8"), tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config.json is (damaged|not the configuration of a model of liere)"):
        from_pretrained(tmp_path)


def test_missing_files(tmp_path):
    with pytest.raises(ValueError, match=r"has no config\.json: pass a folder that"):
        from_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder nowhere: check the path"):
        from_pretrained("nowhere")


def test_repositories(tmp_path, monkeypatch):
    stored, model = {}, make(encoding="liere8")

    def upload(*, repo_id, folder_path, commit_message):
        stored[repo_id] = {path.name: path.read_bytes() for path in sorted(tmp_path.__class__(folder_path).iterdir())}
        return SimpleNamespace(commit_url=f"address of {repo_id}: {commit_message}")

    def download(repo, *, revision, allow_patterns):
        assert (revision, allow_patterns) == ("v1", ["config.json", "model.safetensors"])
        for name in allow_patterns:
            (tmp_path / name).write_bytes(stored[repo][name])
        return str(tmp_path)

    created = []
    create = lambda repo, **options: created.append((repo, options))  # noqa: E731
    fake = SimpleNamespace(create_repo=create, upload_folder=upload, snapshot_download=download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    monkeypatch.setattr(hub, "require", lambda *names, extra=None: None)
    assert push_to_hub(model, "me/model", private=True, message="first") == "address of me/model: first"
    assert created == [("me/model", {"private": True, "exist_ok": True})]
    assert set(stored["me/model"]) == {"README.md", "config.json", "model.safetensors"}
    loaded = from_pretrained("me/model", revision="v1")
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), model.parameters(), strict=True))


def test_the_library_does_not_import_the_hub():
    script = "import sys, liere, liere.integrations.hub; sys.exit('huggingface_hub' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_weights_that_are_no_real_numbers_are_one_error(tmp_path):
    from safetensors.torch import load_file, save_file

    path = save_pretrained(make(encoding="liere8"), tmp_path) / "model.safetensors"
    weights = load_file(path)
    for name, dtype in [
        ("head.weight", torch.int64),
        ("head.weight", torch.bool),
        ("head.weight", torch.complex64),
        ("_extra_state", torch.complex64),
    ]:
        save_file({**weights, name: weights[name].to(dtype)}, path)
        with pytest.raises(ValueError, match=rf"has the weight {name} of type {dtype}, but weights must be float16, b"):
            from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_keep_their_type(dtype, tmp_path):
    model = make(encoding="liere8").to(dtype)
    model.encoding.float()
    loaded = from_pretrained(save_pretrained(model, tmp_path))
    assert {name: value.dtype for name, value in loaded.state_dict().items()} == {
        name: value.dtype for name, value in model.state_dict().items()
    }
    x = torch.randn(2, 3, 8, 12, dtype=dtype)
    with torch.no_grad():
        assert torch.equal(loaded(x), model(x))


@pytest.mark.parametrize(
    "function", [lambda: save_pretrained(make(encoding="none"), "x"), lambda: from_pretrained("x")]
)
def test_without_safetensors_the_extra_of_sharing_is_named(function, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"safetensors is not installed: pip install 'liere\[hub\]'"):
        function()
