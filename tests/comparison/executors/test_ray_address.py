"""Addresses of Ray clusters."""

from __future__ import annotations

import socket
import time

import pytest

pytest.importorskip("tests.training.requirements")
pytest.importorskip("ray")
import ray
import yaml

from liere import toolkit
from liere.comparison.executors import ray_address, ray_tasks
from liere.comparison.executors.ray_address import check_answers
from liere.comparison.executors.ray_tasks import RayExecutor
from tests.training.tiny import CONFIG


def test_an_address_where_nothing_answers_is_told_at_once(monkeypatch):
    begin, message = (
        time.monotonic(),
        r"no Ray cluster can be reached at --address 127.0.0.1:1 \(.*refused.*\): start one",
    )
    with pytest.raises(ValueError, match=message):
        ray_tasks._connect("127.0.0.1:1")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ValueError, match=message):
        ray_tasks._connect("auto")
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("address", ["no-such-host.invalid:6379", "127.0.0.1:99999", f"{'a' * 70}.b:1"])
def test_names_and_ports_that_do_not_exist_are_the_same_error(address):
    with pytest.raises(ValueError, match="no Ray cluster can be reached at --address"):
        check_answers(address)


def test_a_machine_that_is_silent_is_given_up(monkeypatch):
    def wait(place, seconds):
        assert place == ("node1", 6379)
        assert seconds == ray_address.ANSWER_SECONDS == 5
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", wait)
    with pytest.raises(ValueError, match=r"--address node1:6379 \(timed out\)"):
        check_answers("node1:6379")


@pytest.mark.parametrize("address", ["auto", "local", "here"])
def test_other_addresses_are_left_to_ray(address, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    check_answers(address)


def test_a_port_that_answers_is_left_to_ray():
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_answers(f"127.0.0.1:{server.getsockname()[1]}")


def test_ray_client_is_refused():
    with pytest.raises(ValueError, match=r"--address ray://head:10001 is for Ray Client, which is not supported: run"):
        RayExecutor("ray://head:10001")


def test_it_is_checked_before_anything_is_created(tmp_path, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    options = {"encodings": ["none"], "seeds": [0], "out": tmp_path / "out"}
    with pytest.raises(ValueError, match="no Ray cluster can be reached"):
        toolkit.compare(yaml.safe_load(CONFIG), **options, executor=RayExecutor("127.0.0.1:1"))
    assert not (tmp_path / "out").exists()
