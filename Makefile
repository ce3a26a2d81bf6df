# The README's two commands are `make demo` and `make test`; each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all check format docs bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local,postgres]' --group dev
	touch $(STAMP)

demo: $(STAMP) ## the founding scene on the embedded model
	$(BIN)/python bench/demo.py

test: $(STAMP) ## all tests but the slow ones
	$(BIN)/python -m pytest -m "not slow"

test-all: $(STAMP) ## every test
	BRIM_LAW_EXAMPLES=5000 $(BIN)/python -m pytest

check: $(STAMP) ## format, lint, types, layers
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
