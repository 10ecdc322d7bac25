# Each target first installs what it needs into .venv, if that has not been done yet. Another version of Python gets an
# environment of its own: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Packages are compiled when they are first imported. If that were not kept, every process would compile torch again.
export PYTHONDONTWRITEBYTECODE :=

PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.PHONY: setup demo test test-slow test-wheel test-lowest campaign docs release-check lint format clean
setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[dev,docs,train,timm,transformers,video,hub,cluster]"
	touch $(VENV)/.demo $@

# The demo needs only a part of it, which installs in a third of the time.
$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[train]"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/liere demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

# Robustness campaign against runs and data files: make campaign MINUTES=30. (Make itself rejects --minutes 30; for this
# and other options, call tools/campaign.py.)
MINUTES ?= 30
campaign: setup
	$(BIN)/python tools/campaign.py --minutes $(MINUTES)

# Tests the built wheel in an environment with only torch, liere and a test runner.
test-wheel: setup
	$(BIN)/python tests/wheel.py

# Tests the lowest versions that pyproject.toml declares, in .venv-lowest; several GB, because older torch includes CUDA.
# To pass arguments to pytest: make test-lowest TESTS="-n 2 tests/rotations"
test-lowest:
	$(PYTHON) tests/lowest.py .venv-lowest $(TESTS)

# The documentation site, in docs/_build/html; warnings are errors.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -n -q docs docs/_build/html

# Everything before a release, except uploading it: that is left to the commands printed last.
release-check: setup
	$(BIN)/python tools/release_check.py


# Pages and folders with text for readers.
PROSE := README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md Makefile conftest.py setup.py docs src tests tools experiments examples
lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell $(PROSE)
	$(BIN)/python tools/check_prose.py
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-* build dist docs/_build src/liere.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
