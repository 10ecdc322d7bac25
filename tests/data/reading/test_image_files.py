from __future__ import annotations

import os
import pickle
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

pytest.importorskip("tests.training.requirements")
from liere.data.augmentation import rand_augment
from liere.data.batches import EvaluationBatches, ExampleOrder, TrainingBatches
from liere.data.loader import make_loader
from liere.data.reading import crops, image_files
from liere.data.reading.crops import crop_middle, draw_box, uniform_numbers
from liere.data.reading.decoded_files import UnreadableError
from liere.data.reading.image_files import read_image
from liere.evaluation.evaluate import evaluate
from liere.evaluation.predictions import Predictions
from liere.optional.torchvision_ops import import_with_torchvision
from liere.training.fit import train
from tests.data.file_archives import WNIDS, middle_by_torchvision, picture, write_imagenet
from tests.data.sections import open_data
from tests.training.tiny import make_run, quiet

WORDS = torch.tensor([7, -8, 2**62, -(2**63), 0, 1, 2, 3])


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return write_imagenet(tmp_path_factory.mktemp("images") / "imagenet")


@pytest.fixture
def root(archive, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(archive, tmp_path / "imagenet")
    return tmp_path / "imagenet"


def load(root, split="train", *, name="imagenet", size=None, length=None, **fields):
    return open_data(name, root=str(root), **fields).load(split, size=size, length=length)


def damage(root, numbers, split="train", wnid=WNIDS[0]):
    files = sorted((root / split / wnid).glob("*.JPEG"))
    for number in numbers:
        files[number].write_bytes(files[number].read_bytes()[:200])
    return [files[number] for number in numbers]


@pytest.mark.parametrize("name", ["imagenet", "images"])
def test_files_of_a_split_are_those_of_its_folders(archive, name):
    data = load(archive, "train", name=name)
    assert data.facts.classes == WNIDS
    assert (data.facts.channels, data.facts.image_size) == (3, (224, 224))
    assert data.facts.mean == (0.485, 0.456, 0.406)
    assert data.facts.std == (0.229, 0.224, 0.225)
    assert data.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    paths = [data.files[index] for index in range(len(data))]
    assert paths == sorted((archive / "train").glob("*/*.JPEG"))
    images, labels = load(archive, "val", name=name, size=32).batch(range(15))
    assert images.shape == (15, 3, 32, 32)
    assert images.dtype == torch.uint8
    assert open_data(name, root=str(archive), size=96).facts.image_size == (96, 96)
    reds = images[:, 0].float().mean((1, 2))  # of gray and CMYK images it is another one
    assert (reds - 40 - 70 * labels).abs()[labels.new_tensor([0, 3, 4, 5, 8, 9, 10, 13, 14])].max() < 3


@pytest.mark.parametrize("size", [224, 32, 100])
def test_test_images_are_the_middle_as_torchvision_takes_it(archive, size):
    data = load(archive, "test", size=size)
    for index in range(5):
        image, label = data[index]
        with Image.open(data.files[index]) as file:
            assert torch.equal(image, middle_by_torchvision(file, size))
        assert label == 0


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """An image whose red tells the column, and green the row."""
    root = tmp_path_factory.mktemp("maps")
    rows, columns = np.mgrid[:256, :256]
    image = Image.fromarray(np.stack([columns, rows, 0 * rows], axis=-1).astype(np.uint8))
    for split in ("train", "val"):
        for name in ("map", "other"):
            (root / split / name).mkdir(parents=True)
            image.save(root / split / name / "0.png")
    return root


def seen_part(image) -> tuple[float, float, bool]:
    """Return width and height of the part that an image of `maps` shows, and whether it is mirrored."""
    red, green = image[0].float().mean(0), image[1].float().mean(1)
    widths, heights = red.diff()[8:-8].mean() * len(red), green.diff()[8:-8].mean() * len(green)
    return abs(float(widths)), float(heights), bool(widths < 0)


def test_training_images_are_random_parts(maps):
    data = load(maps, name="images", size=64, flip=True, min_area=0.25)
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
    plain = load(maps, name="images", size=64, min_area=0.25).load([0] * 100, torch.arange(100)).images
    assert not any(seen_part(image)[2] for image in plain)
    mirrored = torch.tensor([part[2] for part in parts]).view(-1, 1, 1, 1)
    assert torch.equal(torch.where(mirrored, plain.flip(-1), plain), images)


def test_with_all_of_the_area_an_image_is_resized_as_a_whole(maps):
    data = load(maps, name="images", size=64, min_area=1.0)
    expected = np.asarray(read_image(data.files[0]).resize((64, 64), Image.Resampling.BILINEAR))
    for image in data.load([0] * 3, WORDS[:3]).images:
        assert torch.equal(image, torch.from_numpy(expected.copy()).permute(2, 0, 1))


@given(st.integers(1, 500), st.integers(1, 500), st.integers(-(2**63), 2**63 - 1), st.floats(0.01, 1))
def test_boxes_are_inside(width, height, word, min_area):
    left, top, right, bottom = draw_box(width, height, uniform_numbers(word, 40), min_area)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height


def test_boxes_are_distributed_as_those_of_torchvision():
    transforms = import_with_torchvision("torchvision.transforms")
    ours = torch.tensor([draw_box(300, 200, uniform_numbers(word, 40), 0.08) for word in range(1000)]).float()
    ours = torch.stack([ours[:, 0], ours[:, 1], ours[:, 2] - ours[:, 0], ours[:, 3] - ours[:, 1]], 1)
    blank = torch.zeros(1, 200, 300)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs = torch.tensor(
            [transforms.RandomResizedCrop.get_params(blank, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(1000)]
        ).float()
    theirs = theirs[:, [1, 0, 3, 2]]
    errors = (ours.var(0) / 1000 + theirs.var(0) / 1000).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() / errors).max() < 4
    torch.testing.assert_close(ours.std(0), theirs.std(0), rtol=0.12, atol=0)


def test_a_random_word_decides_everything(archive):
    data = load(archive, size=48, flip=True, rand_augment=(2, 9))
    indices = list(range(8))
    state = torch.random.get_rng_state()
    one, other = (data.load(indices, WORDS) for _ in range(2))
    assert torch.equal(one.images, other.images)
    assert torch.equal(torch.random.get_rng_state(), state)
    alone = [data.load([index], WORDS[index : index + 1]).images[0] for index in indices]
    assert torch.equal(torch.stack(alone), one.images)
    assert not torch.equal(data.load(indices, WORDS + 1).images, one.images)
    plain = load(archive, size=48, flip=True).load(indices, WORDS).images
    expected = torch.stack([rand_augment(image, int(word), 2, 9) for image, word in zip(plain, WORDS, strict=True)])
    assert torch.equal(one.images, expected)
    assert not torch.equal(plain, expected)


def test_workers_do_not_matter(archive):
    data = pickle.loads(pickle.dumps(load(archive, size=32, flip=True, rand_augment=(1, 5))))
    batches = TrainingBatches(ExampleOrder(len(data), 3), range(4), 6)
    one, other = (list(make_loader(data, batches, workers=workers)) for workers in (0, 2))
    assert len(one) == 4
    for first, second in zip(one, other, strict=True):
        assert all(map(torch.equal, first, second))


def test_a_damaged_file_is_left_out_and_named_once(root, capsys):
    (path,) = damage(root, [2])
    data = load(root, size=32)
    for words in (None, torch.arange(4)):
        batch = data.load([0, 2, 3, 7], words)
        assert batch.ids.tolist() == [0, 3, 7]
        assert batch.labels.tolist() == [0, 0, 1]
        assert batch.images.shape == (3, 3, 32, 32)
    whole = data.load([0, 3, 7], torch.tensor([0, 2, 3]))
    assert torch.equal(batch.images, whole.images)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"liere: warning: cannot read {path} (")
    assert line.endswith("): skipped, 1 of at most 10")


