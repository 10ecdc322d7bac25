from __future__ import annotations

import os

import pytest
import torch

pytest.importorskip("tests.training.requirements")
import numpy as np
from PIL import Image

from liere.data.augmentation import rand_augment
from liere.data.reading import image_files
from liere.data.reading.decoded_files import UnreadableError
from liere.data.reading.image_files import read_image
from liere.evaluation.evaluate import evaluate
from liere.evaluation.predictions import Predictions
from liere.training.fit import train
from tests.data.file_archives import WNIDS, middle_by_torchvision, picture
from tests.data.imagenet_files import damage, load_imagenet
from tests.data.sections import open_data
from tests.training.tiny import make_run, quiet

WORDS = torch.tensor([7, -8, 2**62, -(2**63), 0, 1, 2, 3])


@pytest.mark.parametrize("name", ["imagenet", "images"])
def test_files_of_a_split_are_those_of_its_folders(imagenet, name):
    data = load_imagenet(imagenet, "train", name=name)
    assert data.facts.classes == WNIDS
    assert (data.facts.channels, data.facts.image_size) == (3, (224, 224))
    assert data.facts.mean == (0.485, 0.456, 0.406)
    assert data.facts.std == (0.229, 0.224, 0.225)
    assert data.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    paths = [data.files[index] for index in range(len(data))]
    assert paths == sorted((imagenet / "train").glob("*/*.JPEG"))
    images, labels = load_imagenet(imagenet, "val", name=name, size=32).batch(range(15))
    assert images.shape == (15, 3, 32, 32)
    assert images.dtype == torch.uint8
    assert open_data(name, root=str(imagenet), size=96).facts.image_size == (96, 96)
    reds = images[:, 0].float().mean((1, 2))  # gray and CMYK images differ
    assert (reds - 40 - 70 * labels).abs()[labels.new_tensor([0, 3, 4, 5, 8, 9, 10, 13, 14])].max() < 3


@pytest.mark.parametrize("size", [224, 32, 100])
def test_test_images_are_the_middle_as_torchvision_takes_it(imagenet, size):
    data = load_imagenet(imagenet, "test", size=size)
    for index in range(5):
        image, label = data[index]
        with Image.open(data.files[index]) as file:
            assert torch.equal(image, middle_by_torchvision(file, size))
        assert label == 0


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """An image whose red is the column and whose green is the row."""
    imagenet_copy = tmp_path_factory.mktemp("maps")
    rows, columns = np.mgrid[:256, :256]
    image = Image.fromarray(np.stack([columns, rows, 0 * rows], axis=-1).astype(np.uint8))
    for split in ("train", "val"):
        for name in ("map", "other"):
            (imagenet_copy / split / name).mkdir(parents=True)
            image.save(imagenet_copy / split / name / "0.png")
    return imagenet_copy


def seen_part(image) -> tuple[float, float, bool]:
    """Return the width and height of the visible part of an image of `maps`, and whether it is mirrored."""
    red, green = image[0].float().mean(0), image[1].float().mean(1)
    widths, heights = red.diff()[8:-8].mean() * len(red), green.diff()[8:-8].mean() * len(green)
    return abs(float(widths)), float(heights), bool(widths < 0)


def test_training_images_are_random_parts(maps):
    data = load_imagenet(maps, name="images", size=64, flip=True, min_area=0.25)
    images = data.load([0] * 100, torch.arange(100)).images
    parts = [seen_part(image) for image in images]
    areas = [width * height / 256**2 for width, height, _ in parts]
    ratios = [width / height for width, height, _ in parts]
    assert 0.23 < min(areas) < 0.35
    assert 0.85 < max(areas) < 1.04
    assert 0.72 < min(ratios) < 0.8
    assert 1.25 < max(ratios) < 1.38
    assert 30 < sum(mirrored for *_, mirrored in parts) < 70
    lefts = images[:, 0].flatten(1).min(1).values.float()
    assert lefts.min() < 5
    assert lefts.max() > 80
    plain = load_imagenet(maps, name="images", size=64, min_area=0.25).load([0] * 100, torch.arange(100)).images
    assert not any(seen_part(image)[2] for image in plain)
    mirrored = torch.tensor([part[2] for part in parts]).view(-1, 1, 1, 1)
    assert torch.equal(torch.where(mirrored, plain.flip(-1), plain), images)


def test_with_all_of_the_area_an_image_is_resized_as_a_whole(maps):
    data = load_imagenet(maps, name="images", size=64, min_area=1.0)
    expected = np.asarray(read_image(data.files[0]).resize((64, 64), Image.Resampling.BILINEAR))
    for image in data.load([0] * 3, WORDS[:3]).images:
        assert torch.equal(image, torch.from_numpy(expected.copy()).permute(2, 0, 1))


def test_a_random_word_decides_everything(imagenet):
    data = load_imagenet(imagenet, size=48, flip=True, rand_augment=(2, 9))
    indices = list(range(8))
    state = torch.random.get_rng_state()
    one, other = (data.load(indices, WORDS) for _ in range(2))
    assert torch.equal(one.images, other.images)
    assert torch.equal(torch.random.get_rng_state(), state)
    alone = [data.load([index], WORDS[index : index + 1]).images[0] for index in indices]
    assert torch.equal(torch.stack(alone), one.images)
    assert not torch.equal(data.load(indices, WORDS + 1).images, one.images)
    plain = load_imagenet(imagenet, size=48, flip=True).load(indices, WORDS).images
    expected = torch.stack([rand_augment(image, int(word), 2, 9) for image, word in zip(plain, WORDS, strict=True)])
    assert torch.equal(one.images, expected)
    assert not torch.equal(plain, expected)


