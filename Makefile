# Needs JDK 17, Python 3.11 and Maven; everything else comes from the lock file and the poms.
#
#   make demo     set everything up, then run the main job on real data
#   make test     set everything up, then lint and run all tests
#   make setup    only the set-up: .venv, the jar, the embedded servers
#   make tools    tools that some tests need: helm and others, built from pinned sources
#
# Set-up is made of stamp files: what is there and unchanged is skipped.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python 3.11 of the usual names.
PYTHON ?= $(shell for p in python3.11 python3 python; do \
  if $$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; \
  then echo $$p; break; fi; done)
MVN ?= mvn
MVN_FLAGS ?= -q -B -ntp

VENV := .venv
BIN := $(VENV)/bin
JAR := operators/target/freshet-flink.jar
SERVERS := .servers/.complete
JAVA_SOURCES := pom.xml .mvn/jvm.config $(wildcard schemas/*.avsc schemas/history/*/*.avsc) \
  $(foreach m,connectors operators,$(m)/pom.xml $(shell find $(m)/src/main -type f 2>/dev/null))

# pip may build a source distribution; that must not depend on what the caller has set.
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help
help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(VENV)/.complete $(JAR) $(SERVERS) ## Make .venv, the jar and the embedded servers

.PHONY: tools
tools: ## Build tools that some tests need (helm, ...) into .tools
	@PYTHON="$(PYTHON)" tools/install

.PHONY: demo
demo: setup ## Run the main job on real data; writes out/demo/report.html
	$(BIN)/freshet demo

.PHONY: test
test: setup lint ## Lint, then run the Java and the Python tests
	@tests/run "$(MVN) -B -ntp test" "$(BIN)/python -m pytest"

.PHONY: soak
soak: setup ## Run the tests that take minutes each
	$(BIN)/python -m pytest -m soak

.PHONY: lint
lint: setup ## Check style and types of both languages
	@echo "== Lint"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MVN) $(MVN_FLAGS) spotless:check

.PHONY: format
format: setup ## Format both languages
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(MVN) $(MVN_FLAGS) spotless:apply

.PHONY: bench
bench: setup ## Measure throughput, freshness and overheads
	$(BIN)/python -m benchmarks

.PHONY: lock
lock: setup ## Resolve the Python dependencies anew (needs uv on the PATH)
	for lock in "requirements.lock pyproject.toml --group dev -c requirements-constraints.in" \
	    "requirements-build.lock requirements-build.in"; do \
	  set -- $$lock; output=$$1; shift; \
	  uv pip compile -q --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-annotate --no-header -o $$output "$$@" >/dev/null; \
	done

.PHONY: clean
clean: ## Remove all that was built (not a running stack: stop that with `freshet down`)
	rm -rf $(VENV) .servers .tools out connectors/target operators/target servers/target target *.egg-info

# Two steps, because the few source distributions among the dependencies must be built with the
# pinned setuptools, not with the newest: build isolation would take the latter.
$(VENV)/.complete: requirements.lock requirements-build.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	  echo "freshet: no Python 3.11 found (PyFlink has no wheel for newer ones);" \
	    "install it, or name it with 'make setup PYTHON=/path/to/python3.11'" >&2; exit 1; fi
	@echo "== Python environment ($(VENV))"
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) || { \
	    echo "freshet: '$(PYTHON) -m venv' failed; on Debian and Ubuntu it needs the package" \
	      "python3.11-venv" >&2; rm -rf $(VENV); exit 1; }; fi
	$(PIP) install -q --require-hashes -r requirements-build.lock
	$(PIP) install -q --require-hashes --no-build-isolation -r requirements.lock
	$(PIP) install -q --no-deps --no-build-isolation --editable .
	$(PIP) check
	@touch $@

define require_java
command -v $(MVN) >/dev/null || { \
  echo "freshet: Maven ('$(MVN)') is not on the PATH; install Maven 3.8 or newer" >&2; exit 1; }; \
$(MVN) -v 2>/dev/null | grep '^Java version: 17' >/dev/null || { \
  echo "freshet: Maven does not run on JDK 17 (see 'mvn -v'); set JAVA_HOME to one" >&2; exit 1; }
endef

$(JAR): $(JAVA_SOURCES)
	@$(require_java)
	@echo "== Jar ($@)"
	$(MVN) $(MVN_FLAGS) -DskipTests package
	@touch $@  # Maven leaves a jar alone that would come out the same.

$(SERVERS): servers/pom.xml pom.xml
	@$(require_java)
	@echo "== Embedded servers (.servers)"
	rm -rf .servers
	$(MVN) $(MVN_FLAGS) -f servers/pom.xml prepare-package
	@case "$$(uname -s)-$$(uname -m)" in \
	  Linux-x86_64) platform=linux-amd64 ;; \
	  Linux-aarch64 | Linux-arm64) platform=linux-arm64 ;; \
	  *) echo "freshet: the embedded stack runs on Linux (x86-64, arm64), not on $$(uname -sm)" >&2; \
	     exit 1 ;; \
	esac; \
	cp .servers/redis/redis-server-*-$$platform .servers/redis/redis-server; \
	chmod +x .servers/redis/redis-server; \
	rm -f .servers/redis/redis-server-*
	@touch $@