@pytest.mark.parametrize("content", [b"", b"not a JPEG", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n" + bytes(40)])
def test_whatever_is_in_a_file(root, capsys, content):
    data = load(root, size=32)
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
    with pytest.raises(UnreadableError, match="none of JPEG, PNG"):
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


@pytest.mark.parametrize("size", [(30_000, 2), (1, 60_000)])
def test_a_long_strip_takes_no_more_memory_than_others(size, monkeypatch):
    strip = Image.linear_gradient("L").resize(size).convert("RGB")
    monkeypatch.setattr(crops, "MOST_RESIZED", 10**6)
    assert crop_middle(strip, 224).size == (224, 224)


def test_only_the_middle_of_a_strip_is_resized_and_it_is_the_same(monkeypatch):
    image = picture(1, 0, (90, 40))
    whole = np.asarray(crop_middle(image, 32)).astype(int)
    monkeypatch.setattr(crops, "MOST_RESIZED", 0)
    assert np.abs(np.asarray(crop_middle(image, 32)) - whole).max() <= 1


@pytest.mark.parametrize("name", ["pipe.jpg", "zero.png", "folder.bmp"])
def test_what_is_no_regular_file_is_named_and_not_waited_for(root, capsys, name):
    place = root / "train" / WNIDS[0] / name
    if name == "pipe.jpg":
        os.mkfifo(place)
    elif name == "zero.png":
        place.symlink_to("/dev/zero")
    else:
        (root / "folder").mkdir()
        place.symlink_to(root / "folder")
    data = open_data("images", root=str(root), size=16).load("train")
    assert len(data.load(range(len(data))).ids) == len(data) - 1
    assert f"cannot read {place}" in capsys.readouterr().err


def test_a_single_class_is_told(tmp_path):
    write_imagenet(tmp_path, WNIDS[:1])
    config = open_data("images", root=str(tmp_path), size=16)
    for load in (lambda: config.facts, lambda: config.load("train")):
        with pytest.raises(ValueError, match=f"has a single class, '{WNIDS[0]}': there is nothing to learn"):
            load()


def test_a_batch_is_never_empty(root, capsys):
    damage(root, [1, 2, 3])
    data = load(root, size=32)
    batch = data.load([1, 2], torch.tensor([5, 6]))
    assert batch.ids.tolist() == [4]
    assert torch.equal(batch.images, data.load([4], torch.tensor([6])).images)
    image, label = load(root, size=32)[1]
    assert label == 0
    assert torch.equal(image, data[4][0])
    damage(root, range(5), wnid=WNIDS[2])
    assert load(root, size=32).load([14]).ids.tolist() == [0]


def test_no_readable_file_at_all(root):
    for wnid in WNIDS:
        damage(root, range(5), wnid=wnid)
    with pytest.raises(ValueError, match=r"none of the 15 files of .*train can be read"):
        load(root, size=32, max_unreadable=15).load([3, 4])


@pytest.mark.parametrize("workers", [0, 2])
def test_too_many_damaged_files_end_it(root, capfd, workers):
    damage(root, [0, 1, 3])
    data = load(root, size=32, max_unreadable=2)
    batches = EvaluationBatches(len(data), 1)
    with pytest.raises(ValueError, match=r"data.max_unreadable is 2") as raised:
        list(make_loader(data, batches, workers=workers))
    assert "\n" not in str(raised.value)
    assert str(root / "train" / WNIDS[0]) in str(raised.value)
    lines = capfd.readouterr().err.splitlines()
    assert len([line for line in lines if "warning: cannot read" in line]) == 2


def test_workers_count_together(root, capfd):
    paths = damage(root, [0, 1, 3])
    data = load(root, size=32, max_unreadable=3)
    for _ in range(2):
        ids = [batch.ids for batch in make_loader(data, EvaluationBatches(len(data), 3), workers=2)]
    assert torch.cat(ids).tolist() == [2, *range(4, 15)]
    lines = [line for line in capfd.readouterr().err.splitlines() if "cannot read" in line]
    assert len(lines) == 3
    assert all(sum(str(path) in line for line in lines) == 1 for path in paths)


@pytest.mark.parametrize("allowed", [0, 1])
def test_the_limit_is_exact(root, allowed, capsys):
    damage(root, range(allowed))
    load(root, size=32, max_unreadable=allowed).load(range(15))
    damage(root, [4])
    with pytest.raises(ValueError, match=rf"{WNIDS[0]}_4.JPEG .*data.max_unreadable is {allowed}"):
        load(root, size=32, max_unreadable=allowed).load(range(15))


def test_unusual_pixels(tmp_path):
    levels = np.arange(256, dtype=np.uint16).reshape(16, 16) << 8
    Image.fromarray(levels).save(tmp_path / "deep.png")
    assert np.array_equal(np.asarray(read_image(tmp_path / "deep.png"))[..., 1], levels >> 8)
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


def test_other_files_are_ignored(root):
    folder = root / "train" / WNIDS[1]
    for name in ("._n01443537_0.JPEG", "Thumbs.db", "notes.txt", "archive.jpg.zip"):
        (folder / name).write_bytes(b"?")
    (root / "train" / ".ipynb_checkpoints").mkdir()
    (root / "train" / "README.txt").write_text("?")
    (folder / "more").mkdir()
    picture(1, 0, (20, 20)).save(folder / "more" / "one.PNG")
    data = load(root)
    assert data.facts.classes == WNIDS
    assert len(data) == 16
    assert str(data.files[5]).endswith("n01443537/more/one.PNG")


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("asked", ["train", "val", "test"])
def test_a_missing_class_folder_is_named(root, split, asked):
    shutil.copytree(root / "val", root / "test")
    shutil.rmtree(root / split / WNIDS[1])
    with pytest.raises(ValueError, match=f"{split} has no class folder {WNIDS[1]}"):
        load(root, asked)
    with pytest.raises(ValueError, match=WNIDS[1]):
        _ = open_data("imagenet", root=str(root)).facts


@pytest.mark.parametrize("split", ["train", "val"])
def test_an_empty_class_folder_is_named(root, split):
    for file in (root / split / WNIDS[2]).glob("*.JPEG"):
        file.unlink()
    with pytest.raises(ValueError, match=rf"no file that ends in .jpg.* in .*{split}.{WNIDS[2]}"):
        load(root, "train")


def test_folders_that_are_not_there(root):
    with pytest.raises(FileNotFoundError, match=r"there is no folder nowhere.train: .*--data.root"):
        load("nowhere")
    shutil.rmtree(root / "val")
    with pytest.raises(FileNotFoundError, match=r"neither .*val nor .*test: .*--data.holdout"):
        load(root, "val")
    assert len(load(root, "val", holdout=0.2)) == 3
    assert len(load(root, "train")) == 15
    with pytest.raises(FileNotFoundError, match=r"neither .*val nor .*test"):
        load(root, "test", holdout=0.2)
    (root / "val").mkdir()
    (root / "val" / "ILSVRC2012_val_00000001.JPEG").write_bytes(b"?")
    with pytest.raises(ValueError, match=r"val has no class folders: sort"):
        load(root, "train")


def test_what_a_model_has_to_know_of_imagenet_is_known_without_it():
    facts = open_data("imagenet", root="nowhere").facts
    assert (len(facts.classes), facts.image_size, facts.mean) == (1000, (224, 224), (0.485, 0.456, 0.406))
    with pytest.raises(FileNotFoundError, match=r"nowhere.train"):
        _ = open_data("images", root="nowhere").facts


def test_splits_stand_in_for_each_other(root):
    def folder(split, **fields):
        return load(root, split, **fields).files[0].relative_to(root).parts[0]

    assert [folder(split) for split in ("train", "val", "test")] == ["train", "val", "val"]
    shutil.copytree(root / "val", root / "test")
    assert [folder(split) for split in ("train", "val", "test")] == ["train", "val", "test"]
    assert [folder(split, holdout=0.2) for split in ("train", "val", "test")] == ["train", "train", "test"]
    shutil.rmtree(root / "val")
    assert [folder(split) for split in ("train", "val", "test")] == ["train", "test", "test"]


def test_held_out_examples_fractions_and_lengths(archive):
    def paths(split, **fields):
        data = load(archive, split, **fields)
        assert [WNIDS[label] for label in data.labels] == [data.files[i].parent.name for i in range(len(data))]
        return [data.files[index] for index in range(len(data))]

    kept, held_out = paths("train", holdout=0.4), paths("val", holdout=0.4)
    assert (len(kept), len(held_out)) == (9, 6)
    assert sorted(kept + held_out) == paths("train")
    assert len(paths("train", fraction=0.4)) == 6
    assert set(paths("train", fraction=0.4, holdout=0.4)) < set(kept)
    assert paths("train", length=4) == paths("train")[:4]
    assert paths("test", length=3) == paths("test")[::5]


@quiet
def test_a_run_trains_and_is_tested(root, tmp_path, capsys):
    damage(root, [1])
    run = make_run(
        tmp_path / "run",
        data={"name": "imagenet", "root": str(root), "size": 32, "flip": True, "rand_augment": [2, 9]},
        model__patch_size=16,
        training__examples=16,
    )
    assert train(run, say=print)["step"] == 2
    (record,) = evaluate(run, [48], batch_size=4, say=print)
    assert record["examples"] == 15
    assert Predictions.read(run.folder / record["predictions"]).ids == list(range(15))
    assert f"{WNIDS[0]}_1.JPEG" in capsys.readouterr().err
