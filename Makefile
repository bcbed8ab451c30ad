# `make run` starts a site; `make test` runs all tests; plain `make` is what to run before a commit.
SHELL := /bin/bash
PY := .venv/bin/python
ARGS ?=

.DEFAULT_GOAL := check
.PHONY: check run test test-fast e2e setup fmt lint types docs clean help

help: ## this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

check: lint types test-fast ## lint, types and fast tests

run: setup ## start the site with its demo run; ARGS="--port 9000 --bind 0.0.0.0 --data DIR --no-demo"
	@exec $(PY) manage.py up $(ARGS)

test: setup-dev ## all tests: Redis, PostgreSQL, a real swarm, a real browser
	@scripts/test.sh

test-fast: setup-dev ## tests without network, swarm or browser
	@$(PY) -m pytest -q -m "not redis and not postgres and not swarm and not e2e and not benchmark" -n 4 --dist worksteal

e2e: setup-dev ## the whole site with a real swarm and a browser
	@$(PY) -m pytest -q -m e2e

benchmark: setup-dev ## tables of measurements
	@$(PY) -m pytest -q -s -m benchmark

setup: ## .venv with what the site and the trainers need
	@scripts/setup.sh run

setup-dev:
	@scripts/setup.sh dev

fmt: ## format the code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

lint: setup-dev ## style, imports, templates
	@.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/lint-imports --no-cache

types: setup-dev ## mypy, strict
	@.venv/bin/mypy

docs: setup-dev ## write the generated reference pages anew
	@$(PY) scripts/reference_write.py && $(PY) scripts/catalogue_write.py

clean: ## remove caches; the data folder stays
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
