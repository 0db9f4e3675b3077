# Two commands cover a day's work: `make demo` shows what this does, `make test` tells whether it still does.
PYTHON ?= python3
VENV ?= .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PYTEST := $(VENV)/bin/python -m pytest
# Stages that need more than a Python package index's small wheels, each a target of its own below.
LEFT_OUT := transformers vllm node browser soak
LIGHT := "not transformers and not vllm and not node and not browser and not soak"

.PHONY: demo test test-transformers test-vllm test-node test-browser test-wheel soak check format wheel clean help

help:
	@echo "make demo               an agent solves a bundled task over MCP, offline"
	@echo "make test               the tests that need no more than small wheels"
	@echo "make test-transformers  the tests of the transformers backend (installs torch)"
	@echo "make test-vllm          the tests against a real vLLM on the CPU (several gigabytes)"
	@echo "make test-node          the tests with MCP servers and clients from npm"
	@echo "make test-browser       the tests in headless Chromium"
	@echo "make test-wheel         the tests once more, from the built wheel"
	@echo "make soak               the long kill tests"
	@echo "make check              lint and strict types"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $$($(PYTHON) --version 2>&1) was found; name one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "Installing langchain-envscaler ..."
	@$(PIP) install -e .
	@touch $@

$(VENV)/.installed-tests: $(VENV)/.installed
	@echo "Installing what the tests need ..."
	@$(PIP) install -e . --group test --group check
	@touch $@

$(VENV)/.installed-transformers: $(VENV)/.installed-tests
	@echo "Installing torch and transformers ..."
	@$(PIP) install 'torch==2.13.0'
	@$(PIP) install -e '.[transformers]' --group transformers-test
	@$(PIP) install --no-deps 'dashscope==2.0.2' 'trl==1.16.0'
	@touch $@

demo: $(VENV)/.installed
	@$(VENV)/bin/envscaler run library_desk --task library_desk-06-a-late-return

test: $(VENV)/.installed-tests
	$(PYTEST) -m $(LIGHT) --cov --cov-report=term
	@echo "Left out: $(LEFT_OUT) (make test-NAME, make soak)."

test-transformers: $(VENV)/.installed-transformers
	$(PYTEST) -m transformers

# vLLM pins too much to share an environment, so it has one of its own.
test-vllm:
	@PYTHON=$(PYTHON) .ci/vllm-environment .cache/vllm
	.cache/vllm/bin/python -m pytest -m vllm --timeout 900

test-node: $(VENV)/.installed-tests
	$(PYTEST) -m node

test-browser: $(VENV)/.installed-tests
	$(PYTEST) -m browser

soak: $(VENV)/.installed-tests
	$(PYTEST) -m soak --timeout 3600

check: $(VENV)/.installed-tests
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

format: $(VENV)/.installed-tests
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

wheel: $(VENV)/bin/python
	@rm -rf dist && $(PIP) wheel --no-deps -w dist .

# The tests once more with the package as a user gets it: no editable install, no src/ beside it.
test-wheel: wheel
	@rm -rf .cache/wheel && mkdir -p .cache/wheel
	@$(PYTHON) -m venv .cache/wheel/venv
	@.cache/wheel/venv/bin/python -m pip -q --disable-pip-version-check install --upgrade 'pip>=25.1'
	@.cache/wheel/venv/bin/python -m pip -q --disable-pip-version-check install dist/*.whl --group test
	.cache/wheel/venv/bin/python -m pytest -m $(LIGHT)

clean:
	rm -rf $(VENV) dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