@pytest.mark.parametrize("content", [b"", b"not a JPEG", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n" + bytes(40)])
def test_whatever_is_in_a_file(imagenet_copy, capsys, content):
    data = load_imagenet(imagenet_copy, size=32)
    data.files[1].write_bytes(content)
    data.files[3].unlink()
    assert data.load(range(5)).ids.tolist() == [0, 2, 4]
    lines = capsys.readouterr().err.splitlines()
    assert [str(data.files[index]) in line for index, line in zip((1, 3), lines, strict=True)] == [True, True]
    assert "No such file" in lines[1]


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"


def test_a_program_in_a_file_is_not_run_whatever_its_name(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("a program was started")

    for name in ("Popen", "run", "check_call"):
        monkeypatch.setattr(f"subprocess.{name}", fail)
    (tmp_path / "photo.jpg").write_bytes(POSTSCRIPT)
    with pytest.raises(UnreadableError, match="not in any of the formats JPEG, PNG"):
        read_image(tmp_path / "photo.jpg")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP"])
def test_images_of_all_known_formats_are_read_whatever_their_name(tmp_path, kind):
    Image.new("RGB", (5, 4), (200, 30, 45)).save(tmp_path / "photo.jpg", format=kind)
    assert read_image(tmp_path / "photo.jpg").size == (5, 4)


def test_pictures_with_very_many_pixels_are_refused_before_they_are_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(image_files, "MAX_PIXELS", 900)
    Image.new("1", (31, 30)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image.Image, "convert", None)
    with pytest.raises(UnreadableError, match="it has 31 x 30 pixels, more than 900: scale it down"):
        read_image(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(UnreadableError, match="it has more than 900 pixels: scale it down"):
        read_image(tmp_path / "bomb.png")


def test_files_and_sides_that_would_take_too_much_memory_are_refused(tmp_path):
    Image.new("1", (2, image_files.MAX_SIDE + 1)).save(tmp_path / "tall.png")
    with pytest.raises(UnreadableError, match="it has a side of 100,001 pixels, more than 100,000: scale it down"):
        read_image(tmp_path / "tall.png")
    # Pillow reads a chunk as a whole; the file is sparse and takes no space on disk.
    Image.new("RGB", (8, 8)).save(tmp_path / "long.png")
    content = (tmp_path / "long.png").read_bytes()
    start = content.index(b"IDAT") - 4
    (tmp_path / "long.png").write_bytes(content[:start] + (10**9).to_bytes(4) + b"teSt")
    os.truncate(tmp_path / "long.png", 2 * 10**9)
    with pytest.raises(UnreadableError, match=r"it has 2,000,000,000 bytes, more than 500,000,000: compress it"):
        read_image(tmp_path / "long.png")


def test_holes_are_read_as_zeros(tmp_path):
    """Copies of black images may have them."""
    file = tmp_path / "image.bmp"
    Image.new("RGB", (200, 200)).save(file)
    size = file.stat().st_size
    os.truncate(file, 54)
    os.truncate(file, size)
    assert read_image(file).getextrema() == ((0, 0),) * 3


@pytest.mark.parametrize("name", ["pipe.jpg", "zero.png", "folder.bmp"])
def test_what_is_no_regular_file_is_named_and_not_waited_for(imagenet_copy, capsys, name):
    place = imagenet_copy / "train" / WNIDS[0] / name
    if name == "pipe.jpg":
        os.mkfifo(place)
    elif name == "zero.png":
        place.symlink_to("/dev/zero")
    else:
        (imagenet_copy / "folder").mkdir()
        place.symlink_to(imagenet_copy / "folder")
    data = open_data("images", root=str(imagenet_copy), size=16).load("train")
    assert len(data.load(range(len(data))).ids) == len(data) - 1
    assert f"cannot read {place}" in capsys.readouterr().err


def test_unusual_pixels(tmp_path):
    levels = np.arange(256, dtype=np.uint16).reshape(16, 16) << 8
    Image.fromarray(levels).save(tmp_path / "deep.png")
    (tmp_path / "deep.pgm").write_bytes(b"P5 16 16 65535\n" + levels.astype(">u2").tobytes())
    for name in ("deep.png", "deep.pgm"):
        assert np.array_equal(np.asarray(read_image(tmp_path / name))[..., 1], levels >> 8)
    Image.fromarray(levels.astype(np.float32)).save(tmp_path / "float.tiff")
    with pytest.raises(UnreadableError, match="mode F"):
        read_image(tmp_path / "float.tiff")
    image = picture(1, 0, (20, 10)).convert("RGBA")
    image.putalpha(7)
    image.save(tmp_path / "clear.png")
    assert np.array_equal(np.asarray(read_image(tmp_path / "clear.png")), np.asarray(picture(1, 0, (20, 10))))
    palette = picture(1, 0, (20, 10)).quantize(16)
    palette.save(tmp_path / "palette.png", transparency=b"\0" * 16)
    assert read_image(tmp_path / "palette.png").mode == "RGB"


@quiet
def test_a_run_trains_and_is_tested(imagenet_copy, tmp_path, capsys):
    damage(imagenet_copy, [1])
    run = make_run(
        tmp_path / "run",
        data={
            "name": "imagenet",
            "root": str(imagenet_copy),
            "size": 32,
            "flip": True,
            "rand_augment": [2, 9],
        },
        model__patch_size=16,
        training__examples=16,
    )
    assert train(run, say=print)["step"] == 2
    (record,) = evaluate(run, [48], batch_size=4, say=print)
    assert record["examples"] == 15
    assert Predictions.read(run.folder / record["predictions"]).ids == list(range(15))
    assert f"{WNIDS[0]}_1.JPEG" in capsys.readouterr().err
