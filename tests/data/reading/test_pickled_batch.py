from __future__ import annotations

import pickle
import sys

import pytest

pytest.importorskip("numpy")
import numpy as np

from liere.data.reading import pickled_batch
from liere.data.reading.pickled_batch import unpickle_batch


class TestNames:
    @pytest.mark.parametrize("name", ["load", "fromfile", "core"])
    def test_other_parts_of_numpy_are_refused(self, name):
        content = b"\x80\x02cnumpy\n" + name.encode() + b"\n."
        with pytest.raises(ValueError, match=f"it refers to numpy.{name}"):
            unpickle_batch(content, "labels")

    @pytest.mark.parametrize("module", ["numpy.f2py", "numpy.core", "numpy.ma.core", "numpy.distutils"])
    @pytest.mark.parametrize("name", ["dtype", "ndarray", "_reconstruct"])
    def test_known_names_of_other_modules_are_refused_and_not_imported(self, monkeypatch, module, name):
        monkeypatch.delitem(sys.modules, "numpy.f2py", raising=False)
        content = b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n."
        with pytest.raises(ValueError, match=f"it refers to {module}.{name}"):
            unpickle_batch(content, "labels")
        assert "numpy.f2py" not in sys.modules


@pytest.mark.parametrize("operations", [b"\x97", b"\x96" + bytes(8) + b"\x98"])
def test_memory_outside_of_the_pickle_is_refused(operations):
    with pytest.raises(ValueError, match="it refers to memory outside of it"):
        unpickle_batch(b"\x80\x05" + operations + b".", "labels")


def test_a_number_in_the_place_of_the_pixels_is_refused(no_shape_checks):
    numbers = pickle.dumps({"data": np.zeros((1, 3072), np.uint8), "labels": [0]}, protocol=2)
    start = numbers.rindex(b"\x89h") + 1
    end = numbers.index(b"R", start) + 1  # of the call that encodes the pixels
    with pytest.raises(ValueError, match="TypeError: a bytes-like object is required"):
        unpickle_batch(numbers[:start] + b"J\xff\xff\xff\x7f" + numbers[end:], "labels")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_protocol_of_pickle_is_read(protocol, order):
    data = np.arange(4 * 3072, dtype=np.uint8).reshape(4, 3072, order=order)
    images, labels = unpickle_batch(pickle.dumps({"data": data, "labels": [0, 1, 2, 3]}, protocol=protocol), "labels")
    assert np.array_equal(images, data)
    assert labels == [0, 1, 2, 3]


class TestMemory:
    """A small file cannot take much memory, whatever it claims or expands to."""

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"\x80\x02" + b"]" * 2_000, "more than 1,000 operations"),
            (b"\x80\x02]r\xff\xff\xff\x7f.", "at index 2,147,483,647"),
            (b"\x80\x02]p2147483647\n.", "at index 2,147,483,647"),
            (b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"x.", "expected 1099511627776 bytes"),
            (b"\x80\x02cnumpy\nndarray\nK\x01\x85R.", "takes no arguments"),
            (b"\x80\x02cnumpy\ndtype\nX\x05\x00\x00\x00V9999\x85R.", "an array of V9999 instead of uint8"),
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
        for content in (labels, key, shape):  # without checks, the last two take hours and all memory
            with pytest.raises(ValueError, match="too many nested objects"):
                unpickle_batch(content, "labels")

    def test_keys_cannot_be_nested_so_deep_that_python_crashes(self):
        with pytest.raises(ValueError, match="too many nested objects"):
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
