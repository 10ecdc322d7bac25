"""Which runs are found, which are trained, and the tables built from them."""

from __future__ import annotations

import html
import json
import re

import pytest

pytest.importorskip("tests.training.requirements")

from liere.cli import main
from liere.reproduce.catalog import CATALOGUE
from liere.reproduce.outcome import Claim
from liere.reproduce.reproduction import prepare
from liere.reproduce.wanted_runs import unique_runs
from liere.runs.archive import read_archive
from liere.runs.conditions import Condition
from tests.reproduce.fakes import ACCURACY, fake_all, finish, predictions

RUN_FILES = ("config.yaml", "result.json", "metrics.csv", "evaluation.json")


@pytest.fixture
def reproduce(tmp_path, capsys):
    """Run `liere reproduce` in its own folder, and return its output and the numbers it wrote."""

    def call(name, *more):
        code = main(["reproduce", name, "--out", str(tmp_path / "out"), "--own", *more])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        file = tmp_path / "out" / f"{name}.json"
        return printed.out, json.loads(file.read_text()) if file.exists() else {}

    call.out = tmp_path / "out"
    return call


class TestFinding:
    def test_finished_runs_are_not_made_again_and_the_table_is_rebuilt(self, reproduce):
        fake_all("main", reproduce.out)
        printed, numbers = reproduce("main", "--only", "CIFAR-10")
        assert "main: 18 of 18 runs are finished" in printed
        assert len(numbers["runs"]) == 18
        for encoding, accuracy in ACCURACY.items():
            assert numbers["numbers"]["accuracy"][encoding]["CIFAR-10"]["value"] == pytest.approx(accuracy, abs=0.002)

    def test_other_tables_use_the_same_runs(self, reproduce, capsys):
        fake_all("main", reproduce.out)
        for name, runs in (("loss", 18), ("significance", 6), ("compute", 18)):
            assert f"{runs} of {runs} runs are finished" in reproduce(name, "--only", "CIFAR-10")[0]
        assert (
            main(["reproduce", "sharing", "--dry-run", "--own", "--out", str(reproduce.out), "--data", "nowhere"]) == 2
        )
        printed = capsys.readouterr()
        assert "sharing: 2 of 3 runs are finished" in printed.out
        assert "no cifar10 in nowhere" in printed.err

    def test_what_was_exported_is_found_without_weights_and_says_the_same(self, reproduce, tmp_path, monkeypatch):
        fake_all("main", reproduce.out)
        _, numbers = reproduce("main", "--only", "CIFAR-10", "--export", str(tmp_path / "kept"))
        monkeypatch.setattr("liere.reproduce.reproduction.committed_runs", lambda scale: tmp_path / "kept" / "runs")
        assert main(["reproduce", "main", "--only", "CIFAR-10", "--out", str(tmp_path / "other")]) == 0
        again = json.loads((tmp_path / "other" / "main.json").read_text())
        assert again["numbers"] == numbers["numbers"]
        assert not (tmp_path / "other" / "runs").exists()
        kept = [path for path in (tmp_path / "kept" / "runs").iterdir() if path.name.endswith(".tar.xz")]
        assert len(kept) == len(list((tmp_path / "kept" / "runs").iterdir())) == 18
        for file in kept:
            assert {*read_archive(file)} == {*RUN_FILES, "predictions/final-test-32.csv"}

    def test_figures_that_need_weights_do_not_take_runs_without(self, tmp_path):
        fake_all("spatial", tmp_path, only=())
        places = [tmp_path / "runs"]
        assert prepare(CATALOGUE["spatial"], "small", {}, places=places).missing() == []
        with pytest.raises(ValueError, match="its weights are needed and missing: delete the folder"):
            prepare(CATALOGUE["attention"], "small", {}, places=places).missing()
        assert len(prepare(CATALOGUE["attention"], "small", {}, places=[tmp_path / "new", *places]).missing()) == 6

    def test_a_missing_fine_tuned_run_needs_the_weights_of_its_source(self, tmp_path):
        entry, places = CATALOGUE["resolution"], [tmp_path / "runs"]
        wanted = prepare(entry, "small", {}, places=places).wanted
        for one in wanted:
            if not one.key.fine_tuned:
                answers = {condition: predictions(0.5, 2000) for condition in one.planned.conditions}
                finish(one.planned, one.planned.folder, answers)
        missing = prepare(entry, "small", {}, places=[tmp_path / "new", *places]).missing()
        assert sum(run.config.training.start_from is None for run in missing) == 3
        assert sum(run.config.training.start_from is not None for run in missing) == 3
        firsts = [run.config.training.start_from is not None for run in missing]
        assert firsts == sorted(firsts)

    def test_a_run_that_lacks_a_test_is_missing(self, tmp_path):
        entry, places = CATALOGUE["shuffling"], [tmp_path / "runs"]
        for one in prepare(CATALOGUE["main"], "small", {}, places=places, only=["CIFAR-10"]).wanted:
            finish(one.planned, one.planned.folder, {Condition(32): predictions(0.5)}, weights=True)
        missing = prepare(entry, "small", {}, places=places, only=["CIFAR-10"]).missing()
        assert len(missing) == 18

    def test_runs_are_merged_with_all_their_tests(self, tmp_path):
        wanted = prepare(CATALOGUE["fraction"], "paper", {}, places=[tmp_path]).wanted
        runs = list(unique_runs(wanted * 2))
        assert len(runs) == len({one.planned.folder for one in wanted}) == 36


