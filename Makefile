# Toolcrib from a clone: `make run` starts it, `make test` tests it; both need only Python 3.11 or newer.
#
#   PYTHON=python3.13 make run     the Python that creates the environment (found automatically if unset)
#   make run ARGS="--port 6741"    arguments for the command behind a target

VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
JOBS ?= 3
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# The locks are complete and hashed, so nothing is resolved; bytecode is compiled on first use.
LOCKED := $(PIP) install --require-hashes --no-deps --no-compile
# A second start must reuse the compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: help run test quick check fmt bench soak mutants docs lock clean distclean

help:
	@echo "make run     start the gateway with the demo (ARGS=... is passed on)"
	@echo "make test    all gates and tests with coverage, also against other programs"
	@echo "make quick   fast tests only"
	@echo "make check   lint, format, types, import layers, file sizes"
	@echo "make fmt     format the code and apply the automatic fixes of ruff"
	@echo "make bench   side-by-side benchmark"
	@echo "make soak    acceptance checks at full length, as a table, about two hours (ARGS='--only 21,38')"
	@echo "make mutants mutation tests of the steps and hints (ARGS=steps.limit for one module)"
	@echo "make docs    check the documentation"
	@echo "make lock    resolve the lock files again (ARGS=--upgrade for newer versions)"
	@echo "make clean   remove caches and reports; distclean also removes $(VENV) and .parts"

run: $(VENV)/.run
	@exec $(BIN)/toolcrib serve --demo $(ARGS)

# Coverage also measures the servers and commands that tests start as processes.
test: $(VENV)/.dev
	@$(BIN)/python -m tests.parts
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder --cov --cov-report=term $(ARGS)

quick: $(VENV)/.dev
	@TOOLCRIB_PARTS=present $(BIN)/python -m pytest -q -m "not slow" -n $(JOBS) --dist loadgroup --no-loadscope-reorder $(ARGS)

check: $(VENV)/.dev
	@$(BIN)/python -m tests.gates

fmt: $(VENV)/.dev
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev
	@$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.dev
	@$(BIN)/python -m tests.parts
	@$(BIN)/python -m tests.soak $(ARGS)

mutants: $(VENV)/.dev
	@$(BIN)/python -m tests.mutation --jobs $(JOBS) $(ARGS)

docs: $(VENV)/.dev
	@$(BIN)/python -m pytest -q tests/docs $(ARGS)
	@echo "The documentation is plain Markdown: read docs/."

# --- environment: one directory, two stamp files; it is rebuilt only when a lock file changes ---

# The pip and setuptools that come with Python may be outdated, so they are replaced first.
SEEDED := $(LOCKED) -r requirements-build.lock
EDITABLE := $(PIP) install --no-deps --no-build-isolation --editable .

$(VENV)/.run: requirements.lock requirements-build.lock pyproject.toml | $(BIN)/python
	@echo "Installing Toolcrib into $(VENV) ..."
	@$(SEEDED)
	@$(LOCKED) -r requirements.lock
	@$(EDITABLE)
	@touch $@

$(VENV)/.dev: requirements-dev.lock requirements-build.lock pyproject.toml | $(BIN)/python
	@echo "Installing Toolcrib and its test tools into $(VENV) ..."
	@$(SEEDED)
	@$(LOCKED) -r requirements-dev.lock
	@$(EDITABLE)
	@touch $@ $(VENV)/.run

$(BIN)/python:
	@sh .ci/venv $(VENV)

# --- locks: hashes for everything, no address of any index ---

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header
# LangChain has an environment of its own (tests/parts/peers): its packages and the official SDK cannot share one.
EXTRAS := demo otel postgres
GROUPS := build test lint changelog lock
PEERS := $(basename $(wildcard tests/parts/*/*.in))

lock: $(VENV)/.dev
	$(COMPILE) $(ARGS) pyproject.toml --extra demo -o requirements.lock
	$(COMPILE) $(ARGS) --group build -o requirements-build.lock
	$(COMPILE) $(ARGS) pyproject.toml $(EXTRAS:%=--extra %) $(GROUPS:%=--group %) \
		-c requirements.lock -c requirements-build.lock -o requirements-dev.lock
	@set -e; for peer in $(PEERS); do $(COMPILE) $(ARGS) $$peer.in -o $$peer.lock; done
	$(BIN)/python -m tests.parts lock
	@$(MAKE) $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/gates/test_supply.py

clean:
	@rm -rf build dist mutants .coverage .coverage.* htmlcov .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -not -path './.parts/*' -prune -exec rm -rf {} +

distclean: clean
	@rm -rf $(VENV) .parts
