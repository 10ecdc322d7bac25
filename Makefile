# Each target sets up what it needs in .venv, once.
PYTHON ?= python3
BIN := .venv/bin

PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.PHONY: setup demo test test-slow test-wheel test-lowest campaign docs release-check lint format clean
setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable ".[dev,docs,train,timm,transformers,video,hub]"
	touch .venv/.demo $@

# The demo needs only a part of it, which installs in a third of the time.
.venv/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable ".[train]"
	touch $@

demo: .venv/.demo
	$(BIN)/liere demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

# Attacks on runs and data files: make campaign MINUTES=30
MINUTES ?= 30
campaign: setup
	$(BIN)/python tools/campaign.py --minutes $(MINUTES)

# The built wheel in an empty environment: torch, liere and a test runner, nothing else.
test-wheel: setup
	$(BIN)/python tests/wheel.py

# The lowest versions that pyproject.toml declares, in .venv-lowest; several GB, since older torch comes with CUDA.
# Arguments of pytest: make test-lowest TESTS="-n 2 tests/rotations"
test-lowest:
	$(PYTHON) tests/lowest.py .venv-lowest $(TESTS)

# The documentation site, in docs/_build/html; warnings are errors.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -n -q docs docs/_build/html

# Everything before a release, except uploading it: that is left to the commands printed last.
release-check: setup
	$(BIN)/python tools/release_check.py

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-lowest build dist docs/_build src/liere.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
