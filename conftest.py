"""Test set-up: shapes in signatures are checked at every call, and property tests repeat themselves exactly."""

import importlib.util
import os
import signal
import threading

import pytest
import torch
from hypothesis import HealthCheck, settings

# Some virtual machines announce AMX and then kill whoever uses it, which oneDNN does for bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# What a shell starts in the background ignores Ctrl-C, and so would the processes that tests start and interrupt.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers run side by side; threads of their own would only fight for the cores.
torch.set_num_threads(1)

HAS_SHAPE_CHECKS = all(importlib.util.find_spec(name) for name in ("jaxtyping", "beartype"))
if HAS_SHAPE_CHECKS:
    import tests.shape_checks  # noqa: F401  (the hook looks it up by name)
    from jaxtyping import install_import_hook

    install_import_hook("liere", "tests.shape_checks.check")

collect_ignore = ["tests/lowest.py", "tests/shape_checks.py", "tests/wheel.py"]
if importlib.util.find_spec("timm") is None:
    collect_ignore.append("src/liere/integrations/timm")

settings.register_profile(
    "repeatable", deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck)
)
# To look for new cases: pytest --hypothesis-profile=explore
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture
def no_shape_checks():
    """Turn the checks of signatures off: what users see, who do not have them."""
    if not HAS_SHAPE_CHECKS:
        yield
        return
    from jaxtyping import config

    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def hasty(monkeypatch):
    """Races in a hurry: no repeated turns, and no garbage collection, which takes long in a test run."""
    from liere.bench import race

    monkeypatch.setattr(race, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(race, "gc", type("NoCollection", (), {"collect": staticmethod(lambda: 0)}))
