"""The attack campaign: its counts, and a ten-minute run."""

from __future__ import annotations

import errno
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tests.training.requirements")
from tests.own_tools import TOOLS

if not TOOLS.is_dir():
    pytest.skip("the tools are not available", allow_module_level=True)
from tools import campaign
from tools.attacks.arena import Outcome
from tools.attacks.contract import Attack, Verdict, carry_out
from tools.attacks.damages import resumed_losses
from tools.attacks.full_disk import TroubleAtWrite
from tools.attacks.mutations import MUTATIONS
from tools.attacks.run_files import change_entry
from tools.attacks.runs import left_losses
from tools.attacks.signals import CASES, WAYS, logged_steps, signal_losses

ROOT = Path(__file__).parents[1]


class Quiet:
    """An arena in which nothing happens."""

    def __init__(self, folder: Path, harm: list[str]) -> None:
        self.folder, self.harm, self.peak_memory_mb = folder, harm, 0

    def make_folder(self, name: str) -> Path:
        return self.folder

    def find_harm(self) -> list[str]:
        return self.harm


def count(folder, verdicts, harm=(), **options):
    cases = []
    attack = Attack(
        "made-up", "nothing", 1.0, lambda *_: lambda chance, number: cases.append(chance.random()) or verdicts(number)
    )
    settings = {"seed": 3, "seconds": 0.0, "count": None, "say": lambda line: None} | options
    return carry_out(attack, Quiet(folder, list(harm)), **settings), cases


def test_cases_are_counted_and_what_is_lost_is_kept(tmp_path):
    tally, _ = count(
        tmp_path, lambda number: Verdict(f"case {number}", ["gone"] * (number == 1), 50), seconds=99, count=150
    )
    assert (tally.cases, tally.lost, tally.failures) == (150, 1, ["case 1: gone"])


@pytest.mark.parametrize(("enough", "wanted", "found"), [(4, None, 4), (4, 6, 6), (4, 2, 2)])
def test_an_attack_ends_when_enough_cases_were_tried(tmp_path, enough, wanted, found):
    attack = Attack("made-up", "nothing", 1.0, lambda *_: lambda chance, number: Verdict("case", []), enough)
    settings = {"seed": 0, "seconds": 99.0, "say": lambda line: None}
    assert carry_out(attack, Quiet(tmp_path, []), count=wanted, **settings).cases == found


def test_what_a_case_leaves_behind_is_a_loss(tmp_path):
    tally, _ = count(tmp_path, lambda number: Verdict("case", []), harm=["processes left running: 2"])
    assert (tally.cases, tally.lost) == (1, 1)


def test_cases_depend_on_the_seed_alone(tmp_path):
    (_, one), (_, same), (_, other) = (
        count(tmp_path, lambda number: Verdict("case", []), seconds=99, count=4, seed=seed) for seed in (3, 3, 4)
    )
    assert one == same
    assert len({*one, *other}) == 8


@pytest.mark.parametrize(
    ("outcome", "part"),
    [
        (Outcome(None, "", 10), "took too long"),
        (Outcome(1, "x", 10), "exit code 1"),
        (Outcome(0, "Traceback (most recent call last)\n  x\nKeyError: 3", 10), "traceback"),
        (Outcome(2, "something", 10), "no one-line error"),
        (Outcome(0, "", 5_000), "used 5,000 MB"),
    ],
)
def test_outcomes_that_are_losses(outcome, part):
    (loss,) = outcome.losses(0, 2)
    assert part in loss
    assert Outcome(2, "liere: error: no such file", 10).losses(0, 2) == []


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("data", [b"x", bytes(range(256)) * 20])
def test_mutations_repeat_with_their_seed(name, data):
    one, same = (MUTATIONS[name](data, random.Random(5)) for _ in range(2))
    assert one == same


def test_steps_that_a_signal_did_not_save_are_a_loss(tmp_path):
    outcome = Outcome(143, "run: stopped by SIGTERM before its first checkpoint: nothing to save", 10)
    (tmp_path / "checkpoints").mkdir()
    assert signal_losses(outcome, signal.SIGTERM, tmp_path) == ([], "nothing to save")
    (tmp_path / "metrics.csv").write_text("step,examples,a,b,c,d,e\n5,80,1,1,1,,\n10,160,1,1")
    assert logged_steps(tmp_path) == 5
    assert signal_losses(outcome, signal.SIGTERM, tmp_path)[0] == ["saved nothing after 5 steps"]
    assert signal_losses(outcome, signal.SIGTERM, tmp_path, must_save=False)[0] == []
    (tmp_path / "checkpoints" / "last.ckpt").touch()
    (loss,) = signal_losses(outcome, signal.SIGTERM, tmp_path, must_save=False)[0]
    assert loss == "reported nothing to save, but there is"


