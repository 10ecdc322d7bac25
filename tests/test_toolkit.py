"""The toolkit from Python: what the commands do, and what only Python can give them."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest
import torch

pytest.importorskip("tests.training.requirements")
import yaml

import liere
from liere import toolkit
from liere.cli import main
from liere.comparison.sent_encoding import send_encoding
from liere.encodings import registry
from liere.runs.run import open_run
from tests.training.tiny import CONFIG, quiet, write_config

pytestmark = quiet
SHORT = {"training.examples": 16, "training.validate_every": 2, "training.validation_examples": 4}


class Shifted(liere.PositionEncoding):
    """An encoding of one's own, in a file of one's own."""

    name = "shifted"

    def __init__(self, amount: float) -> None:
        super().__init__()
        self.amount = torch.nn.Parameter(torch.full((), float(amount)))

    @classmethod
    def build(cls, shape, *, amount=1.0):
        return cls(amount)

    def embed(self, tokens, positions, grid):
        return tokens + self.amount


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_config(tmp_path)


def test_what_the_docs_show(recipe, tmp_path):
    """The example, as it is written there but for the sizes and the length of training."""
    run = toolkit.train("tiny.yaml", encoding="liere8", out="runs/a", overrides={"training.seed": 1, **SHORT})
    scores = toolkit.evaluate(run, sizes=[36, 48], examples=20)
    result = toolkit.compare(
        "tiny.yaml",
        encodings=["rope_mixed", Shifted, "liere8:init_scale=3.14"],
        seeds=range(2),
        sizes=[36, 48],
        examples=20,
        out="runs/b",
        overrides=SHORT,
        progress=False,
    )
    rows = result.table(pandas=False)
    page = result.report("b.html")

    assert run.is_finished
    assert run.config.model.encoding == "liere8"
    assert open_run(tmp_path / "runs" / "a").evaluations() == list(scores.records)
    assert [row["size"] for row in scores.table(pandas=False)] == [36, 48]
    assert "36 px" in repr(scores)

    name = f"{__name__}:Shifted"
    assert [(row["encoding"], row["size"]) for row in rows] == [
        (encoding, size) for encoding in ("rope_mixed", name, "liere8") for size in (36, 48)
    ]
    for row in rows:
        assert row["seeds"] == [0, 1]
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["worst"] <= row["mean"] <= row["best"]
        assert (row["examples"], row["trained_examples"]) == (20, 16)
    assert {row["encoding_parameters"] for row in rows if row["encoding"] == name} == {1}
    kept = yaml.safe_load(
        (tmp_path / "runs" / "b" / "runs" / "tests.test_toolkit-Shifted-seed1/config.yaml").read_text()
    )
    assert kept["model"]["encoding"] == name
    assert "Shifted" in page.read_text()
    assert "Shifted" in repr(result)
    assert result.page == tmp_path.relative_to(tmp_path) / "runs" / "b" / "report.html"
    assert json.loads((tmp_path / "runs/b/report.json").read_text())["command"].startswith(
        "liere.toolkit.compare('tiny.yaml', encodings=['rope_mixed', 'tests.test_toolkit:Shifted', 'liere8:init_scale=3"
    )
    again = toolkit.report("runs/b", out="again")
    assert sorted(again.table(pandas=False), key=str) == sorted(rows, key=str)


def test_a_table_is_a_data_frame_where_there_is_pandas(result):
    pandas = pytest.importorskip("pandas")
    frame = result.table()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.to_dict("records") == result.table(pandas=False)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """One run of one encoding, given by its class, trained in another process without a word."""
    folder = tmp_path_factory.mktemp("result")
    content = yaml.safe_load(CONFIG)
    options = {"seeds": [0], "examples": 8, "overrides": SHORT, "progress": False}
    return toolkit.compare(content, encodings=[Shifted], out=folder, **options)


def test_a_comparison_says_nothing_if_that_is_wanted(result, capfd, tmp_path):
    again = {
        "seeds": [0],
        "examples": 8,
        "overrides": SHORT,
        "progress": False,
        "out": result.runs[0].folder.parents[1],
    }
    toolkit.compare(yaml.safe_load(CONFIG), encodings=[Shifted], **again)
    toolkit.train(yaml.safe_load(CONFIG), out=tmp_path / "run", overrides=SHORT, progress=False)
    toolkit.evaluate(tmp_path / "run", examples=4, progress=False)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "examples" not in printed.err


class TestTraining:
    def test_the_same_call_resumes_a_run_and_does_not_repeat_it(self, recipe, tmp_path, capsys):
        run = toolkit.train(recipe, out="run", overrides=SHORT, steps=1)
        assert not run.is_finished
        assert "stopped as asked; resume with" in capsys.readouterr().out
        run = toolkit.train(recipe, out="run", overrides=SHORT)
        assert run.is_finished
        assert "going on after step 1" in capsys.readouterr().err
        before = run.result_file.stat().st_mtime_ns
        assert toolkit.train(recipe, out="run", overrides=SHORT).result_file.stat().st_mtime_ns == before
        assert toolkit.resume("run").is_finished
        with pytest.raises(ValueError, match="--out run was made by another recipe: choose another folder"):
            toolkit.train(recipe, out="run", overrides=SHORT | {"training.seed": 7})
        with pytest.raises(ValueError, match="--out run exists: resume it with liere train --resume run"):
            toolkit.train(recipe, out="run", overrides=SHORT, resume=False)

    def test_it_writes_what_the_command_writes(self, recipe, tmp_path):
        fields = [part for name, value in SHORT.items() for part in (f"--{name}", str(value))]
        assert main(["train", "--config", "tiny.yaml", "--out", "command", "--model.encoding", "none", *fields]) == 0
        toolkit.train("tiny.yaml", encoding="none", out="python", overrides=SHORT)
        names = [
            {path.relative_to(tmp_path / place) for path in (tmp_path / place).rglob("*") if "tensorb" not in str(path)}
            for place in ("command", "python")
        ]
        assert names[0] == names[1]
        for name in ("config.yaml", "final.safetensors"):
            assert (tmp_path / "command" / name).read_bytes() == (tmp_path / "python" / name).read_bytes()

    def test_a_dry_run_makes_nothing(self, recipe, tmp_path, capsys):
        toolkit.train(recipe, dry=True)
        assert "parameters" in capsys.readouterr().out
        assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]

    def test_a_class_of_a_function_can_be_trained_and_is_missed_later(self, recipe, monkeypatch):
        class Local(Shifted):
            pass

        run = toolkit.train(recipe, encoding=Local, out="run", overrides=SHORT)
        assert run.config.model.encoding.endswith("<locals>.Local")
        assert run.result()["encoding_parameters"] == 1
        monkeypatch.setattr(registry, "_BY_PATH", {})  # as in another process
        with pytest.raises(ValueError, match=r"define or import Local here, and call liere.register_encoding\(Local\)"):
            toolkit.evaluate("run")

    @pytest.mark.usefixtures("no_shape_checks")
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"encoding": "lieer8"}, ValueError, "unknown encoding 'lieer8': did you mean 'liere8'?"),
            ({"encoding": torch.nn.Linear}, TypeError, "is not a position encoding: derive it from"),
            ({"encoding": "nowhere:Mine"}, ValueError, "there is no module 'nowhere'"),
            ({"overrides": {"model.dimm": 3}}, ValueError, "unknown field model.dimm: did you mean 'dim'?"),
            ({"overrides": {"model.dim": [1]}}, ValueError, "model.dim must be"),
            ({"overrides": {"model.dim": object()}}, TypeError, "model.dim must be a value that YAML has, got object"),
            ({"recipe": 3}, TypeError, "recipe must be a YAML file or a dict, got int"),
            ({"recipe": "none.yaml"}, FileNotFoundError, "no configuration at none.yaml"),
        ],
    )
    def test_errors_are_exceptions_of_one_line(self, recipe, tmp_path, arguments, error, message):
        with pytest.raises(error) as raised:
            toolkit.train(arguments.pop("recipe", recipe), out="run", **arguments)
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)
        assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


def test_a_registered_encoding_takes_part_under_its_name(monkeypatch, recipe):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    liere.register_encoding(Shifted)
    options = {"seeds": [0], "examples": 8, "overrides": SHORT, "progress": False}
    result = toolkit.compare(recipe, encodings=["shifted:amount=2"], out="out", **options)
    assert [row["encoding"] for row in result.table(pandas=False)] == ["shifted"]
    assert result.runs[0].config.model.options == {"amount": 2}


NOTEBOOK = """
import sys
import torch, yaml
import liere
from liere import toolkit

