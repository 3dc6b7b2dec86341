PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin
PYTEST := PYTHONDONTWRITEBYTECODE= sh tests/on_memory.sh $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

.PHONY: install demo test test-all check bench attack soak screenshots reference recording clean

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Watchfloor needs Python 3.11 or newer; run: make PYTHON=python3.11 install") if sys.version_info < (3, 11) else 0'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: install
	$(BIN)/watchfloor demo

test: install
	sh tests/system_tools.sh
	$(PYTEST) -n 3 -m "not long and not slow" tests/unit tests/tui tests/e2e/test_demo_headless.py

test-all: install
	sh tests/system_tools.sh
	$(PYTEST) -n 6 -m "not long" tests

check: install
	$(BIN)/ruff format --check app widgets harness tests
	$(BIN)/ruff check app widgets harness tests
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports

bench: install
	$(BIN)/python -m tests.bench $(if $(ONLY),--only $(ONLY))

MINUTES ?= 10
attack: install
	$(BIN)/python -m tests.attack --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

soak: install
	$(if $(ONLY)$(SEED),,PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m long tests)
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

screenshots: install
	$(BIN)/python -m tests.screenshots

reference: install
	$(BIN)/python -m tests.reference

recording: install
	$(BIN)/python -m tests.evening.recording $(REPO)

clean:
	rm -rf $(VENV)
