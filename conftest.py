"""Test setup: check shapes in signatures at every call, and make property tests deterministic."""

import importlib.util
import os
import signal
import threading

import pytest
import torch
from hypothesis import HealthCheck, settings

from liere_command.signals import SIGNALS

# Some virtual machines report AMX support but kill processes that use it, as oneDNN does for bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# Background jobs of a shell ignore Ctrl-C, and programs under nohup SIGHUP; so would processes that tests signal.
if threading.current_thread() is threading.main_thread():
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# Test workers run in parallel; several threads per worker would only compete for cores.
torch.set_num_threads(1)

HAS_SHAPE_CHECKS = all(importlib.util.find_spec(name) for name in ("jaxtyping", "beartype"))
if HAS_SHAPE_CHECKS:
    import tests.shape_checks  # noqa: F401  (the hook looks it up by name)
    from jaxtyping import install_import_hook

    install_import_hook("liere", "tests.shape_checks.check")

collect_ignore = ["tests/lowest.py", "tests/shape_checks.py", "tests/wheel.py"]
collect_ignore += [
    f"src/liere/integrations/{name}" for name in ("timm", "transformers") if importlib.util.find_spec(name) is None
]

settings.register_profile(
    "repeatable", deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck)
)
# To look for new cases: pytest --hypothesis-profile=explore
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def independent_of_other_tests():
    """Start each test from the same seed, and forget the encodings that it registers: its order must not matter."""
    from liere.encodings import registry

    tables = [(table, dict(table)) for table in (registry._REGISTERED, registry._BY_PATH)]
    torch.manual_seed(0)
    yield
    for table, before in tables:
        table.clear()
        table.update(before)


@pytest.fixture
def no_shape_checks():
    """Disable the checks of signatures, to test the errors that users see."""
    if not HAS_SHAPE_CHECKS:
        yield
        return
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def hasty(monkeypatch):
    """Speed up benchmark races: no repeated turns, and no garbage collection, which is slow in a test run."""
    from liere.bench import race

    monkeypatch.setattr(race, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(race, "gc", type("NoCollection", (), {"collect": staticmethod(lambda: 0)}))
