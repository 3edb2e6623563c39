# `make run` simulates an hour of recorded traffic under three policies; `make test` runs all tests and checks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# tests and runs use the installed package, not the source tree
export PYTHONSAFEPATH := 1

.PHONY: run dev test mutation fuzz bench fidelity module08 install lint types architecture pytest clean

run: $(VENV)/.installed
	$(BIN)/simqueue run scenarios/azure-2023-conversation.yaml

# the package with all tools for tests and checks
dev: $(VENV)/.wheel

test: lint types architecture pytest

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "simqueue needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml hatch_build.py $(shell find simqueue scenarios -type f -not -name '*.pyc')
	$(BIN)/python -m pip install --quiet .
	touch $@

# the tools and what the package itself needs
$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > $(VENV)/needs.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --requirement $(VENV)/needs.txt --group dev
	touch $@

# needs none of the tools: with --jobs=2 it is built while they are installed
$(VENV)/.built: $(VENV)/.python pyproject.toml hatch_build.py README.md $(shell find simqueue scenarios -type f -not -name '*.pyc')
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	touch $@

# the tests use what users get
$(VENV)/.wheel: $(VENV)/.dev $(VENV)/.built
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	$(BIN)/python -m pip install --quiet dist/*.whl
	touch $@ $(VENV)/.installed

# small faults in the sources of a room: make mutation ROOM=schedulers SAMPLE=300 SEED=1
ROOM ?= kvcache
SAMPLE ?= 300
SEED ?= 1
mutation: $(VENV)/.wheel
	PYTHONSAFEPATH= $(BIN)/python -m tests.mutation --room $(ROOM) --sample $(SAMPLE) --seed $(SEED)

# random changes of what is read: make fuzz MINUTES=5 SEED=1
MINUTES ?= 5
fuzz: $(VENV)/.wheel
	PYTHONSAFEPATH= $(BIN)/python -m tests.hostile --minutes $(MINUTES) --seed $(SEED)

# benchmarks/ and studies/ are not in the package: they run from this folder, with the installed package
bench: $(VENV)/.wheel
	PYTHONSAFEPATH= $(BIN)/python -m benchmarks

fidelity: $(VENV)/.wheel
	PYTHONSAFEPATH= $(BIN)/python -m studies.fidelity

module08: $(VENV)/.wheel
	PYTHONSAFEPATH= $(BIN)/python -m studies.module08 report

install: $(VENV)/.installed

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

architecture: $(VENV)/.dev
	$(BIN)/lint-imports

# tests run side by side, one per core: threads of linear algebra would only wait for each other
pytest: export OPENBLAS_NUM_THREADS := 1
pytest: export OMP_NUM_THREADS := 1
pytest: $(VENV)/.wheel
	$(BIN)/python -m pytest -n auto

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
