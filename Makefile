# Everything runs inside .venv, which is made on first use. Needs Python >= 3.10 with venv and pip.
PYTHON ?= python3
# The version of PyTorch the tests compare with; `make test TORCH=` does without.
TORCH ?= torch==2.13.0
# For `make gpu-test` and `make gpu-bench`: the CUDA version of the driver, 12 or 13.
CUDA ?= 13

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# What each target needs installed: extras of pyproject.toml.
EXTRAS_tour := data,draw
EXTRAS_test := data,draw,test,scale
EXTRAS_oldest := test
EXTRAS_newest := test
EXTRAS_scale := data,test,scale
EXTRAS_lint := lint
EXTRAS_docs := data,draw,docs

# Two test processes on two cores: one BLAS thread each; who has finished takes work from the other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
# COSTS=FILE prints a table of CPU seconds and writes FILE (tests/costs.py); with BUDGET=SECONDS a run may fail by it.
COUNT := $(if $(COSTS),--costs="$(COSTS)") $(if $(BUDGET),--budget=$(BUDGET))
# REST=1 leaves out of `make test-thorough` what `make test` runs.
NOT_FIRST := $(if $(REST),thorough and )
# The Pythons that `make test-oldest` and `make test-newest` use: of this machine, the lowest version that is
# supported, and the newest one.
at_hand = $(firstword $(foreach v,$(1),$(wildcard $(HOME)/.pyenv/versions/3.$(v).*/bin/python3 /usr/bin/python3.$(v) /usr/local/bin/python3.$(v))))
OLDEST ?= $(call at_hand,10)
NEWEST ?= $(call at_hand,14 13 12)

.PHONY: tour test test-thorough test-all test-oldest test-newest oldest newest scale scale-bench lint docs docs-links proofs bench
.PHONY: gpu-static gpu-test gpu-bench clean
.SECONDARY:

tour: $(VENV)/tour.installed
	$(BIN)/symad tour

test: $(VENV)/test.installed $(VENV)/torch.tried $(VENV)/jax.tried
	$(PYTEST) $(COUNT) -m "not slow and not thorough"

test-thorough: $(VENV)/test.installed $(VENV)/torch.tried $(VENV)/jax.tried
	$(PYTEST) $(COUNT) -m "$(NOT_FIRST)not slow"

test-all: $(VENV)/test.installed $(VENV)/torch.tried $(VENV)/jax.tried
	$(PYTEST) $(COUNT)

# The tests that depend most on the versions of Python, NumPy and SymPy, with the oldest and the newest Python.
test-oldest: CHOSEN = $(or $(OLDEST),$(error no Python 3.10 is at hand; name one by OLDEST=path/to/python3))
test-newest: CHOSEN = $(or $(NEWEST),$(error no Python newer than 3.11 is at hand; name one by NEWEST=path/to/python3))
test-oldest test-newest: test-%:
	$(MAKE) VENV=.venv-$* PYTHON=$(CHOSEN) .venv-$*/$*.installed
	OMP_NUM_THREADS=1 .venv-$*/bin/python -m pytest -q -n 2 $(COUNT) -m "not slow and not thorough" \
		tests/test_contract.py tests/numeric/calls tests/numeric/compiled tests/symad/tracing

oldest:
	@echo $(OLDEST)

newest:
	@echo $(NEWEST)

# Parts of data on two worker processes of this machine: an example, the tests, scaling in small.
scale: $(VENV)/scale.installed
	$(BIN)/python examples/speed/35_beyond_one_core.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/scale tests/splitting
	$(BIN)/python benchmarks/scale/bench_scale.py --small

# Scaling, threads, dask-ml, dask-glm, scikit-learn, JAX and one core, in small, and a stream of 200 MB: minutes.
# FULL=1: at full size, with a stream of 2 GB; some ten minutes on two free cores. Their files are those that
# docs/scale.md shows. The stream of 20 GB: benchmarks/scale/bench_stream.py --size 20GB.
SCALE_OUT := $(if $(FULL),benchmarks/results/cpu,build/scale-bench)
SCALE_SMALL := $(if $(FULL),,--small)

scale-bench: $(VENV)/scale.installed $(VENV)/scale-peers.tried
	mkdir -p $(SCALE_OUT)
	$(BIN)/python benchmarks/scale/bench_scale.py $(SCALE_SMALL) --json $(SCALE_OUT)/scale.json
	$(BIN)/python benchmarks/scale/bench_scale_peers.py $(SCALE_SMALL) --out $(SCALE_OUT)
	$(BIN)/python benchmarks/scale/bench_one_core.py $(SCALE_SMALL) --out $(SCALE_OUT)
	$(BIN)/python benchmarks/scale/bench_stream.py --size 200MB --out $(SCALE_OUT)
	$(if $(FULL),$(BIN)/python benchmarks/scale/bench_stream.py --size 2GB --out $(SCALE_OUT))

