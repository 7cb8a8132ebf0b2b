# Each target makes its own virtual environment where there is none.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test test-slow test-oldest test-integrations \
	lint format coverage docs wheel bench clean

help:  ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[train,figures,ray]' --group dev --group docs
	touch $@

demo: .venv/ready  ## the main job: a thousand networks, their laws, the best split; about a minute
	$(BIN)/ensize demo -o demo

test: lint  ## lint, types and every test that is not slow
	$(BIN)/python -m pytest

lint: .venv/ready  ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test-slow: .venv/ready  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

.venv/integrations: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --group integrations
	touch $@

test-integrations: .venv/integrations  ## with Lightning, Transformers, ONNX, pandas and Polars
	$(BIN)/python -m pytest tests/integrations tests/train/test_export.py

.venv-oldest/ready: pyproject.toml oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --upgrade 'pip>=25.1'
	.venv-oldest/bin/pip install --quiet --constraint oldest.txt --editable . pytest hypothesis mpmath
	touch $@

test-oldest: .venv-oldest/ready  ## the core alone, with the oldest dependencies it allows
	.venv-oldest/bin/python -m pytest tests

coverage: .venv/ready  ## which branches of the source the tests take
	$(BIN)/python -m pytest --cov --cov-report=term-missing:skip-covered
	@echo 'The analysis rooms, of which at least 95 % are to be covered:'
	$(BIN)/coverage report --skip-covered --fail-under=95 \
		--omit='*/train/*,*/cli/*,*/figures/*,*/reports/*,*/integrations/*'

docs: .venv/ready  ## the site, in docs/_build; a broken link fails
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build

wheel: .venv/ready  ## the wheel, installed alone in a new environment and tried there
	rm -rf dist && $(BIN)/python -m build --quiet
	$(BIN)/python .ci/try_wheel.py dist/*.whl

format: .venv/ready  ## put the source in its form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.venv/peers: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --group peers
	touch $@

bench: .venv/peers  ## the measured ratios of docs/benchmarks.md and docs/estimates.md
	$(BIN)/python benchmarks/scoring.py --large
	$(BIN)/python benchmarks/fitting.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/estimates.py

clean:  ## remove what was made
	rm -rf .venv .venv-oldest demo dist docs/_build docs/reference
