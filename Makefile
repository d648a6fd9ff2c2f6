# The commands of this repository. They need Linux or macOS, make, and Python 3.11 to 3.13 with venv. If uv is not
# installed, it is installed once into the user's cache.

UV_VERSION := $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' deploy/uv.txt)
CACHE      := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/galatea
OWN_UV     := $(CACHE)/uv-$(UV_VERSION)/bin/uv
UV         := $(or $(shell command -v uv 2>/dev/null),$(OWN_UV))
RUN         = $(UV) run --no-sync
STAMP      := .venv/.synced
BESIDE     := .pytest_cache/beside.log
ALL_PARTS  := fast integration deployments others
PARTS      ?= $(ALL_PARTS)
TESTS_OF_fast        = tests/fast -q -n auto --dist worksteal
TESTS_OF_integration = tests/integration
TESTS_OF_deployments = tests/system/deployments
TESTS_OF_others      = tests/system --ignore=tests/system/deployments

export UV_PYTHON_DOWNLOADS := never
# Tests and the demo start many processes. Without byte code, each would compile the same modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all fast mutants lint audit docs drills drill campaign fuzz ledger bench clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

install: $(STAMP) ## Install the locked packages into .venv, and fetch and prepare what Java needs
	@$(RUN) galatea jars

demo: $(STAMP) ## Start everything, play a trading day on real receipts; ARGS=--once stops and checks
	@$(RUN) galatea demo $(ARGS)

# Integration tests share one stack and mostly wait for it. Meanwhile, the fast tests and the system tests, which start
# what they need themselves, run at a low priority; their output is printed at the end.
test: install ## What CI runs, in half an hour on two slow cores: fast tests, and each feature once on real parts; or the tests in ARGS
ifdef ARGS
	@$(RUN) pytest $(ARGS)
else
	@mkdir -p .pytest_cache; \
	$(RUN) python -m tests.beside >$(BESIDE) 2>&1 & beside=$$!; \
	trap 'kill $$beside 2>/dev/null' INT TERM; \
	$(RUN) pytest tests/integration -m "not nightly"; shared=$$?; \
	wait $$beside; others=$$?; cat $(BESIDE); exit $$((shared | others))
endif

test-all: $(STAMP) ## Every test, in hours; PARTS="fast integration" runs two of the four parts, PARTS="deployments others" the rest
	@$(MAKE) --no-print-directory --keep-going $(PARTS:%=test-all-%)

$(ALL_PARTS:%=test-all-%): test-all-%: $(STAMP)
	@GALATEA_LAWS=full $(RUN) pytest $(TESTS_OF_$*) $(ARGS)

fast: $(STAMP) ## Tests that need no other process: minutes
	@$(RUN) pytest tests/fast -q -n auto --dist worksteal -m "not nightly" $(ARGS)

mutants: $(STAMP) ## Mutation testing of the core rules: about half an hour
	@$(RUN) pytest tests/system/test_mutants.py -q -s

lint: $(STAMP) ## Style, formatting, types, import rules, dependencies
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy
	$(RUN) lint-imports
	$(RUN) deptry .

audit: $(OWN_UV) ## Ask osv.dev for known vulnerabilities of the locked packages
	@$(OWN_UV) audit --frozen --preview-features audit-command $(ARGS)

docs: $(STAMP) ## Write docs/reference again from the code
	$(RUN) python -m galatea.cli.reference $(ARGS)

drills: $(STAMP) ## Faults under load on one running stack, each number checked: 4 minutes; or those that ARGS names
	@$(RUN) python -m tests.system.drills $(ARGS)

drill: drills ## One of them: ARGS="D08 --seed 4711", or a line of the ledger again: ARGS="--line 17"

campaign: $(STAMP) ## The long set, in parts of 45 minutes: ARGS="--shard 1/4 --seed 7"
	@$(RUN) python -m tests.system.drills --long $(ARGS)

fuzz: $(STAMP) ## Random and mutated input for every parser and server: ARGS="sql csv --minutes 60 --seed 7"
	@$(RUN) python -m tests.system.fuzz $(ARGS)

ledger: $(STAMP) ## Sum up the ledgers of drills and fuzzing
	@$(RUN) python -m tests.system.drills.ledger

bench: $(STAMP) ## Measure, print the table and keep it
	$(RUN) python -m benchmarks $(ARGS)

clean: ## Remove environment and tool caches; never .galatea, which holds data
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Install the locked packages: from the cache if it has them all, otherwise over the network.
$(STAMP): uv.lock pyproject.toml | $(UV)
	@$(UV) sync --frozen --offline --quiet 2>/dev/null || $(UV) sync --frozen
	@touch $@

# An installation that fails is removed, so that no incomplete one is used.
$(OWN_UV):
	@echo "  installing uv $(UV_VERSION) once, into $(CACHE)"
	@mkdir -p $(CACHE)
	@for python in python3.13 python3.12 python3.11 python3; do \
	  $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && break; \
	done && $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	  || { echo "  Python 3.11, 3.12 or 3.13 is needed. Next: install one, with venv"; exit 1; }; \
	rm -rf $(CACHE)/uv-$(UV_VERSION) && $$python -m venv $(CACHE)/uv-$(UV_VERSION) \
	  && $(CACHE)/uv-$(UV_VERSION)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --require-hashes --no-deps --only-binary :all: -r deploy/uv.txt \
	  || { rm -rf $(CACHE)/uv-$(UV_VERSION); exit 1; }
