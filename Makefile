# `make solve` and `make test` set up all they need on a fresh machine.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: solve test test-all lint clean

solve: $(VENV)/.runtime
	$(BIN)/hyrespinn solve allen-cahn-dirichlet --preset fast

test: $(VENV)/.development lint
	$(BIN)/python -m pytest -n 2 --dist worksteal --doctest-modules src tests -m "not slow" --durations=30

test-all: $(VENV)/.development lint
	HYRESPINN_CHECK_ALL=1 $(BIN)/python -m pytest -n 2 --dist worksteal --doctest-modules src tests --timeout 3600 --durations=30

lint: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hyrespinn needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.development: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(VENV)/.runtime $@

clean:
	rm -rf $(VENV) runs