lint: $(VENV)/lint.installed
	$(BIN)/ruff check .
	$(BIN)/mypy

# The lemmas behind certificates in Coq; needs coqc and Coquelicot (Debian: coq, libcoq-coquelicot).
proofs:
	@if ! command -v coqc > /dev/null; then \
		echo "proofs: skipped, coqc is not installed (Debian: apt-get install coq libcoq-coquelicot)"; \
	else \
		mkdir -p build/proofs && cp symad/verification/coq/*.v build/proofs/ && cd build/proofs && \
		for name in Functions Relations Statements Elementary Programs Equality Certificates; do \
			echo "coqc Symad$$name.v" && coqc -w -ambiguous-paths Symad$$name.v || exit 1; done; \
	fi

# Against JAX, PyTorch, CasADi and SymEngine; results go to benchmarks/results/cpu/.
bench: $(VENV)/test.installed $(VENV)/torch.tried $(VENV)/cpu-peers.tried
	$(BIN)/python benchmarks/run_all.py

# Generated CuPy code against CuPy's own wheel, which needs no device: names, calls, and kernels as CuPy writes and
# compiles them. The wheel and its toolkit (2 GB) are kept outside of the checkout; where they cannot be had within
# a quarter of an hour, the checks are left out.
WHEEL := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/symad-tests/cupy-cuda$(CUDA)

gpu-static:
	@[ $(WHEEL)/installed -nt pyproject.toml ] || { $(PYTHON) -m venv $(WHEEL) && \
		timeout 900 $(WHEEL)/bin/python -m pip --disable-pip-version-check install --quiet --retries 1 --timeout 30 '.[gpu-cuda$(CUDA)]' pytest pytest-xdist hypothesis && \
		$(WHEEL)/bin/python -m pip --disable-pip-version-check uninstall --quiet --yes symad && touch $(WHEEL)/installed; } || true
	@if [ -e $(WHEEL)/installed ]; then \
		PYTHONPATH=$(CURDIR) OMP_NUM_THREADS=1 $(WHEEL)/bin/python -m pytest -q -n 2 $(COUNT) tests/gpu/static; \
	else echo "CuPy's wheel cannot be had here: the checks of generated code against it are left out"; fi

# On a machine with a CUDA device; results go to benchmarks/results/*.json.
gpu-test: $(VENV)/cupy.installed $(VENV)/torch.tried
	$(BIN)/python benchmarks/gpu/device_tests.py

gpu-bench: $(VENV)/cupy.installed $(VENV)/torch.tried $(VENV)/peers.tried
	$(BIN)/python benchmarks/gpu/probe.py
	$(BIN)/python benchmarks/gpu/attention.py
	$(BIN)/python benchmarks/gpu/pairwise.py
	$(BIN)/python benchmarks/gpu/models.py

# Pages of the reference are made anew: those of names that are gone would be errors.
docs: $(VENV)/docs.installed
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

# Follows every link to another site: needs a network.
docs-links: $(VENV)/docs.installed
	$(BIN)/sphinx-build -b linkcheck docs docs/_build/links

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest build dist *.egg-info docs/_build .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("symad needs Python 3.10 or newer; give one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# An editable install, so that the next `make` runs the files as they are then.
$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable '.[$(EXTRAS_$*)]'
	@touch $@

$(VENV)/cupy.installed: $(VENV)/test.installed
	$(PIP) install --quiet --editable '.[gpu-cuda$(CUDA)]'
	@touch $@

$(VENV)/cpu-peers.tried: $(VENV)/test.installed
	for peer in jax casadi symengine asdex; do \
		$(PIP) install --quiet $$peer || echo "$$peer cannot be installed here: it is left out"; \
	done
	@touch $@

$(VENV)/scale-peers.tried: $(VENV)/scale.installed
	for peer in dask-ml dask-glm jax; do \
		$(PIP) install --quiet $$peer || echo "$$peer cannot be installed here: it is left out"; \
	done
	@touch $@

$(VENV)/jax.tried: $(VENV)/test.installed
	$(PIP) install --quiet jax \
		|| echo "jax cannot be installed here: the tests that compare with it will be skipped"
	@touch $@

$(VENV)/peers.tried: $(VENV)/cupy.installed
	$(PIP) install --quiet pykeops || echo "pykeops cannot be installed here: it is left out"
	@touch $@

ifneq ($(TORCH),)
$(VENV)/torch.tried: $(VENV)/test.installed
	$(PIP) install --quiet "$(TORCH)" \
		|| echo "$(TORCH) cannot be installed here: the tests that compare with it will be skipped"
	@touch $@
else
.PHONY: $(VENV)/torch.tried
endif
