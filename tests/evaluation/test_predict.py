from __future__ import annotations

import math
import shutil

import pytest
import torch

pytest.importorskip("tests.training.requirements")

from PIL import Image

from liere.data.reading.crops import crop_middle, to_tensor
from liere.data.reading.image_files import read_image
from liere.evaluation import predict as predict_module
from liere.evaluation.new_examples import ExampleReader
from liere.evaluation.predict import predict
from liere.files.weights import load_weights
from liere.runs.data_of_run import load_data
from liere.runs.image_classifier import ImageClassifier
from liere.runs.model import load_model
from liere.runs.run import open_run
from liere.runs.run_weights import save_weights
from liere.training.fit import train
from tests.data.file_archives import WNIDS, write_imagenet
from tests.deep_folders import deep_folder
from tests.training.tiny import make_run, quiet

pytestmark = quiet


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A run on image files whose data were moved away, and the new folder of the data."""
    work = tmp_path_factory.mktemp("images")
    root = write_imagenet(work / "data")
    fields = {"data": {"name": "images", "root": str(root), "size": 24}, "model__patch_size": 8}
    run = make_run(work / "run", **fields, training__examples=8, training__validation_examples=8)
    train(run, say=print)
    root.rename(work / "moved")
    return open_run(run.folder), work / "moved"


@pytest.fixture(scope="module")
def spatial(tmp_path_factory):
    run = make_run(tmp_path_factory.mktemp("spatial") / "run")
    train(run, say=print)
    return open_run(run.folder)


def test_files_are_cropped_as_in_tests_and_classes_have_names(images):
    run, root = images
    files = sorted(root.rglob("*.JPEG"))[:40]  # more than a batch
    found = predict(run, files, top=2)
    assert [one.source for one in found] == list(map(str, files))
    classifier = ImageClassifier(load_model(run.config, run.final_weights), run.facts)
    cropped = torch.stack([to_tensor(crop_middle(read_image(file), 24)) for file in files])
    with torch.inference_mode():
        shares = classifier(cropped).softmax(1)
    for one, expected in zip(found, shares, strict=True):
        assert one.classes == tuple(WNIDS[label] for label in expected.argsort(descending=True)[:2])
        assert one.probabilities == pytest.approx(expected.sort(descending=True).values[:2].tolist(), abs=1e-5)


def test_what_a_test_split_has_is_what_is_read(images):
    run, root = images
    moved = open_run(run.folder, {"data.root": str(root)})
    split = load_data(moved, "test")
    reader = ExampleReader(run)
    assert torch.equal(reader.read(split.files[0]), split[0][0])


def test_tensors_and_sizes(spatial):
    data = load_data(spatial, "test", length=3)
    batch, _ = data.batch([0, 1, 2])
    found = predict(spatial, batch, top=10)
    assert [one.source for one in found] == ["images[0]", "images[1]", "images[2]"]
    assert set(found[0].classes) == set(spatial.facts.classes)
    assert sum(found[0].probabilities) == pytest.approx(1, abs=1e-5)
    assert [one.probabilities for one in predict(spatial, list(batch), top=10)] == [
        pytest.approx(one.probabilities, abs=1e-5) for one in found
    ]
    assert predict(spatial, batch, size=48) != found
    assert predict(spatial, batch, weights="best", top=1)[0].classes


def test_probabilities_that_are_not_finite_are_an_error(spatial, tmp_path):
    batch = load_data(spatial, "test", length=2).batch([0, 1])[0].float()
    batch[1, 0, 0, 0] = math.nan
    with pytest.raises(ValueError, match=r"^images\[1\] has values that are not finite: remove them$"):
        predict(spatial, batch)
    folder = shutil.copytree(spatial.folder, tmp_path / "run")
    weights = load_weights(folder / "final.safetensors")
    weights["head.weight"].fill_(math.nan)
    save_weights(weights, folder / "final.safetensors")
    with pytest.raises(ValueError, match=r"final\.safetensors gives probabilities for images\[0\] that are not finite"):
        predict(open_run(folder), batch[:1])


def test_large_images_are_classified_in_smaller_batches(spatial, monkeypatch):
    batch, _ = load_data(spatial, "test", length=3).batch([0, 1, 2])
    sizes, classify = [], predict_module._classify
    monkeypatch.setattr(predict_module, "_classify", lambda *given: (sizes.append(len(given[1])), classify(*given))[1])
    for most in (10**9, 2 * batch[0].numel(), 1):
        monkeypatch.setattr(predict_module, "MOST_VALUES", most)
        assert len(predict(spatial, batch)) == 3
    assert sizes == [3, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_images_of_any_size_are_resized_to_those_of_array_data(spatial, tmp_path, mode):
    Image.new(mode, (70, 50), 128).save(tmp_path / "gray.png")
    assert ExampleReader(spatial).read(tmp_path / "gray.png").shape == (3, 36, 36)
    (found,) = predict(spatial, tmp_path / "gray.png")
    assert len(found.classes) == 4


def test_unreadable_files_are_named_and_skipped(images):
    run, root = images
    folder = root / "mixed"
    folder.mkdir()
    good = next((root / "train" / WNIDS[0]).glob("*.JPEG"))
    shutil.copy(good, folder / "good.jpeg")
    (folder / "bad.png").write_text("nothing")
    (folder / "notes.txt").write_text("not an image")
    lines: list[str] = []
    found = predict(run, [folder], say=lines.append)
    assert [one.source for one in found] == [str(folder / "good.jpeg")]
    assert [line.split("(")[0] for line in lines] == [f"warning: cannot read {folder / 'bad.png'} "]
    with pytest.raises(FileNotFoundError, match=r"there is no image .*gone\.png: check the path"):
        predict(run, [folder, root / "gone.png"], say=lines.append)
    with pytest.warns(UserWarning, match=r"cannot read .*bad\.png"), pytest.raises(ValueError, match="none of the 1"):
        predict(run, str(folder / "bad.png"))


def test_folders_are_searched_at_any_depth(images, tmp_path):
    """Python's own search calls itself once per level up to version 3.11."""
    run, root = images
    file = next(root.rglob("*.JPEG"))
    with deep_folder(tmp_path) as place:
        shutil.copy(file, place / "a.jpg")
        shutil.copy(file, place / ".hidden.jpg")
        assert [one.source for one in predict(run, tmp_path)] == [str(place / "a.jpg")]