AMOUNT = 2.0

class Mine(liere.PositionEncoding):
    def __init__(self, amount):
        super().__init__()
        self.amount = torch.nn.Parameter(torch.tensor(amount))

    @classmethod
    def build(cls, shape):
        return cls(AMOUNT)

    def embed(self, tokens, positions, grid):
        return tokens + self.amount

recipe = yaml.safe_load(open("tiny.yaml"))
result = toolkit.compare(recipe, encodings=[Mine, "none"], seeds=[0], examples=8, out="out", progress=False)
print([row["encoding"] for row in result.table(pandas=False)])
"""


@pytest.fixture
def notebook(tmp_path):
    """Execute code as a notebook would: in `__main__`, without a file that could be imported."""
    write_config(tmp_path, CONFIG.replace("examples: 72", "examples: 16"))

    def call(code: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return call


def test_a_class_of_a_notebook_takes_part(notebook, tmp_path, capsys):
    pytest.importorskip("cloudpickle")
    done = notebook(NOTEBOOK)
    assert done.stdout == "['__main__:Mine', 'none']\n", done.stderr
    run = tmp_path / "out" / "runs" / "__main__-Mine-seed0"
    assert open_run(run).result()["encoding_parameters"] == 1
    assert main(["eval", str(run)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "encoding '__main__:Mine' was defined in a script, notebook or function: define or import Mine here" in error


def test_without_cloudpickle_it_is_told_before_anything_runs(notebook, tmp_path):
    done = notebook("import sys\nsys.modules['cloudpickle'] = None\n" + NOTEBOOK)
    assert "ImportError: encoding '__main__:Mine' is defined in a script or notebook" in done.stderr
    assert "pip install cloudpickle, or put the class in a module" in done.stderr
    assert not list((tmp_path / "out").rglob("config.yaml"))


def test_what_every_process_has_is_not_sent():
    assert send_encoding("liere8") is None
    sent = send_encoding(f"{__name__}:Shifted")
    assert sent is not None
    assert len(sent.content) < 100  # its place, not its code
    assert not sent.is_registered


def test_runs_that_fail_are_an_exception_with_what_the_others_found(recipe, tmp_path, capsys):
    (tmp_path / "out" / "runs" / "none-seed0").mkdir(parents=True)
    (tmp_path / "out" / "runs" / "none-seed0" / "in the way").write_text("")
    with pytest.raises(toolkit.RunsFailedError, match="1 of 2 runs failed: none-seed0 failed with exit code 1") as stop:
        toolkit.compare(
            recipe, encodings=["none", "sincos"], seeds=[0], examples=8, out="out", overrides=SHORT, progress=False
        )
    assert [row["encoding"] for row in stop.value.result.table(pandas=False)] == ["sincos"]


def test_a_table_of_the_paper_from_kept_runs(tmp_path):
    from liere.reproduce.reproduction import committed_runs

    if committed_runs("small") is None:
        pytest.skip("there are no kept runs here")
    made = toolkit.reproduce("init", scale="small", out=tmp_path, progress=False)
    assert made.claims
    assert all(claim.text in repr(made) for claim in made.claims)
    assert made.page == tmp_path / "init.html"
    assert (
        json.loads((tmp_path / "init.json").read_text())["command"] == "liere.toolkit.reproduce('init', scale='small')"
    )
    with pytest.raises(ValueError, match="unknown scale 'medium': choose from small, paper"):
        toolkit.reproduce("init", scale="medium")


def test_importing_the_library_does_not_import_the_toolkit():
    code = "import sys, liere; assert not {'liere.toolkit', 'lightning', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; from liere import toolkit; assert not {'lightning', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
