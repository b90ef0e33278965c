# make demo   a small release of made-up questions, built, opened and scored (no GPU, no download of data)
# make test   the test suite          make lint     ruff and mypy
# make bench  time and memory         make format   ruff, in place      make clean

# The first Python that runs and is new enough; override with make PYTHON=/path/to/python
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint format bench clean
.DELETE_ON_ERROR:

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "error: found no Python 3.11 or newer; install one, or name it:" \
		"make PYTHON=/path/to/python3.11" >&2; exit 2; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/base.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/base.stamp

demo: $(VENV)/base.stamp
	$(BIN)/python -m scripts.demo

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto -rs

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.stamp
	$(BIN)/python -m tests.benchmarks.bench_build

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
