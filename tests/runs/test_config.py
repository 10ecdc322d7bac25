from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
import yaml

from liere.data.registry import SECTIONS
from liere.runs.config import RunConfig, config_fields
from liere.runs.config_file import load_yaml, parse_config, read_config

BASE = {"model": {"dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}}

# Invalid fields, and what the error message must contain.
WRONG = [
    ({"model": {"dimm": 64}}, ["unknown field model.dimm", "did you mean 'dim'?"]),
    ({"modle": {}}, ["unknown field modle", "did you mean 'model'?"]),
    ({"zzz": 1}, ["unknown field zzz", "choose from", "'model'", "'hardware'"]),
    ({"training": {"zzz": 1}}, ["unknown field training.zzz", "choose from", "'batch_size'"]),
    ({"dim": 3}, ["unknown field dim"]),
    ({"model": {"dim": "wide"}}, ["model.dim must be", "'wide'", "str"]),
    ({"model": {"dim": "64"}}, ["model.dim must be", "integer", "'64'", "str"]),
    ({"model": {"dim": 64.0}}, ["model.dim must be", "integer", "64.0", "float"]),
    ({"model": {"dim": True}}, ["model.dim must be", "True", "bool"]),
    ({"model": {"dim": 0}}, ["model.dim must be", "greater than or equal to 1", "0"]),
    ({"model": {"dim": [1, 2]}}, ["model.dim must be", "[1, 2]", "list"]),
    ({"model": {"encoding": 8}}, ["model.encoding must be", "string", "8", "int"]),
    ({"model": {"pool": "max"}}, ["model.pool must be", "'cls' or 'mean'", "'max'"]),
    ({"model": {"dropout": 1.0}}, ["model.dropout must be", "less than 1", "1.0"]),
    ({"model": {"dropout": -0.1}}, ["model.dropout must be", "greater than or equal to 0", "-0.1"]),
    ({"model": {"dropout": float("nan")}}, ["model.dropout must be", "finite", "nan"]),
    ({"model": {"position_shift": -1.0}}, ["model.position_shift must be", "greater than or equal to 0", "-1.0"]),
    ({"model": {"position_shift": "far"}}, ["model.position_shift must be", "number", "'far'"]),
    ({"model": {"position_shift": float("inf")}}, ["model.position_shift must be", "finite", "inf"]),
    ({"model": {"position_shift": True}}, ["model.position_shift must be", "number", "True"]),
    ({"model": {"position_stretch": 0.5}}, ["model.position_stretch must be", "greater than or equal to 1", "0.5"]),
    ({"model": {"position_zoom": 0}}, ["model.position_zoom must be", "greater than or equal to 1", "0"]),
    ({"model": {"position_zoom": None}}, ["model.position_zoom must be", "number", "None"]),
    ({"model": {"position_noise": -0.1}}, ["model.position_noise must be", "greater than or equal to 0", "-0.1"]),
    ({"model": {"position_noise": float("nan")}}, ["model.position_noise must be", "finite", "nan"]),
    ({"model": {"position_shfit": 1.0}}, ["unknown field model.position_shfit", "did you mean 'position_shift'?"]),
    ({"model": {"cls_position": "middle"}}, ["model.cls_position must be", "'middle'"]),
    ({"model": {"cls_position": None}}, ["model.cls_position must be", "None"]),
    ({"model": {"attention_scale": "sqrt"}}, ["model.attention_scale must be", "'constant' or 'log'", "'sqrt'"]),
    ({"model": {"attention_scale": 1.0}}, ["model.attention_scale must be", "'constant' or 'log'", "1.0"]),
    ({"model": {"options": 3}}, ["model.options must be", "3", "int"]),
    ({"model": {"options": {1: 2}}}, ["model.options", "1"]),
    ({"model": 3}, ["model must be", "3", "int"]),
    ({"model": None}, ["model must be", "None"]),
    ({"data": {"name": "cifar"}}, ["data.name must be 'spatial'", "'cifar'"]),
    ({"data": {"size": -1}}, ["data.size must be", "-1"]),
    ({"data": {"distance": "far"}}, ["data.distance must be", "'far'"]),
    ({"data": {"distance": [1, 2, 3]}}, ["data.distance must be", "[1, 2, 3]"]),
    ({"data": {"distance": [1, "x"]}}, ["data.distance must be", "x"]),
    ({"data": {"distractor_arrows": -1}}, ["data.distractor_arrows must be", "greater than or equal to 0", "-1"]),
    ({"data": {"colors": "red"}}, ["data.colors must be", "'black' or 'random'", "'red'"]),
    ({"optimizer": {"learning_rate": 0}}, ["optimizer.learning_rate must be", "greater than 0", "0"]),
    ({"optimizer": {"learning_rate": "fast"}}, ["optimizer.learning_rate must be", "number", "'fast'"]),
    ({"optimizer": {"learning_rate": float("inf")}}, ["optimizer.learning_rate must be", "finite", "inf"]),
    ({"optimizer": {"betas": [0.9]}}, ["optimizer.betas"]),
    ({"optimizer": {"name": "sgd"}}, ["optimizer.name must be", "'adam' or 'muon'", "'sgd'"]),
    (
        {"optimizer": {"matrix_learning_rate": 0.1}},
        ["optimizer.matrix_learning_rate 0.1", "but it is adam", "use muon"],
    ),
    ({"optimizer": {"muon_for_qkv": False}}, ["optimizer.muon_for_qkv False", "but it is adam", "use muon"]),
    ({"optimizer": {"betas": [0.9, 1.0]}}, ["optimizer.betas must be", "less than 1", "1.0"]),
    ({"optimizer": {"clip": -1}}, ["optimizer.clip must be", "greater than 0", "-1"]),
    ({"training": {"examples": 1e6}}, ["training.examples must be", "integer", "1000000.0", "float"]),
    ({"training": {"seed": -1}}, ["training.seed must be", "-1"]),
    ({"training": {"stop_at_accuracy": 1.5}}, ["training.stop_at_accuracy must be", "less than or equal to 1", "1.5"]),
    ({"training": {"deterministic": "maybe"}}, ["training.deterministic must be", "'maybe'"]),
    (
        {"training": {"batch_size": 10, "accumulate": 3}},
        ["training.batch_size 10", "training.accumulate 3", "choose a divisor"],
    ),
    ({"hardware": {"precision": "fp16"}}, ["hardware.precision must be", "'32' or 'bf16-mixed'", "'fp16'"]),
    ({"hardware": {"precision": 16}}, ["hardware.precision must be", "16"]),
    ({"hardware": {"strategy": "fsdp3"}}, ["hardware.strategy must be", "'auto', 'ddp' or 'fsdp'", "'fsdp3'"]),
    ({"hardware": {"devices": 0}}, ["hardware.devices must be", "0"]),
    (
        {"training": {"batch_size": 8, "accumulate": 2}, "hardware": {"devices": 3}},
        ["training.batch_size 8", "3 devices", "choose numbers that divide"],
    ),
]


@pytest.mark.parametrize(("content", "parts"), WRONG, ids=[str(content) for content, _ in WRONG])
def test_what_is_wrong_is_reported_in_a_line_with_field_and_value(content, parts):
    with pytest.raises(ValueError) as raised:  # noqa: PT011  (each message is looked at)
        parse_config(content, source="file.yaml")
    message = str(raised.value)
    assert message.startswith("file.yaml: ")
    assert "\n" not in message
    assert "pydantic" not in message
    assert len(message) < 400
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("field", "values"),
    [("cls_position", "'none', 'center' or 'unseen'"), ("position_policy", "'extend', 'rescale' or 'reference'")],
)
def test_all_values_that_a_field_may_have_are_named(field, values):
    with pytest.raises(ValueError, match=f"^model.{field} must be {values}, got 'x' of type str$"):
        parse_config({"model": {field: "x"}})


class TestOverrides:
    def test_they_are_values_as_yaml_writes_them(self):
        words = {
            "model.dim": "96",
            "model.size": "null",
            "data.distance": "[1, 4]",
            "model.options": "{share_heads: true}",
            "optimizer.learning_rate": "2.5e-3",
            "optimizer.clip": "null",
            "training.deterministic": "true",
            "hardware.precision": "32",
            "title": "a title",
        }
        config = parse_config({"model": {"dim": 64}, "optimizer": {"clip": 1.0}}, words)
        assert (config.model.dim, config.model.size, config.data.distance) == (96, None, (1, 4))
        assert config.model.options == {"share_heads": True}
        assert (config.optimizer.learning_rate, config.optimizer.clip) == (2.5e-3, None)
        assert config.training.deterministic is True
        assert (config.hardware.precision, config.title) == ("32", "a title")

    @pytest.mark.parametrize("word", ["1e-3", "1E-3", "5e-4"])
    def test_numbers_with_an_exponent_are_numbers(self, word):
        # YAML 1.1 parses 1e-3 as text, but users mean a number.
        assert parse_config({}, {"optimizer.learning_rate": word}).optimizer.learning_rate == float(word)
        content = load_yaml(f"optimizer: {{learning_rate: {word}}}")
        assert parse_config(content).optimizer.learning_rate == float(word)

    def test_what_they_override_may_be_missing_or_empty(self):
        assert parse_config({}, {"model.dim": "8"}).model.dim == 8
        assert parse_config({"model": None}, {"model.dim": "8"}).model.dim == 8

    def test_the_content_is_left_as_it_was(self):
        content = {"model": {"dim": 64}}
        parse_config(content, {"model.dim": "8", "training.seed": "3"})
        assert content == {"model": {"dim": 64}}

    @pytest.mark.parametrize(
        ("overrides", "parts"),
        [
            ({"model.dimm": "8"}, ["unknown field model.dimm", "did you mean 'dim'?"]),
            ({"model.dim": "wide"}, ["model.dim must be", "'wide'"]),
            ({"model.dim": "[1"}, ["--model.dim '[1' is not a valid YAML value"]),
            ({"training.accumulate": "3"}, ["training.accumulate 3"]),
        ],
    )
    def test_wrong_ones_are_named(self, overrides, parts):
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            parse_config({}, overrides)
        assert "\n" not in str(raised.value)
        for part in parts:
            assert part in str(raised.value)


class TestFiles:
    def test_a_file_is_read(self, tmp_path):
        (tmp_path / "c.yaml").write_text("model: {dim: 8}\n")
        assert read_config(tmp_path / "c.yaml") == {"model": {"dim": 8}}

    def test_an_empty_file_is_all_defaults(self, tmp_path):
        (tmp_path / "c.yaml").write_text("# nothing\n")
        assert parse_config(read_config(tmp_path / "c.yaml")) == RunConfig()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"model: {dim: 8", "is not YAML"),
            (b"a: b: c", "is not YAML"),
            (b"\xff\xfe\x00binary\x00", "is not YAML"),
            (b"just words", "must contain sections such as 'model:'"),
            (b"[1, 2]", "must contain sections such as 'model:'"),
        ],
    )
    def test_another_file_is_named_in_a_line(self, tmp_path, content, message):
        file = tmp_path / "c.yaml"
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message) as raised:
            read_config(file)
        assert str(file) in str(raised.value)
        assert "\n" not in str(raised.value)

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no configuration file .*c\.yaml"):
            read_config(tmp_path / "c.yaml")

    def test_recipes_that_come_with_the_package_are_found_from_any_folder(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        path = Path("experiments/spatial/small.yaml")
        assert read_config(path)["title"] == "Spatial reasoning at small scale"
        error = capsys.readouterr().err
        assert error.startswith(f"liere: {path} does not exist here: using ")
        assert error.count("\n") == 1
        path.parent.mkdir(parents=True)
        path.write_text("title: My own\n")
        assert read_config(path) == {"title": "My own"}
        assert capsys.readouterr().err == ""

    def test_a_folder_is_named(self, tmp_path):
        with pytest.raises(ValueError, match=f"{tmp_path} is not a configuration"):
            read_config(tmp_path)

    def test_a_file_that_would_make_objects_is_refused(self, tmp_path):
        (tmp_path / "c.yaml").write_text(f"model: !!python/object/apply:os.mkdir [{tmp_path / 'executed'}]\n")
        with pytest.raises(ValueError, match="is not YAML"):
            read_config(tmp_path / "c.yaml")
        assert not (tmp_path / "executed").exists()


OTHER = {
    "title": "another",
    "data.name": None,
    "data.root": "elsewhere",
    "data.fraction": 0.5,
    "data.rand_augment": (2, 9),
    "data.min_area": 0.5,
    "data.fold": 2,
    "data.sha256": "a digest",
    "training.start_from": "runs/another",
    "data.distance": (1, 4),
    "data.colors": "random",
    "model.encoding": "absolute",
    "model.options": {"share_heads": True},
    "model.size": "vit_tiny",
    "model.pool": "mean",
    "model.position_policy": "rescale",
    "model.cls_position": "center",
    "model.attention_scale": "log",
    "optimizer.name": "muon",
    "optimizer.matrix_learning_rate": None,  # only with muon
    "optimizer.muon_for_qkv": None,  # only with muon
    "optimizer.betas": (0.8, 0.9),
    "hardware.accelerator": "gpu",
    "hardware.strategy": "ddp",
    "hardware.precision": "bf16-mixed",
    "logger.class_path": "lightning.pytorch.loggers.CSVLogger",
    "logger.init_args": {"save_dir": "logs"},
}


def changed(config: RunConfig, name: str) -> RunConfig | None:
    """Return a configuration with another value of one field; None if there is no other."""
    content = config.model_dump(mode="json")
    *section, field = name.split(".")
    place = content[section[0]] if section else content
    value = OTHER.get(name, 0.25 if isinstance(place[field], float | None) else place[field])
    if value is None:
        return None
    if isinstance(value, bool):
        place[field] = not value
    else:
        place[field] = 2 * value + 2 if isinstance(value, int) and name not in OTHER else value
    try:
        return RunConfig.model_validate(content)
    except ValueError:  # a None default may also be for an integer
        place[field] = 4
        return RunConfig.model_validate(content)


class TestFingerprint:
    @pytest.mark.parametrize("name", [name for name, _ in config_fields()])
    def test_it_tells_what_decides_the_weights_and_nothing_else(self, name):
        field = name.removeprefix("data.")
        owners = [section.model_fields["name"].default for section in SECTIONS if field in section.model_fields]
        owner = owners[0] if owners else "spatial"
        root = {"root": "arrays.npz"} if owner == "npz" else {}
        base = parse_config({"data": {"name": owner, **root}, "training": {"batch_size": 64}})
        other = changed(base, name)
        if other is None:
            return
        assert other != base
        indifferent = {"title", "training.checkpoint_every", "training.log_every"}
        indifferent |= {"data.root", "data.verify", "data.max_unreadable"}  # of a well-known data set
        same = name.startswith(("hardware.", "logger.")) or name in indifferent
        assert (other.fingerprint == base.fingerprint) == same

    def test_the_location_of_own_data_matters(self):
        one, other = (parse_config({"data": {"name": "npz", "root": root}}) for root in ("a.npz", "b.npz"))
        assert one.fingerprint != other.fingerprint

    def test_arrays_with_a_digest_are_the_same_wherever_they_are(self):
        data = {"name": "npz", "sha256": "a digest"}
        one, other = (parse_config({"data": data | {"root": root}}) for root in ("a.npz", "b.npz"))
        assert one.fingerprint == other.fingerprint
        assert one.fingerprint != parse_config({"data": data | {"root": "a.npz", "sha256": "another"}}).fingerprint

    def test_the_default_size_may_be_written_out(self):
        for name, size in (("spatial", 108), ("cifar10", 32), ("imagenet", 224)):
            short, long = parse_config({"data": {"name": name}}), parse_config({"data": {"name": name, "size": size}})
            assert short.fingerprint == long.fingerprint
            assert parse_config({"data": {"name": name, "size": 2 * size}}).fingerprint != short.fingerprint

    def test_it_is_what_it_was_when_there_was_one_data_set(self):
        config = parse_config({"data": {"name": "spatial", "size": 36, "train_examples": 50}, "model": {"dim": 16}})
        assert config.fingerprint == "48517721dfe6af32a4404f8e434f65563927d05bda77e6d5d38b52fc723af17d"

    def test_options_that_were_added_later_do_not_change_it_unless_they_are_used(self):
        data = {"name": "spatial", "size": 36, "train_examples": 50}
        unused = {"position_shift": 0, "position_stretch": 1, "position_zoom": 1.0, "position_noise": 0.0}
        unused |= {"cls_position": "none", "attention_scale": "constant"}
        config = parse_config({"data": data, "model": {"dim": 16} | unused})
        assert config.fingerprint == "48517721dfe6af32a4404f8e434f65563927d05bda77e6d5d38b52fc723af17d"
        used = {"position_shift": 1.75, "position_stretch": 1.1, "position_zoom": 1.1, "position_noise": 0.1}
        used |= {"cls_position": "unseen", "attention_scale": "log"}
        others = [parse_config({"data": data, "model": {"dim": 16, name: used[name]}}) for name in used]
        assert len({config.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(used)

    def test_it_does_not_depend_on_how_a_value_is_written(self):
        one = parse_config({"data": {"distance": [1, 2]}, "optimizer": {"learning_rate": 1}})
        other = parse_config({"optimizer": {"learning_rate": 1.0}, "data": {"distance": (1, 2)}})
        assert one.fingerprint == other.fingerprint


class TestWhole:
    def test_yaml_and_back_is_the_same(self):
        config = parse_config(
            {
                "title": "Größe: 108",
                "data": {"distance": [1, 3], "colours": "random"},
                "model": {"encoding": "absolute", "options": {"init_std": 0.02}},
                "optimizer": {"learning_rate": 1e-7, "clip": 0.3},
                "training": {"stop_at_accuracy": 0.99, "seed": 12},
                "hardware": {"precision": "bf16-mixed", "threads": 2},
            }
        )
        again = parse_config(yaml.safe_load(config.to_yaml()))
        assert again == config
        assert again.fingerprint == config.fingerprint
        assert parse_config(yaml.safe_load(RunConfig().to_yaml())) == RunConfig()

    def test_it_cannot_be_changed(self):
        with pytest.raises(ValueError, match="frozen"):
            RunConfig().model.dim = 3

    def test_every_field_is_listed_and_described(self):
        fields = dict(config_fields())
        assert {name.partition(".")[0] for name in fields} == set(RunConfig.model_fields)
        assert all(field.description for field in fields.values())
        assert "training.accumulate" in fields
        assert "model" not in fields

    def test_data_and_model_are_made_as_configured(self):
        config = parse_config(
            {
                "data": {"size": 48, "seed": 5, "train_examples": 77, "distance": [1, 2], "distractor_arrows": 3},
                "model": {"encoding": "liere8", "options": {"share_heads": True}, **BASE["model"], "pool": "mean"},
            }
        )
        train, test = config.data.load("train"), config.data.load("test", size=60, length=9)
        assert (len(train), train.size, train.seed, train.distance, train.distractor_arrows) == (77, 48, 5, (1, 2), 3)
        assert (len(test), test.size, test.split, test.seed) == (9, 60, "test", 5)
        assert len(config.data.load("val")) == 10_000
        assert len(config.data.load("train", length=3)) == 3
        model = config.model.build(image_size=48, num_classes=4)
        assert not model.position_augmentation
        assert (model.pool, model.num_classes, len(model.blocks), model.dim) == ("mean", 4, 1, 16)
        separate = parse_config({"model": {"encoding": "liere8", **BASE["model"]}}).model
        shared, apart = (
            sum(parameter.numel() for parameter in each.encoding.parameters())
            for each in (model, separate.build(image_size=48, num_classes=4))
        )
        assert 2 * shared == apart


class TestHostileFiles:
    def test_aliases_are_refused_before_they_grow(self, tmp_path):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
        (tmp_path / "config.yaml").write_text("\n".join(lines))
        with pytest.raises(ValueError, match=r"is not YAML: the alias \*a0 is not allowed: write the value out"):
            read_config(tmp_path / "config.yaml")

    def test_what_is_no_regular_file_is_refused_and_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "config.yaml")
        for path in (tmp_path / "config.yaml", tmp_path, Path("/dev/zero")):
            with pytest.raises(ValueError, match="which must be a file of at most 100,000 bytes"):
                read_config(path)

    def test_a_file_too_large_for_a_configuration_is_refused(self, tmp_path):
        (tmp_path / "config.yaml").write_text("#" * 100_001)
        with pytest.raises(ValueError, match="at most 100,000 bytes"):
            read_config(tmp_path / "config.yaml")

    def test_a_long_name_is_not_shown_in_full(self):
        with pytest.raises(ValueError, match=r"unknown field model\.xxx.*\.\.\.: ") as raised:
            parse_config({"model": {"x" * 90_000: 1}})
        assert len(str(raised.value)) < 1_000

    def test_more_threads_than_a_machine_has_are_refused(self):
        with pytest.raises(ValueError, match=r"hardware\.threads must be less than or equal to 1024, got 1000000"):
            parse_config({"hardware": {"threads": 1_000_000}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training: {examples: 1e400}", "training.examples must be a valid integer, got inf"),
        ("training: {examples: .nan}", "training.examples must be a valid integer, got nan"),
        (f"training: {{examples: {'9' * 30}}}", "training.examples must be less than or equal to"),
        (f"training: {{examples: {'9' * 5000}}}", "is not YAML: an integer has 5,000 digits, more than 300"),
        (f"training: {{examples: 0x{'F' * 5000}}}", "is not YAML: an integer has 5,002 digits"),
        (f"training: {{examples: 1{':1' * 2000}}}", "is not YAML: an integer has 4,001 digits"),
        (f"0x{'F' * 5000}", "is not YAML: an integer has 5,002 digits"),
        ("training: {batch_size: 10000000000000000}", "training.batch_size must be less than"),
        ("optimizer: {learning_rate: 1e400}", "optimizer.learning_rate must be a finite number, got inf"),
        ("optimizer: {learning_rate: 1e300}", "optimizer.learning_rate must be less than"),
        ("optimizer: {betas: [0.9, .nan]}", "optimizer.betas must be"),
        ("model: {dim: 1000000000}", "model.dim must be less than"),
        ("model: {depth: 1000000}", "model.depth must be less than"),
        ("model: {patch_size: [12, 1000000000]}", "model.patch_size must be"),
        ("model: {options: {init_std: .nan}}", "model.options.init_std must be finite, got nan"),
        ("model: {options: {a: [1, {b: -.inf}]}}", "model.options.a must be finite"),
        ("data: {size: 20000}", "data.size must be less than or equal to 10000"),
        ("data: {distance: 99999999999999999999}", "data.distance must be"),
        ("hardware: {workers: 1000000}", "hardware.workers must be less than"),
        ("[" * 3_000, "is not YAML: it is nested too deeply"),
        ("{a: " * 3_000, "is not YAML: it is nested too deeply"),
        (
            "model: {options: {a: " + 150 * "[" + 150 * "]" + "}}",
            "is not YAML: it is nested too deeply: use at most 100",
        ),
        ("logger: {init_args: " + 150 * "{a: " + 150 * "}" + "}", "is not YAML: it is nested too deeply"),
        ("training: !!map [a]", "is not YAML: expected a mapping node, but found sequence"),
        ("training: !!set [a]", "is not YAML: could not determine a constructor for the tag"),
        ("model: {options: {a: !!binary /w==}}", "is not YAML: could not determine a constructor for the tag"),
        ("logger: {init_args: {a: !!set {x, y}}}", "is not YAML: could not determine a constructor for the tag"),
        ("training: !!omap [1]", "is not YAML: could not determine a constructor for the tag"),
        ("title: !!int x", "is not YAML: "),
        ("model: {dim: 8, dim: 16}", "is not YAML: 'dim' is repeated"),
        ("title: a\nmodel: {dim: 8}\ntitle: b", "is not YAML: 'title' is repeated"),
        ("1: 2", "unknown field 1: names must be text"),
        ("model: {1: 2}", "unknown field 1: names must be text"),
        ("\0", "is not YAML: unacceptable character"),
    ],
)
def test_numbers_and_files_that_cannot_be_are_reported_in_a_line(tmp_path, text, message):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"config\.yaml") as raised:
        parse_config(read_config(file), source=str(file))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_sections_have_no_required_fields():
    assert not [name for name, field in config_fields() if field.is_required()]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[0.9]", "have 2 entries, got [0.9] of type list"),
        ("[]", "have 2 entries, got [] of type list"),
        ("[0.9, 0.95, 0.99]", "have 2 entries, got [0.9, 0.95, 0.99] of type list"),
        ("0.9", "be a list, got 0.9 of type float"),
    ],
)
def test_lists_of_another_length_are_reported(value, expected):
    with pytest.raises(ValueError, match=rf"^--optimizer\.betas must {re.escape(expected)}$"):
        parse_config({}, {"optimizer.betas": value})


@pytest.mark.parametrize("text", ["2020-01-01", "2001-99-99", "2020-01-01 00:00:00+99:00"])
def test_dates_are_text_and_stay_text(text):
    config = parse_config(load_yaml(f"title: {text}\nlogger: {{init_args: {{name: {text}}}}}"))
    assert (config.title, config.logger.init_args) == (text, {"name": text})
    assert parse_config(yaml.safe_load(config.to_yaml())) == config


def test_a_mark_at_the_start_of_a_file_does_not_matter(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbfmodel: {dim: 8}")
    assert read_config(tmp_path / "config.yaml") == {"model": {"dim": 8}}
