# Each target sets up what it needs and is quick when nothing changed.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
ROWS ?= 1000000
PORT ?= 8765
MINUTES ?=
SEED ?=

.PHONY: help setup run test faults check bench bench-readers bench-api bench-mapping docs lock clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.ready ## install everything into .venv

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rowcall needs Python 3.11 or later; set PYTHON=python3.x")'
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install -q 'uv>=0.9'

$(VENV)/.ready: requirements-dev.lock pyproject.toml | $(UV)
	@$(UV) pip install -q --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-dev.lock
	@$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src  # commands start in half the time
	@touch $@

$(VENV)/.ready-bench: requirements-bench.lock $(VENV)/.ready
	@$(UV) pip install -q --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-bench.lock
	@touch $@

run: $(VENV)/.ready ## import the sample files, show what became of each row, and serve (PORT=8765)
	@for what in users:users.csv articles:articles.ndjson comments:comments.ndjson users:users_messy.csv; do \
		echo "$$ rowcall import samples/content/$${what#*:} --into $${what%%:*}"; \
		$(BIN)/rowcall import "samples/content/$${what#*:}" --into "$${what%%:*}" || [ $$? -eq 2 ] || exit 1; \
		echo; \
	done
	@$(BIN)/rowcall jobs --limit 4
	@echo; exec $(BIN)/rowcall serve --port $(PORT)

test: $(VENV)/.ready ## run every test, with three minutes of faults beside them (FAULTS=0: without)
ifeq ($(FAULTS),0)
	@$(BIN)/python -m pytest
else
	@log=$$(mktemp); trap 'kill $$storm 2>/dev/null; rm -f $$log' EXIT; \
	nice -n 10 $(BIN)/python -m tests.faults.storm --minutes $(or $(MINUTES),3) --seed $(or $(SEED),1) --programs 1 >$$log 2>&1 & storm=$$!; \
	$(BIN)/python -m pytest; tests=$$?; \
	echo "make faults, which ran beside the tests:"; wait $$storm; faults=$$?; cat $$log; \
	exit $$((tests || faults))
endif

faults: $(VENV)/.ready ## let everything fail under a running service, and see that no row is lost (MINUTES=5 SEED=…)
	@$(BIN)/python -m tests.faults.storm --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.ready ## lint, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

bench: $(VENV)/.ready-bench ## measure imports and exports against COPY and others (ROWS=1000000)
	@$(BIN)/python bench/engine.py --rows $(ROWS)

bench-readers: $(VENV)/.ready-bench ## measure reading and writing files against others (ROWS=1000000)
	@$(BIN)/python bench/readers.py --rows $(ROWS)

bench-api: ROWS = 300000
bench-api: $(VENV)/.ready ## measure the service under load, and beside its engine (ROWS=300000)
	@$(BIN)/python bench/api.py --rows $(ROWS)

bench-mapping: $(VENV)/.ready ## measure how well columns are matched to fields
	@$(BIN)/python bench/mapping.py --wrong

docs: $(VENV)/.ready ## make the generated parts of the documentation anew
	@$(BIN)/python docs/make_pages.py

lock: | $(UV) ## resolve the dependencies anew
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group dev -o requirements-dev.lock
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group bench -o requirements-bench.lock

clean: ## remove what was installed and made
	@rm -rf $(VENV) bench/data .pytest_cache .ruff_cache .hypothesis