def test_what_is_left_in_a_run_and_beside_it_is_a_loss(tmp_path):
    run = tmp_path / "run-1"
    for name in ("run-1", ".run-1.77-abcdefgh", ".run-10.77-abcdefgh"):
        (tmp_path / name).mkdir()
    (run / ".last.ckpt.7.tmp").touch()
    assert left_losses(run) == [".last.ckpt.7.tmp was left behind", ".run-1.77-abcdefgh was left behind"]


def test_the_first_signals_cover_every_number_of_workers_and_parts():
    usual = {("terminal", signal.SIGINT), ("group", signal.SIGTERM)}
    assert {*CASES[:18]} == {(way, workers, parts) for way in usual for workers in (0, 1, 2) for parts in (1, 4, 16)}
    assert {way for way, _, _ in CASES[18:30]} == {*WAYS}


@pytest.mark.parametrize(
    ("lines", "is_intact", "losses"),
    [
        (["run: resuming after step 5 of 6"], True, []),
        (["warning: /x/last.ckpt is damaged: it is not used", "run: resuming after step 4 of 6"], False, []),
        (["run: resuming after step 5 of 6"], False, []),  # unused bytes were damaged; the weights must be right
        (["run: resuming after step 4 of 6"], False, ["resumed after step 4, not 5"]),
        (["warning: /x/last.ckpt is damaged: it is not used"], False, ["resumed after step none, not 4"]),
        (["warning: last.ckpt is foreign", "run: resuming after step 4 of 6"], False, ["unexpected warning"]),
        (["warning: last.ckpt: it is not used", "run: resuming after step 4 of 6"], True, ["unexpected warning"]),
    ],
)
def test_runs_must_resume_from_the_newest_intact_checkpoint(lines, is_intact, losses):
    found = resumed_losses("\n".join(lines), is_intact=is_intact)
    assert len(found) == len(losses)
    assert all(loss in one for loss, one in zip(losses, found, strict=True))


def test_changed_entries_are_valid_json():
    content = {"a": [1, {"b": 2}], "c": "d"}
    changed = [change_entry(json.dumps(content).encode(), random.Random(seed)) for seed in range(50)]
    assert changed[0] == change_entry(json.dumps(content).encode(), random.Random(0))
    assert all(json.loads(data) != content for _, data in changed)
    assert len({what for what, _ in changed}) > 20


@pytest.mark.parametrize(("is_lasting", "failed"), [(False, [1]), (True, [1, 2])])
def test_trouble_comes_at_a_write_or_from_it_on(tmp_path, monkeypatch, is_lasting, failed):
    watched = []
    monkeypatch.setattr("tools.attacks.writes.watch_writes", lambda folder, noticed: watched.append(noticed))
    TroubleAtWrite(tmp_path, 1, tmp_path / "report", is_lasting=is_lasting, code=errno.EROFS)()
    found = []
    for number in range(3):
        try:
            watched[0]("open file", None)
        except OSError as error:
            found.append((number, error.errno))
    assert found == [(number, errno.EROFS) for number in failed]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_ten_minutes_of_attacks_lose_nothing(tmp_path):
    command = [sys.executable, ROOT / "tools" / "campaign.py", "--minutes", "10", "--json", tmp_path / "campaign.json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    record = json.loads((tmp_path / "campaign.json").read_text())
    assert {name: attack["failures"] for name, attack in record["attacks"].items() if attack["lost"]} == {}
    assert done.returncode == 0, done.stderr
    assert record["attacks"].keys() == campaign.ATTACKS.keys()


def test_the_committed_campaign_has_every_attack_and_lost_nothing():
    record = json.loads((ROOT / "results" / "campaign.json").read_text())
    attacks = record["attacks"]
    assert attacks.keys() == campaign.ATTACKS.keys(), "it is older than an attack: repeat it (CONTRIBUTING.md)"
    for name, total in (("lost", sum), ("cases", sum), ("peak_memory_mb", max)):
        assert record[name] == total(attack[name] for attack in attacks.values())
    assert record["lost"] == 0
    assert record["peak_memory_mb"] < 2_000
