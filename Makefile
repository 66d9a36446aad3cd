# Every target sets up what it needs: a virtual environment in .venv, nothing outside but caches
# in $XDG_CACHE_HOME/bentpipe (the bed's kernel, builds of implementations under test).

PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
PACKAGES := spec/bentpipe_spec reference/bentpipe_reference reference/bentpipe_experiments \
	conformance/bentpipe_conformance fuzz/bentpipe_fuzz
# Of the protocol that docs/add-a-protocol.rst adds.
TOY := docs/toy/reference docs/toy/conformance
OUT ?= bentpipe-runs/linux-geo
# By themselves: one TLC runs ahead per CPU, which several processes of pytest would multiply.
MODEL_TESTS := conformance/tests/models/test_models.py
# What needs no bed, no model checker and no process of its own.
QUICK_TESTS := spec/tests \
	$(filter-out %/experiments %/__pycache__,$(patsubst %/,%,$(wildcard reference/tests/*/))) \
	conformance/tests/engine conformance/tests/protocols conformance/tests/evidence \
	conformance/tests/report conformance/tests/selftest/test_coverage_of_requirements.py
# Sockets, hostile peers, whole transfers and large reports take seconds each.
QUICK_LEFT_OUT := $(addprefix --ignore-glob=*/,test_asyncio.py test_sockets.py test_hostile.py \
	test_transfer.py test_stream_integrity.py test_page.py test_bundle.py test_proxy.py \
	test_captures.py)
PACKETS ?= 1000000
# Of the campaign against STP; BEGINS come from forged addresses.
MINUTES ?= 10
BEGINS ?= 1000000
SEED ?= 1
TRANSFERS ?= 200
# In the simulation, and as many in the bed.
KILLS ?= 100
# Of mutated files: captures are of each of two formats.
BUNDLES ?= 20000
CAPTURES ?= 50000
# Of Hypothesis, for each of its tests of files, and of atheris, which libFuzzer guides by coverage.
EXAMPLES ?= 1000
GUIDED ?= 5000
# Of the machine-made mutants: processes, and where results are kept, so that a rerun goes on.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
MUTATION ?= bentpipe-runs/mutation
# Of two Linux hosts, with two to three connections on average.
ENCOUNTERS ?= 200
SUITE = $(shell echo $(firstword $(subst -, ,$(ID))) | tr A-Z a-z)

.PHONY: help setup certify test quick quick-lint quick-types quick-tests checker slow tool lint \
	transfers innocents mutation bench lines durability fuzz fuzz-stp models nightly scenarios scenarios-check stability stability-boxes stp-transfer docs \
	package bed clean

help:
	@echo "Use it"
	@echo "  make certify         certify Linux's TCP over a netem GEO link; report in $(OUT);"
	@echo "                       KEY=~/.ssh/id_ed25519 signs it"
	@echo "  make stp-transfer    100 MB by STP between two hosts over a lossy GEO link (minutes)"
	@echo "  make docs            build the documentation in docs/_build"
	@echo "  make bed             build the test bed's virtual-time kernel (once per machine)"
	@echo "Change it"
	@echo "  make quick           lint, types and the fast tests (seconds)"
	@echo "  make checker ID=SNR-REC-001"
	@echo "                       the tests, cases and mutants of one requirement (seconds)"
	@echo "  make test            all tests, linters, type checks and models (needs Java and Maven)"
	@echo "  make slow            the heavier tests"
	@echo "  make package         build the wheel and test it from an empty directory"
	@echo "Measure it"
	@echo "  make bench           print the benchmark ratios"
	@echo "  make lines           code lines of each protocol, by the rule of .ci/lines.py"
	@echo "  make transfers       $(TRANSFERS) random transfers of each suite: no checker may accuse (minutes)"
	@echo "  make mutation        every small change of the references: which does no case notice? (long)"
	@echo "  make innocents       the permitted variants of blind rounds, and $(ENCOUNTERS) random encounters of two"
	@echo "                       Linux hosts: no checker may accuse (minutes)"
	@echo "  make stability       20 certifications in a row, quiet and loaded, must agree (long);"
	@echo "                       stability-boxes: of the reference of PEP/1, in virtual time"
	@echo "  make durability      every writing system call of a certification fails, and twice $(KILLS) kills (long)"
	@echo "  make fuzz            $(BUNDLES) mutated bundles, twice $(CAPTURES) mutated captures, and other files (long)"
	@echo "  make fuzz-stp        a million STP packets through three codecs, a million forged BEGINs,"
	@echo "                       and MINUTES=$(MINUTES) of conversations that nobody wrote down (long)"
	@echo "Prove it"
	@echo "  make models          check the TLA+ models and their mutants (needs Java and Maven)"
	@echo "  make nightly         check them at larger bounds and draw behaviours at realistic sizes (long)"
	@echo "  make scenarios       regenerate the suites' scenarios from the models; scenarios-check compares"

setup: $(READY)

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "bentpipe needs Python 3.11 or newer: apt-get install python3 python3-venv" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
		{ echo "cannot make a virtual environment: apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# -- use it

bed: setup
	$(BIN)/bentpipe bed build

certify: bed
	$(BIN)/bentpipe certify linux --link geo --out $(OUT) --fresh $(if $(KEY),--sign $(KEY))

stp-transfer: bed
	$(BIN)/python -m bentpipe_conformance.benchmarks.stp_transfer

docs: setup
	$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html

# -- change it

quick: setup
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target quick-lint quick-types quick-tests

quick-lint:
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/lint-imports > .venv/lint-imports.txt || { cat .venv/lint-imports.txt; exit 1; }

quick-types:
	@$(BIN)/mypy $(PACKAGES) $(TOY)

# Half of the modules' start is their compilation, which may be kept even where the tree may not change.
quick-tests:
	@PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.venv/pycache \
		$(BIN)/python -m pytest -q -n auto -m "not slow and not long and not bed and not hypothesis" \
		$(QUICK_LEFT_OUT) $(QUICK_TESTS)

checker: setup
	@test -n "$(ID)" || { echo "name a requirement: make checker ID=SNR-REC-001" >&2; exit 2; }
	@$(BIN)/bentpipe show $(ID)
	@files=$$(grep -rlF --include='test_*.py' -- "$(ID)" $(QUICK_TESTS)); \
		test -z "$$files" || $(BIN)/python -m pytest -q -m "not slow and not bed" $$files
	@$(BIN)/bentpipe selftest $(SUITE) --only $(ID)

test: tool lint docs
	$(BIN)/bentpipe bed fetch
	$(BIN)/python -m pytest -m "not slow" -n auto --dist loadgroup --ignore=$(MODEL_TESTS)
	$(BIN)/python -m pytest -m "not slow" $(MODEL_TESTS)

slow: tool bed
	$(BIN)/python -m pytest -m slow -n auto

# Before the long work: without Java no model can be checked, and the sentence says how to get it.
tool: setup
	@$(BIN)/bentpipe model --fetch

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(PACKAGES) $(TOY)
	$(BIN)/lint-imports

# Outside the checkout: its models and packages must not stand in for those of the wheel.
package: setup
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(BIN)/tox -q -e package --workdir "$$folder"

# -- measure it

bench: setup
	@failed=0; for benchmarks in bentpipe_conformance.benchmarks bentpipe_fuzz.campaign.speed; do \
		$(BIN)/python -m $$benchmarks || failed=1; done; exit $$failed

# No checker may accuse a true reference, whatever the link, the settings and the users do.
# Code lines of each protocol, room by room.
lines:
	@$(PYTHON) .ci/lines.py

transfers: setup
	$(BIN)/bentpipe selftest snr --transfers $(TRANSFERS)
	$(BIN)/bentpipe selftest stp --transfers $(TRANSFERS)
	$(BIN)/bentpipe selftest pep --transfers $(TRANSFERS)

# Fails below the score of reference/bentpipe_reference/*/mutants/modules.toml. Writes what
# docs/reference/mutation.rst shows.
mutation: setup
	@failed=0; for suite in snr stp; do \
		nice -n 10 $(BIN)/bentpipe selftest $$suite --mutate --jobs $(JOBS) \
			--out $(MUTATION)/$$suite.json --publish docs/reference/mutation-$$suite.json || failed=1; \
	done; exit $$failed
# Nor real Linux, whatever its sysctls say; what it is known to do otherwise is subtracted.
# Nor what others have written from the texts alone.
innocents: bed
	@failed=0; for round in reference/bentpipe_reference/*/mutants/blind/variants_*.toml; do \
		protocol=$$(echo $$round | cut -d / -f 3); number=$${round##*_}; \
		$(BIN)/bentpipe selftest $$(echo $$protocol | sed 's/^tcp$$/snr/') \
			--variants $${number%.toml} --jobs $(JOBS) || failed=1; \
	done; $(BIN)/bentpipe selftest snr --linux $(ENCOUNTERS) && exit $$failed

stability: bed
	$(BIN)/python -m bentpipe_conformance.run.stability linux --runs 20
	$(BIN)/python -m bentpipe_conformance.run.stability linux --runs 20 --load

# The same for boxes, in virtual time, where a certification is cheapest.
stability-boxes: setup
	$(BIN)/python -m bentpipe_conformance.run.stability pep-reference --runs 20

# Every writing system call fails in every way, power cuts, and kills in simulation and bed (long).
durability: bed
	BENTPIPE_FAULTS=all BENTPIPE_KILLS=$(KILLS) $(BIN)/python -m pytest -n $(JOBS) -rP \
		conformance/tests/durability

# Files from anybody, by our own mutations, by Hypothesis and by atheris, which it installs where
# there is one: no traceback, no hang, bounded memory (long).
fuzz: setup
	$(BIN)/python -m bentpipe_fuzz.inputs bundle --runs $(BUNDLES) --seed $(SEED)
	for kind in pcap pcapng; do \
		$(BIN)/python -m bentpipe_fuzz.inputs $$kind --runs $(CAPTURES) --seed $(SEED) || exit 1; done
	for kind in toml vectors; do \
		$(BIN)/python -m bentpipe_fuzz.inputs $$kind --runs 20000 --seed $(SEED) || exit 1; done
	for protocol in tcp stp rwbp pep; do \
		$(BIN)/python -m bentpipe_fuzz.inputs.codecs $$protocol --packets $(PACKETS) \
			--seed $(SEED) || exit 1; done
	BENTPIPE_INPUTS=$(EXAMPLES) BENTPIPE_MUTATED_BUNDLES=$(EXAMPLES) $(BIN)/python -m pytest -q \
		fuzz/tests/inputs/test_inputs.py conformance/tests/evidence/test_mutated_bundles.py
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	for kind in bundle pcap pcapng toml vectors; do \
		$(BIN)/python -m bentpipe_fuzz.inputs $$kind --atheris --runs $(GUIDED) --seed $(SEED) \
			|| exit 1; done

fuzz-stp: setup
	BENTPIPE_STP_PACKETS=$(PACKETS) nice -n 19 $(BIN)/python -m pytest -v --durations=0 \
		fuzz/tests/stp/test_agreement.py -k many_packets
	nice -n 19 $(BIN)/python -m bentpipe_fuzz.stp.flood --begins $(BEGINS) --seed $(SEED)
	nice -n 19 $(BIN)/bentpipe fuzz stp-reference-simulated --minutes $(MINUTES) --seed $(SEED) \
		--jobs $(JOBS) --fresh

# -- prove it

models: tool
	$(BIN)/bentpipe model all --tier pr --mutants

# Larger bounds, and behaviours drawn at realistic sizes.
nightly: tool
	$(BIN)/bentpipe model all --tier nightly

scenarios: tool
	$(BIN)/bentpipe model all --scenarios

scenarios-check: tool
	$(BIN)/bentpipe model all --scenarios --check

clean:
	rm -rf .venv .tox dist build docs/_build
