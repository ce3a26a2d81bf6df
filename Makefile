# The README's two commands are `make demo` and `make test`; each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# a test file to a worker at a time; more than eight would mostly load tokenizers and models anew
WORKERS := --numprocesses auto --maxprocesses 8 --dist loadfile

.PHONY: demo demo-ladder demo-overflow test test-all check format docs bench wheel clean help

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "brim needs Python 3.11 or newer: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "setting up .venv, once: about 250 MB of packages, some minutes" >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local,postgres,mcp,pdf]' --group dev
	touch $(STAMP)

demo: $(STAMP) ## the founding scene on the embedded model
	@$(BIN)/python bench/demo.py

demo-ladder: $(STAMP) ## the same with grep unbounded: the ladder at work
	@$(BIN)/python bench/demo.py --scene ladder

demo-overflow: $(STAMP) ## the same with the ladder off: the provider's refusal
	@$(BIN)/python bench/demo.py --scene overflow

test: $(STAMP) ## all tests but the slow ones
	$(BIN)/python -m pytest -m "not slow" $(WORKERS)

test-all: $(STAMP) ## every test
	BRIM_LAW_EXAMPLES=5000 BRIM_TEST_KILLS=100 BRIM_TEST_CALLS=1010 $(BIN)/python -m pytest
	$(BIN)/python bench/llama_judge.py

check: $(STAMP) ## format, lint, types, layers
	$(BIN)/ruff format --check src tests bench docs
	$(BIN)/ruff check src tests bench docs
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## format, and fix what can be fixed
	$(BIN)/ruff format src tests bench docs
	$(BIN)/ruff check --fix src tests bench docs

docs: $(STAMP) ## docs/help.md from the programs' own --help, docs/output.schema.json from the events
	$(BIN)/python docs/make_help.py
	$(BIN)/python docs/make_schema.py

bench: $(STAMP) ## how long a start takes, beside llm
	$(BIN)/python bench/startup.py

wheel: $(STAMP) ## build it, install it into an environment of its own, start it
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build/wheel && venv/bin/brim --version && venv/bin/ai --help >/dev/null && venv/bin/brim tool glob '{"pattern": "*.whl"}'

clean: ## everything that was made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
