from __future__ import annotations

import io

import pytest
import torch

pytest.importorskip("tests.training.requirements")

import numpy as np
from matplotlib.image import imread

from liere.cli import main
from liere.evaluation.evaluate import evaluate
from liere.report import task_pictures
from liere.report.contact_sheet import draw_contact_sheet
from liere.report.pixels import flat_picture, png
from liere.report.task_pictures import make_pictures
from liere.runs.config_file import parse_config
from liere.runs.run import Run, create_run
from liere.training.fit import train
from tests.training.tiny import quiet

pytestmark = quiet
MODEL = {"encoding": "liere8", "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 16}
TRAINING = {"examples": 8, "batch_size": 4, "validate_every": 2, "validation_examples": 4}


def npz(folder, kind: str, dtype, *shape: int) -> str:
    random = np.random.default_rng(0)
    arrays = (255 * random.random((40, *shape))).astype(dtype)
    np.savez(folder / "mine.npz", **{kind: arrays, "labels": np.arange(40) % 2})
    return str(folder / "mine.npz")


class TestFlatPicture:
    def test_grey_becomes_three_equal_channels(self):
        image = torch.arange(16, dtype=torch.uint8).view(1, 4, 4)
        assert torch.equal(flat_picture(image, 2), image.expand(3, -1, -1))

    def test_the_middle_slice_of_a_volume_and_the_first_of_several_clips_are_shown(self):
        clips = torch.randint(256, (2, 3, 5, 4, 4), dtype=torch.uint8)
        assert torch.equal(flat_picture(clips, 3), clips[0, :, 2])
        assert torch.equal(flat_picture(clips[1], 3), clips[1, :, 2])

    def test_floats_are_stretched(self):
        image = torch.tensor([[[-3.0, 1.0]]])
        assert flat_picture(image, 2)[0].tolist() == [[0, 255]]
        assert flat_picture(torch.zeros(1, 2, 2), 2).max() == 0

    def test_a_png_has_the_pixels(self):
        picture = torch.randint(256, (3, 4, 5), dtype=torch.uint8)
        pixels = imread(io.BytesIO(png(picture)), format="png")[..., :3]
        assert np.array_equal((255 * pixels).round(), picture.permute(1, 2, 0).numpy())


@pytest.mark.parametrize(
    ("kind", "dtype", "shape", "patch"),
    [
        ("images", np.uint8, (8, 8), 4),
        ("images", np.float32, (8, 8, 2), 4),
        ("volumes", np.float32, (4, 8, 8), (2, 4, 4)),
        ("videos", np.uint8, (4, 8, 8, 3), (1, 4, 4)),
    ],
)
def test_a_report_has_pictures_of_any_data(tmp_path, kind, dtype, shape, patch):
    data = {"name": "npz", "root": npz(tmp_path, kind, dtype, *shape)}
    content = {"data": data, "model": MODEL | {"patch_size": patch}, "training": TRAINING, "hardware": {"threads": 1}}
    run = create_run(tmp_path / "run", parse_config(content))
    train(run, say=print)
    evaluate(run, [8], say=print)
    pictures = make_pictures([run], [8, 16])
    assert sorted(sample.caption for sample in pictures.samples) == 2 * ["Class: 0."] + 2 * ["Class: 1."]
    assert {row.size: len(row.layers) for row in pictures.attention} == {8: 2, 16: 2}


def test_no_attention_is_shown_of_images_larger_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(task_pictures, "attention_of", lambda run, size: [b""])
    data = {"name": "npz", "root": npz(tmp_path, "images", np.uint8, 8, 8)}
    run = create_run(tmp_path / "run", parse_config({"data": data, "model": MODEL | {"patch_size": 4}}))
    assert [row.size for row in make_pictures([run], [8, 99_996]).attention] == [8]


def test_a_sheet_shows_each_example_at_its_place(tmp_path):
    """Red, blue and six times green: two rows, because six fit in one."""
    colors = np.array([[255, 0, 0], [0, 0, 255], *[[0, 128, 0]] * 6], np.uint8)
    images = np.repeat(colors, 5, axis=0)[:, None, None].repeat(8, 1).repeat(8, 2)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(40) % 2)
    data = parse_config({"data": {"name": "npz", "root": str(tmp_path / "a.npz")}, "model": MODEL}).data.load("train")
    chosen = [place * len(data) // 8 for place in range(8)]
    draw_contact_sheet(data, 8, tmp_path / "sheet.png", "title")
    picture = (255 * imread(tmp_path / "sheet.png")[..., :3]).round().astype(int)
    height, width = picture.shape[:2]
    assert (width, height) == (6 * 285, round(2 * 150 * 2.15))
    for place, color in enumerate(data.load(chosen).images[:, :, 0, 0].tolist()):
        middle = picture[int((0.55, 0.97)[place // 6] * height) - 60, int((place % 6 + 0.5) * width / 6)]
        assert middle.tolist() == color
    assert (picture[int(0.8 * height), int(0.9 * width)] == 255).all()  # empty after the eighth picture


@pytest.mark.parametrize("name", ["\udcff", "$\\frac", "a\nb\x1b[2J", "long " * 20_000])
def test_classes_may_have_any_name(tmp_path, monkeypatch, name):
    monkeypatch.setattr(task_pictures, "attention_of", lambda run, size: [b""])
    labels = np.arange(40) % 2
    np.savez(tmp_path / "a.npz", images=np.zeros((40, 8, 8), np.uint8), labels=labels, classes=np.array([name, "b"]))
    config = parse_config({"data": {"name": "npz", "root": str(tmp_path / "a.npz")}, "model": MODEL})
    draw_contact_sheet(config.data.load("test"), 2, tmp_path / "sheet.png", "title")
    assert (tmp_path / "sheet.png").stat().st_size < 10**6
    captions = {sample.caption for sample in make_pictures([Run(tmp_path, config)], []).samples}
    assert all(caption.isprintable() and len(caption) < 1_000 for caption in captions)


def test_any_data_set_can_be_looked_at(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    root = npz(tmp_path, "volumes", np.float32, 4, 8, 8)
    assert main(["data", "preview", "npz", "--root", root, "--count", "5", "--split", "test"]) == 0
    assert capsys.readouterr().out == "wrote npz-test-8.png\n"
    assert imread(tmp_path / "npz-test-8.png").shape[:2] == (
        round(150 * 2.15),
        round(150 * 1.9 * 4),
    )  # all four of them
    assert main(["data", "preview", "npz", "--root", root, "--colors", "random"]) == 2
    assert "colors does not apply to npz" in capsys.readouterr().err
    assert main(["data", "preview", "images"]) == 2
    assert "data.root is missing" in capsys.readouterr().err