def test_bytes_beside_floats_are_still_bytes(spatial):
    image = torch.randint(256, (3, 36, 36), dtype=torch.uint8)
    (alone,), both = predict(spatial, [image]), predict(spatial, [image, image.float() / 255, image])
    assert both[0].classes == both[2].classes == alone.classes
    for found in (both[0], both[2]):
        assert found.probabilities == pytest.approx(alone.probabilities, abs=1e-6)


@pytest.mark.parametrize("wrong", [Image.new("RGB", (36, 36)), 3])
def test_what_is_no_image_is_reported(spatial, wrong, no_shape_checks):
    with pytest.raises(
        TypeError, match=r"images must be files, folders or tensors, got (Image|int): convert it to a tensor"
    ):
        predict(spatial, wrong)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (torch.zeros(2, 36, 36), {}, r"a tensor has shape \[2, 36, 36\], but the run needs .* 3 channels and 2 axes"),
        (torch.zeros(3, 36, 36, dtype=torch.int64), {}, "use uint8"),
        (torch.zeros(3, 36, 36), {"weights": "last"}, "weights must be one of final, best, got 'last'"),
        (torch.zeros(3, 36, 36), {"top": 0}, "top must be a positive integer, got 0"),
        ([], {}, "none of the 0 given images"),
    ],
)
def test_wrong_arguments_are_named(spatial, given, options, message):
    with pytest.raises(ValueError, match=message):
        predict(spatial, given, **options)
