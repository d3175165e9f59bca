# Everything runs inside .venv, which is made on first use. Needs Python >= 3.10 with venv and pip.
PYTHON ?= python3
# The version of PyTorch the tests compare with; `make test TORCH=` does without.
TORCH ?= torch==2.13.0

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# What each target needs installed: extras of pyproject.toml.
EXTRAS_tour := data,draw
EXTRAS_test := data,draw,test
EXTRAS_lint := lint
EXTRAS_docs := docs

# Two test processes on two cores: one BLAS thread each.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.PHONY: tour test test-all lint docs clean
.SECONDARY:

tour: $(VENV)/tour.installed
	$(BIN)/symad tour

test: $(VENV)/test.installed $(VENV)/torch.tried
	$(PYTEST) -m "not slow"

test-all: $(VENV)/test.installed $(VENV)/torch.tried
	$(PYTEST)

lint: $(VENV)/lint.installed
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/docs.installed
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist *.egg-info docs/_build .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("symad needs Python 3.10 or newer; give one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# An editable install, so that the next `make` runs the files as they are then.
$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable '.[$(EXTRAS_$*)]'
	@touch $@

ifneq ($(TORCH),)
$(VENV)/torch.tried: $(VENV)/test.installed
	$(PIP) install --quiet "$(TORCH)" \
		|| echo "$(TORCH) cannot be installed here: the tests that compare with it will be skipped"
	@touch $@
else
.PHONY: $(VENV)/torch.tried
endif
