from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import tarfile
import tracemalloc

import pytest

pytest.importorskip("tests.training.requirements")
import numpy as np

from liere.data.reading import cifar_files
from liere.data.reading.cifar_files import read_cifar
from tests.data.archives import (
    ARCHIVES,
    FOLDERS,
    assert_same_examples,
    python2_pickle,
    write_cifar,
    write_cifar_pngs,
)

NAMES = ("cifar10", "cifar100")
FILES = {"cifar10": ("data_batch_3", "test_batch"), "cifar100": ("train", "test")}


@pytest.fixture(autouse=True)
def forget():
    """Clear the cache, so that changed files are read again."""
    read_cifar.cache_clear()
    yield
    read_cifar.cache_clear()


def read_both(root):
    for split in ("train", "test"):
        read_cifar("cifar100", root, split, verify=False)


class TestReading:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("as_archive", [True, False])
    @pytest.mark.parametrize("split", ["train", "test"])
    def test_every_pixel_and_label_is_as_written(self, tmp_path, name, as_archive, split):
        expected = write_cifar(tmp_path, name, as_archive=as_archive)
        assert_same_examples(read_cifar(name, tmp_path, split, verify=False), expected[split])

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
        assert_same_examples(read_cifar("cifar10", tmp_path, "test", verify=False), pngs["test"])
        archive = write_cifar(tmp_path, "cifar10", test=11)
        read_cifar.cache_clear()
        assert_same_examples(read_cifar("cifar10", tmp_path, "test", verify=False), archive["test"])
        folder = write_cifar(tmp_path, "cifar10", test=12, as_archive=False)
        read_cifar.cache_clear()
        assert_same_examples(read_cifar("cifar10", tmp_path, "test", verify=False), folder["test"])

    @pytest.mark.parametrize("name", NAMES)
    def test_right_sums_are_accepted(self, tmp_path, monkeypatch, name):
        expected = write_cifar(tmp_path, name, as_archive=False)
        source = cifar_files._source(name)
        for listed in ("train_list", "test_list"):
            files = [file for file, _ in getattr(source, listed)]
            sums = [[file, hashlib.md5((tmp_path / FOLDERS[name] / file).read_bytes()).hexdigest()] for file in files]
            monkeypatch.setattr(source, listed, sums)
        assert_same_examples(read_cifar(name, tmp_path, "train"), expected["train"])
        assert_same_examples(read_cifar(name, tmp_path, "test"), expected["test"])

    def test_columns_may_come_first(self, tmp_path):
        expected = write_cifar(tmp_path, "cifar100", as_archive=False)["train"]
        content = {"data": np.asfortranarray(expected[0].reshape(-1, 3072)), "fine_labels": expected[1]}
        (tmp_path / FOLDERS["cifar100"] / "train").write_bytes(python2_pickle(content))
        assert_same_examples(read_cifar("cifar100", tmp_path, "train", verify=False), expected)


class TestDamage:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("as_archive", [True, False])
    def test_another_sum_is_reported(self, tmp_path, name, as_archive):
        write_cifar(tmp_path, name, as_archive=as_archive)
        with pytest.raises(ValueError, match=r"is damaged: its MD5 checksum is .*--data\.verify false"):
            read_cifar(name, tmp_path, "train")

    @pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.95, 0.999])
    def test_a_truncated_archive_is_reported(self, tmp_path, share):
        write_cifar(tmp_path, "cifar100")
        archive = tmp_path / ARCHIVES["cifar100"]
        content = archive.read_bytes()
        archive.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=rf"{ARCHIVES['cifar100']} is damaged .*download it again"):
            read_both(tmp_path)

    @pytest.mark.parametrize("place", [0.01, 0.2, 0.5, 0.8])
    def test_bytes_that_are_wrong_within_an_archive_are_reported(self, tmp_path, place):
        write_cifar(tmp_path, "cifar100")
        archive = tmp_path / ARCHIVES["cifar100"]
        content = bytearray(archive.read_bytes())
        start = int(place * len(content))
        content[start : start + 400] = b"\xff" * 400
        archive.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged"):
            read_both(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"<html>404</html>", gzip.compress(b"no tar", mtime=0)])
    def test_another_file_instead_of_an_archive_is_reported(self, tmp_path, content):
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
    def test_a_pickle_of_something_else_is_reported(self, tmp_path, content):
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
        with pytest.raises(ValueError, match=r"it refers to (posix|nt|os)\.system"):
            read_cifar("cifar100", tmp_path, "train", verify=False)
        assert not (tmp_path / "executed").exists()

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
    def test_a_batch_without_an_image_and_a_class_for_each_label_is_reported(self, tmp_path, content):
        (tmp_path / FOLDERS["cifar100"]).mkdir()
        (tmp_path / FOLDERS["cifar100"] / "train").write_bytes(python2_pickle(content))
        with pytest.raises(ValueError, match=f"{FOLDERS['cifar100']}/train is damaged .*download it again") as raised:
            read_cifar("cifar100", tmp_path, "train", verify=False)
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize("name", NAMES)
    def test_no_data_at_all_is_reported_with_where_to_look(self, tmp_path, name):
        with pytest.raises(FileNotFoundError, match=rf"no {name} in .*{FOLDERS[name]}.*--data\.root"):
            read_cifar(name, tmp_path / "nowhere", "train")


