"""Fingerprints are stored in results and folder names: they must never change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")

from liere.runs.archive import SUFFIX, read_archive
from liere.runs.config_file import load_yaml, parse_config

# Computed by an early version, in which one class described all data sets.
KNOWN = [
    ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    ({"data": {"size": 108}}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    (
        {"data": {"size": 276, "seed": 3, "distance": [1, 4], "distractor_arrows": 0, "colours": "random"}},
        "a2158c9f6a308860ae5f4dea5680d78f4659f8e5272b231c8dbf71637d1505dd",
    ),
    (
        {"data": {"name": "spatial", "train_examples": 100, "distractor_letters": 2}, "training": {"log_every": 3}},
        "debe081fd27a84ef2d3feed34f49deb056624152a86d49fa5ebb7c53dcac617e",
    ),
    ({"data": {"name": "cifar10"}}, "4271bb38450a2d75b023477841f0fc6a09574fb6fbd0e083bd9c082ef54acaf8"),
    (
        {"data": {"name": "cifar10", "size": 32, "root": "elsewhere", "verify": False}},
        "4271bb38450a2d75b023477841f0fc6a09574fb6fbd0e083bd9c082ef54acaf8",
    ),
    (
        {
            "data": {
                "name": "cifar100",
                "padding": 4,
                "flip": True,
                "rand_augment": [2, 9],
                "fraction": 0.2,
                "holdout": 0.1,
            }
        },
        "7d368d5bd97a434ced48f659e6a8f5a4c60016c78f00e35ca735a9db2d8a9594",
    ),
    (
        {"data": {"name": "imagenet", "size": 224, "min_area": 0.25, "max_unreadable": 0, "root": "x"}},
        "264546cb129f28384bcae4d8d4fafa6a06dcc407a5dfafa0cf988bd844b3eb6e",
    ),
    (
        {"data": {"name": "imagenet", "size": 96, "flip": True}},
        "32c26645c26b6b8b9344213eed1dbb913cb121e4091640222110e98347d47f80",
    ),
    (
        {"data": {"name": "ucf101", "fold": 2, "frames": 16, "frame_stride": 2, "test_clips": 1, "root": "x"}},
        "e7df85730fdd621e9f74f73d402c2d90d92690e2ccadb7aa8799b807a3636e8a",
    ),
    (
        {"data": {"name": "images", "root": "x", "size": 224, "max_unreadable": 3}},
        "b55fe19b6ba52c0e34942105a7e2954c600bc7e128960db84d356d03fe179560",
    ),
    (
        {"data": {"name": "images", "root": "y", "min_area": 1.0, "rand_augment": [1, 5]}},
        "ce6b660b1101a2405b154d2ae5d6e91b7d0a234b98a3c3fce25ef428bbd27ab8",
    ),
    (
        {"data": {"name": "videos", "root": "x", "frames": 4, "size": 32}},
        "b53ecbedbd7838142ffd41c5329f8ad32b74ec90d2618382558cc17acdba830c",
    ),
    ({"data": {"name": "npz", "root": "a.npz"}}, "69b23e8346005973c0eb7169012327e33699087a6de1d8370bcd0efa4b37e857"),
    (
        {"data": {"name": "npz", "root": "a.npz", "size": 28, "padding": 2}},
        "900c065c3f5f0472116593fea8558db92585c407b993a2bda0cd8ad44f12b489",
    ),
    (
        {"data": {"name": "npz", "root": "b.npz", "sha256": "a digest", "seed": 1}},
        "a5e539d00a60b2b3ba3c9c897516839043244d3a7d479b4dc1447470365847e1",
    ),
]
RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = sorted(RESULTS.glob(f"**/runs/*{SUFFIX}"))


@pytest.mark.parametrize(("content", "fingerprint"), KNOWN, ids=[str(content) for content, _ in KNOWN])
def test_every_kind_of_configuration_has_the_fingerprint_it_has_always_had(content, fingerprint):
    config = parse_config(content)
    assert config.fingerprint == fingerprint
    assert parse_config(config.model_dump(mode="json")).fingerprint == fingerprint


@pytest.mark.skipif(not RESULTS.exists(), reason="the results are not beside the tests")
def test_committed_runs_have_the_fingerprints_of_their_results():
    assert len(COMMITTED) > 10
    for path in COMMITTED:
        files = read_archive(path)
        fingerprint = json.loads(files["result.json"])["fingerprint"]
        assert parse_config(load_yaml(files["config.yaml"].decode())).fingerprint == fingerprint, path