class TestChoice:
    def test_seeds_and_encodings_that_are_given_twice_count_once(self, tmp_path):
        chosen = {"seeds": [4, 4], "encodings": ["sincos", "liere4", "sincos"]}
        wanted = prepare(CATALOGUE["fraction"], "small", {}, places=[tmp_path], **chosen).wanted
        found = [(one.key.encoding, one.seed) for one in wanted if one.key.variant == "20 %"]
        assert found == [("sincos", 4), ("liere4", 4)]

    def test_what_is_varied_for_other_encodings_is_left_out(self, tmp_path):
        for encodings, variants in ((["liere4"], {"nothing"}), (["liere8", "liere4"], {"nothing", "across both"})):
            wanted = prepare(CATALOGUE["sharing"], "small", {}, places=[tmp_path], encodings=encodings).wanted
            assert {one.key.variant for one in wanted} == variants
            assert {one.key.encoding for one in wanted} == set(encodings)

    def test_variants_of_an_encoding_have_names_of_their_own(self, reproduce):
        chosen = ["liere8", "liere8:init_scale=3.1416", "liere8:share_heads=true"]
        accuracy = dict(zip(chosen, (0.5, 0.7, 0.6), strict=True))
        fake_all("spatial", reproduce.out, only=(), encodings=chosen, accuracy=accuracy)
        printed, _ = reproduce("spatial", "--encodings", *chosen)
        rows = {line.split("  ")[0]: line for line in printed.splitlines() if line.startswith("LieRE₈")}
        assert {"LieRE₈", "LieRE₈, init 3.1416", "LieRE₈, share_heads=True"} <= rows.keys()
        assert "50.0 (" in rows["LieRE₈"]
        assert "70.0 (" in rows["LieRE₈, init 3.1416"]
        # The paper's numbers are shown only for the encodings that the paper ran.
        assert ["99.5 (99.2-99.8)" in rows[name] for name in rows] == [True, False, False]

    def test_compute_is_measured_against_any_start_of_absolute_positions(self, reproduce):
        chosen = ["absolute:init_std=0.5", "liere8"]
        fake_all("compute", reproduce.out, encodings=chosen)
        printed, numbers = reproduce("compute", "--encodings", *chosen)
        assert "the final accuracy of absolute, init 0.5" in printed
        assert list(numbers["numbers"]) == ["absolute:init_std=0.5"]


class TestOneSeed:
    @pytest.mark.parametrize("name", ["init", "block", "resolution", "shuffling", "compute"])
    def test_no_table_decides_a_claim_about_encodings(self, reproduce, name):
        fake_all(CATALOGUE[name].experiment, reproduce.out, only=(), seeds=[0])
        if name == "shuffling":
            fake_all(name, reproduce.out, only=(), seeds=[0])
        _, numbers = reproduce(name, "--seeds", "0")
        assert numbers["claims"]
        for claim in numbers["claims"]:
            assert claim["verdict"] == "is not decided", claim
            assert "one seed" in claim["evidence"] or "not run" in claim["evidence"]


class TestPages:
    @pytest.mark.parametrize("name", ["size", "fraction", "block", "sharing", "pooling", "resolution", "spatial"])
    def test_the_page_and_the_terminal_show_the_same_claims(self, reproduce, name):
        fake_all(name, reproduce.out, only=())
        printed, numbers = reproduce(name)
        page = plain((reproduce.out / f"{name}.html").read_text())
        assert "Do the paper's claims hold here?" in page
        assert numbers["claims"]
        for claim in numbers["claims"]:
            shown = str(Claim(**claim))
            assert shown in printed
            assert shown in page
        runs = numbers["runs"]
        assert numbers["seconds"] == 10.0 * len(runs)
        assert len({run["fingerprint"] for run in runs}) == len(runs)

    def test_flops_need_no_runs(self, reproduce):
        printed, numbers = reproduce("flops")
        assert "0.970 G*" in printed
        assert "5.684 G" in printed
        assert numbers["runs"] == []


def plain(page: str) -> str:
    """Return the text of a page, with regular spaces."""
    return html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\N{NO-BREAK SPACE}", " ")