def write_tar(path, *members):
    """Write an archive of members, each with a name, a claimed size and a content."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for name, size, content in members:
            info = tarfile.TarInfo(name)
            info.size = size
            file.write(info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512))
        file.write(bytes(1024))


class TestMemory:
    """A small file cannot take much memory, whatever it claims or expands to."""

    @pytest.fixture(autouse=True)
    def limits(self, monkeypatch):
        monkeypatch.setattr(cifar_files, "FILE_BYTES", 200_000)
        monkeypatch.setattr(cifar_files, "ARCHIVE_BYTES", 250_000)

    def refuse(self, root, message):
        with pytest.raises(ValueError, match=message):
            read_cifar("cifar100", root, "train", verify=False)

    @pytest.mark.parametrize("size", [200_001, 10**10])
    def test_a_member_cannot_claim_more_than_real_ones_have(self, tmp_path, size):
        write_tar(tmp_path / ARCHIVES["cifar100"], (f"{FOLDERS['cifar100']}/train", size, bytes(1_000)))
        self.refuse(tmp_path, f"is damaged .*train claims {size:,} bytes, more than 200,000.*download it again")

    def test_an_archive_cannot_expand_to_more_than_real_ones_do(self, tmp_path):
        member = (f"{FOLDERS['cifar100']}/train", 0, b"")
        write_tar(tmp_path / ARCHIVES["cifar100"], ("other", 300_000, bytes(300_000)), member)
        self.refuse(tmp_path, "is damaged .it expands to more than 250,000 bytes.*download it again")

    def test_zeros_without_end_after_an_archive_are_not_read(self, tmp_path):
        write_tar(tmp_path / ARCHIVES["cifar100"])
        os.truncate(tmp_path / ARCHIVES["cifar100"], 10**12)  # sparse: takes no space on disk
        self.refuse(tmp_path, "has 1,000,000,000,000 bytes, more than 250,000: download it again")

    def test_an_archive_cannot_have_many_members(self, tmp_path):
        members = [("other", 0, b"")] * 200
        write_tar(tmp_path / ARCHIVES["cifar100"], *members, (f"{FOLDERS['cifar100']}/train", 0, b""))
        self.refuse(tmp_path, "is damaged .it lacks cifar-100-python/train")

    def test_a_long_header_counts_too(self, tmp_path):
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 10**9
        with gzip.open(tmp_path / ARCHIVES["cifar100"], "wb") as file:
            file.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(10**6))
        self.refuse(tmp_path, "is damaged")

    def test_an_extended_header_of_many_values_is_not_read(self, tmp_path):
        other = tarfile.TarInfo("header")
        other.type, content = tarfile.XHDTYPE, b"".join(b"13 k%07d=\n" % number for number in range(15_000))
        other.size = len(content)
        with gzip.open(tmp_path / ARCHIVES["cifar100"], "wb") as file:
            file.write(other.tobuf() + content + bytes(-len(content) % 512) + bytes(1024))
        cifar_files._source("cifar100")  # imports torchvision
        tracemalloc.start()
        try:
            self.refuse(tmp_path, "is damaged")
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()

    def test_extended_headers_of_honest_archives_do_no_harm(self, tmp_path):
        expected = write_cifar(tmp_path, "cifar100", as_archive=False)
        with tarfile.open(tmp_path / ARCHIVES["cifar100"], "w:gz", format=tarfile.PAX_FORMAT) as tar:
            for file in sorted((tmp_path / FOLDERS["cifar100"]).iterdir()):
                info = tar.gettarinfo(file, f"{FOLDERS['cifar100']}/{file.name}")
                info.pax_headers = {"comment": "Ä", "LIBARCHIVE.xattr.user": "x" * 1_000}
                with file.open("rb") as content:
                    tar.addfile(info, content)
        (tmp_path / FOLDERS["cifar100"]).rename(tmp_path / "elsewhere")
        assert_same_examples(read_cifar("cifar100", tmp_path, "train", verify=False), expected["train"])

    @pytest.mark.parametrize("type_", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
    def test_a_member_must_be_a_file(self, tmp_path, type_):
        with tarfile.open(tmp_path / ARCHIVES["cifar100"], "w:gz") as tar:
            info = tarfile.TarInfo(f"{FOLDERS['cifar100']}/train")
            info.type, info.linkname = type_, "/etc/passwd"
            tar.addfile(info)
        self.refuse(tmp_path, "is damaged .it lacks cifar-100-python/train")

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
