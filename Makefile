# Every target sets up what it needs: a virtual environment in .venv, nothing outside but caches
# in $XDG_CACHE_HOME/bentpipe (the bed's kernel, builds of implementations under test).

PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
OUT ?= bentpipe-runs/linux-geo
# By themselves: one TLC runs ahead per CPU, which several processes of pytest would multiply.
MODEL_TESTS := conformance/tests/modelling/test_models.py
PACKETS ?= 1000000
# Of the campaign of hostile and unlucky STP peers; BEGINS come from forged addresses.
SECONDS ?= 600
BEGINS ?= 1000000
SEED ?= 1
TRANSFERS ?= 200

.PHONY: help setup certify test tool transfers lint bench fuzz-stp models scenarios scenarios-check stability stp-transfer docs bed clean

help:
	@echo "make certify   certify Linux's TCP over a netem GEO link; report in $(OUT)"
	@echo "make test      run all tests, linters, type checks and models (needs Java and Maven)"
	@echo "make transfers 200 random transfers of each suite, in which no checker may accuse (minutes)"
	@echo "make bench     print the benchmark ratios"
	@echo "make fuzz-stp  a million STP packets through three codecs, a million forged BEGINs, and"
	@echo "               SECONDS=600 of hostile and unlucky peers (long)"
	@echo "make models    check the TLA+ models and their mutants (needs Java and Maven)"
	@echo "make scenarios make the models' scenarios for the suites again; scenarios-check compares"
	@echo "make stability 20 certifications in a row, quiet and loaded, must agree (long)"
	@echo "make stp-transfer  100 MB by STP between two hosts over a lossy GEO link (some minutes)"
	@echo "make docs      build the documentation in docs/_build"
	@echo "make bed       build the test bed's virtual-time kernel (once per machine)"

setup: $(READY)

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "bentpipe needs Python 3.11 or newer: apt-get install python3 python3-venv" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
		{ echo "cannot make a virtual environment: apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

bed: setup
	$(BIN)/bentpipe bed build

certify: bed
	$(BIN)/bentpipe certify linux --link geo --out $(OUT) --fresh

test: tool lint
	$(BIN)/bentpipe bed fetch
	$(BIN)/python -m pytest -m "not slow" -n auto --ignore=$(MODEL_TESTS)
	$(BIN)/python -m pytest -m "not slow" $(MODEL_TESTS)

# No checker may accuse a true reference, whatever the link, the settings and the users do.
transfers: setup
	$(BIN)/bentpipe selftest snr --transfers $(TRANSFERS)
	$(BIN)/bentpipe selftest stp --transfers $(TRANSFERS)

slow: tool bed
	$(BIN)/python -m pytest -m slow -n auto

# Before the long work: without Java no model can be checked, and the sentence says how to get it.
tool: setup
	@$(BIN)/bentpipe model --fetch

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy spec/bentpipe_spec reference/bentpipe_reference reference/bentpipe_experiments conformance/bentpipe_conformance fuzz/bentpipe_fuzz
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m bentpipe_conformance.benchmarks

fuzz-stp: setup
	BENTPIPE_STP_PACKETS=$(PACKETS) nice -n 19 $(BIN)/python -m pytest -v --durations=0 \
		fuzz/tests/test_stp_agreement.py -k many_packets
	nice -n 19 $(BIN)/python -m bentpipe_fuzz.stp --seconds $(SECONDS) --seed $(SEED) \
		--begins $(BEGINS) --out bentpipe-runs/stp-campaign

models: tool
	$(BIN)/bentpipe model all --tier pr --mutants

scenarios: tool
	$(BIN)/bentpipe model all --scenarios

scenarios-check: tool
	$(BIN)/bentpipe model all --scenarios --check

stability: bed
	$(BIN)/python -m bentpipe_conformance.run.stability linux --runs 20
	$(BIN)/python -m bentpipe_conformance.run.stability linux --runs 20 --load

stp-transfer: bed
	$(BIN)/python -m bentpipe_conformance.benchmarks.stp_transfer

docs: setup
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf .venv .tox dist build docs/_build
