"""Encodings by name: built-in ones, registered ones, and those of other packages."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

import liere
from liere.encodings import registry
from liere.encodings.liere import LieRE
from liere.errors import UserError
from tests.models import SHAPE, small_model

MODULE = """
from liere import PositionEncoding

class Constant(PositionEncoding):
    name = "constant"

    @classmethod
    def build(cls, shape, *, amount=1.0):
        encoding = cls()
        encoding.amount = amount
        return encoding

    def embed(self, tokens, positions, grid):
        return tokens + self.amount

class Loose(Constant):
    @classmethod
    def build(cls, shape, **options):
        return super().build(shape, amount=options["strength"])

class Needy(Constant):
    @classmethod
    def build(cls, shape, *, amount):
        return super().build(shape, amount=amount)

not_a_class = 3
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Remove registered names after each test."""
    for table in (registry._REGISTERED, registry._BY_PATH):
        monkeypatch.setattr(registry, "_REGISTERED" if table is registry._REGISTERED else "_BY_PATH", {})


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A third-party package with an encoding."""
    (tmp_path / "somebody").mkdir()
    (tmp_path / "somebody" / "__init__.py").write_text("")
    (tmp_path / "somebody" / "ideas.py").write_text(MODULE)
    (tmp_path / "somebody" / "broken.py").write_text("import no_such_package_anywhere")
    monkeypatch.syspath_prepend(tmp_path)
    yield "somebody.ideas"
    for name in [name for name in sys.modules if name.partition(".")[0] == "somebody"]:
        del sys.modules[name]


class Mine(liere.PositionEncoding):
    name = "mine"

    @classmethod
    def build(cls, shape):
        return cls()


def test_a_registered_class_is_found_by_its_name():
    assert liere.register_encoding(Mine) is Mine
    assert "mine" in liere.list_encodings()
    model = small_model("mine")
    assert isinstance(model.encoding, Mine)
    assert model(torch.randn(1, 3, 16, 16)).shape == (1, 5)


def test_a_registered_class_may_derive_from_one_whose_names_have_numbers():
    class Twice(LieRE):
        name = "twice"

    liere.register_encoding(Twice)
    assert registry.find_encoding("twice") == (Twice, {})
    assert registry.find_encoding("liere8") == (LieRE, {"block_size": 8})


def test_a_class_is_registered_again_when_its_cell_is_executed_again():
    for amount in (1, 2):

        class Again(liere.PositionEncoding):
            name = "again"
            value = amount

        liere.register_encoding(Again)
    assert registry.find_encoding("again")[0].value == 2


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": "absolute"}, "name 'absolute' of .*Other is already used by liere.encodings.absolute:Absolu"),
        ({"name": "liere7"}, "name 'liere7' of .*Other is already used by liere.encodings.liere:LieRE: rename"),
        ({"name": "mine"}, "is already used by tests.encodings.test_registry:Mine: rename it"),
        ({"name": "a:b"}, "needs a name without spaces, colons, .*, got 'a:b': set name ="),
        ({"name": ""}, "needs a name"),
        ({}, "needs a name .* got None"),
    ],
)
def test_a_name_must_be_free_and_plain(attributes, message):
    liere.register_encoding(Mine)
    other = type("Other", (liere.PositionEncoding,), attributes)
    with pytest.raises(ValueError, match=message):
        liere.register_encoding(other)
    assert registry.find_encoding("mine")[0] is Mine


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("thing", [torch.nn.Linear, Mine(), "absolute"])
def test_only_encodings_are_registered(thing):
    with pytest.raises(TypeError, match=r"is not a position encoding: derive it from liere\.PositionEncoding"):
        liere.register_encoding(thing)


def test_a_class_of_another_module_is_named_by_its_path(module):
    model = small_model(f"{module}:Constant", amount=3.0)
    assert model.encoding.amount == 3.0
    assert type(model.encoding).__module__ == module
    with pytest.raises(TypeError, match="has no option 'amuont': did you mean 'amount'"):
        small_model(f"{module}:Constant", amuont=3.0)


def test_a_class_may_take_any_options(module):
    assert small_model(f"{module}:Loose", strength=2.0).encoding.amount == 2.0
    with pytest.raises(TypeError, match="has no option 'shape'"):
        liere.create_encoding(f"{module}:Loose", SHAPE, **{"shape": SHAPE})


def test_an_option_that_a_class_needs_is_named(module):
    with pytest.raises(TypeError, match=r"needs the option 'amount': pass amount=...") as raised:
        liere.create_encoding(f"{module}:Needy", SHAPE)
    assert isinstance(raised.value, UserError)


def test_an_error_inside_a_class_is_not_taken_for_one_of_the_user(module):
    with pytest.raises(KeyError, match="strength"):
        liere.create_encoding(f"{module}:Loose", SHAPE)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nobody.ideas:Constant", ValueError, "there is no module 'nobody'; install it, or put its folder on PYTHONP"),
        ("somebody.idea:Constant", ValueError, "there is no module 'somebody.idea'"),
        ("somebody.ideas:Constnat", ValueError, "module somebody.ideas has no 'Constnat'; check the spelling"),
        ("somebody.ideas:Constant.Inner", ValueError, "module somebody.ideas has no 'Constant.Inner'"),
        ("somebody.ideas:not_a_class", TypeError, "encoding 'somebody.ideas:not_a_class' is not a position encoding"),
        ("torch.nn:Linear", TypeError, "encoding 'torch.nn:Linear' is not a position encoding: derive it from liere"),
        (".relative:Constant", ValueError, "'.relative' is not a valid module name; write package.module:Class"),
        ("somebody.broken:Constant", ImportError, "needs no_such_package_anywhere: pip install no_such_package_anyw"),
        (
            "__main__:Gone",
            ValueError,
            r"in a script, notebook or function: .* call liere.register_encoding(Gone)",
        ),
    ],
)
@pytest.mark.usefixtures("module")
def test_what_is_wrong_with_a_path_is_told(name, error, message):
    with pytest.raises(error) as raised:
        liere.create_encoding(name, SHAPE)
    assert re.search(re.escape(message).replace(r"\.\*", ".*"), str(raised.value)), str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_encoding_of_a_notebook_is_found_again_once_it_is_registered():
    name = "__main__:Mine"
    with pytest.raises(ValueError, match="was defined in a script, notebook or function"):
        registry.find_encoding(name)
    liere.register_encoding(Mine)
    assert registry.find_encoding(name) == (Mine, {})


def test_a_class_is_named_so_that_it_is_found():
    class Local(liere.PositionEncoding):
        pass

    assert registry.encoding_name(LieRE) == "liere"
    name = registry.encoding_name(Local)
    assert name == f"{__name__}:test_a_class_is_named_so_that_it_is_found.<locals>.Local"
    assert registry.find_encoding(name) == (Local, {})


def test_a_path_on_the_command_line(module, tmp_path):
    command = [sys.executable, "-m", "liere.cli", "flops", "--size", "vit_tiny", "--encoding", f"{module}:Constant"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{module}:Constant" in done.stdout
