"""Memory that tensors free is kept for later ones."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from liere.training import freed_memory
from liere.training.freed_memory import OWN_CHOICES, keep_freed_memory

IS_GNU = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
FAULTS = """
import resource
import torch
from liere.training.freed_memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        tensors = [torch.ones(2**20) for _ in range(16)]  # 64 MB
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
assert keep_freed_memory()
faults()
print(before, faults())
"""


@pytest.fixture
def unset(monkeypatch):
    for name in OWN_CHOICES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(not IS_GNU, reason="the setting is one of the GNU C library")
def test_memory_is_reused_instead_of_fetched_again(unset):
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 10


@pytest.mark.parametrize("name", OWN_CHOICES)
def test_a_choice_of_the_user_is_left_alone(unset, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda name: pytest.fail("changed"))
    assert not keep_freed_memory()


def test_other_systems_and_libraries_have_no_such_setting(unset, monkeypatch):
    class Musl:
        pass

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Musl())
    assert not keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()
