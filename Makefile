# Each target first installs what it needs into .venv, if that has not been done yet.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-slow test-wheel test-lowest campaign lint format clean
setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev,docs,train,timm,transformers,video,hub]"
	touch $@

demo: setup
	$(BIN)/liere demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

# Robustness campaign against runs and data files: make campaign MINUTES=30
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
	rm -rf .venv .venv-lowest build dist src/liere.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
