# Pliant's tasks. Each target installs what it needs (as root on Debian 12) and makes .venv itself.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
ACCASIM := build/accasim
PIP := -m pip --disable-pip-version-check -q
export PIP_ROOT_USER_ACTION := ignore

# Folders that may hold something to check; folders that do not exist yet are no error.
SHELL_ROOTS := $(wildcard .ci docker docs packaging plugins spank templates tests wrappers)
LUA := $(shell find $(wildcard plugins tests benchmarks) -name '*.lua' 2>/dev/null)
SUITES := $(wildcard tests/unit tests/prove tests/slurm)

# Root installs what Debian has of it; where that cannot be done, what is missing is said and then missed.
packages = @if [ "$$(id -u)" -eq 0 ]; then .ci/packages $(1) || true; fi

.PHONY: help
help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

.PHONY: demo
demo: ## the demonstration: a real, private Slurm here, with Pliant off and on (needs root)
	$(call packages,demo)
	@$(MAKE) $(VENV)/.run >&2
	@$(VENV)/bin/pliant demo

.PHONY: test test-here test-ddp test-pbs test-pmu
test: ## everything: check, unit tests, tests on a real Slurm and on a cluster of containers
	@.ci/packages test
	@$(MAKE) check
	@$(MAKE) spank
	@$(MAKE) -j2 --output-sync=target test-here test-cluster

test-here: $(VENV)/.dev
	$(PY) -m pytest -n 3 --dist loadfile --durations=15 $(SUITES)

test-ddp: $(VENV)/.torch ## the tests of the example for PyTorch, which make test leaves out (torch is large)
	$(PY) -m pytest -n 2 --dist loadfile --durations=15 tests/unit/ddp tests/slurm/ddp

test-pbs: $(VENV)/.dev ## the tests on a running PBS, which PLIANT_PBS_* name (see tests/pbs_server/pbs_fixtures.py)
	@$(PY) -m pytest -q -rs tests/pbs_server || [ $$? -eq 5 ]

test-pmu: ## the counters on an emulated machine with a PMU, and here (needs root; minutes)
	$(call packages,pmu)
	@$(MAKE) $(VENV)/.dev
	$(PY) -m pytest -rA tests/pmu

.PHONY: unit
unit: ## the unit tests alone: no Slurm, no root
	$(call packages,unit)
	@$(MAKE) $(VENV)/.dev
	$(PY) -m pytest tests/unit

.PHONY: check
check: ## what a reader should not have to look for: style, types, layers
	$(call packages,check)
	@$(MAKE) $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	@$(MAKE) check-shell check-lua check-c

.PHONY: check-shell check-lua check-c
check-shell:
	@scripts=$$(find $(SHELL_ROOTS) -type f -not -name '*.py' \
	    -exec sh -c 'head -c 64 "$$1" | head -n 1 | grep -aqE "^#!.*\b(ba)?sh\b"' _ {} \; -print); \
	echo "shellcheck" $$scripts; shellcheck $$scripts
check-lua:
	@$(if $(LUA),echo "luacheck" $(LUA); luacheck --quiet --no-color $(LUA))
check-c:
	@if [ -e spank/Makefile ]; then $(MAKE) -C spank check; fi
	@$(MAKE) -C tests/nvml_stub check
	$(CC) -fsyntax-only -Wall -Wextra -Werror benchmarks/speed/programs.c

.PHONY: bench
bench: ## measure, and write docs/benchmarks.md; PARTS= some alone (needs root; about half an hour)
	@.ci/packages test
	@$(MAKE) $(VENV)/.dev spank
	$(PY) -m benchmarks $(PARTS)

.PHONY: bench-speed
bench-speed: ## the monitor's speed against the true one; writes docs/benchmarks-speed.md (needs root, quiet; minutes)
	$(call packages,unit)
	@$(MAKE) $(VENV)/.dev
	$(PY) -m benchmarks.speed

.PHONY: bench-sim
bench-sim: $(ACCASIM)/.done ## the simulator beside AccaSim; DATA= the folder with swf/, PARTS= some; writes docs/benchmarks-sim.md
	$(PY) -m benchmarks.sim $(PARTS) --data "$(DATA)" --peer $(ACCASIM)/bin/python

.PHONY: reproduce
reproduce: $(VENV)/.dev ## the papers' claims, in full; DATA= the folder with traces; writes docs/reproduced.md (an hour)
	mkdir -p build
	$(VENV)/bin/pliant reproduce all $(if $(DATA),--data "$(DATA)") --out docs/reproduced.md --html build/reproduced.html

.PHONY: soak
soak: ## 10,000 jobs with and without Pliant; writes docs/soak.md (needs root; half an hour)
	@.ci/packages test
	@$(MAKE) $(VENV)/.dev spank
	$(PY) -m benchmarks.soak

.PHONY: resizes
resizes: ## resize one running job again and again; writes docs/resizes.md (needs root; minutes)
	@.ci/packages test
	@$(MAKE) $(VENV)/.dev spank
	$(PY) -m benchmarks.resizes

.PHONY: live
live: ## two papers' experiments on a real Slurm; writes docs/live.md (needs root; half an hour)
	@.ci/packages test
	@$(MAKE) $(VENV)/.dev spank
	$(PY) -m benchmarks.live

.PHONY: prove
prove: ## explore every order of events of a hand-over, with FAULTS=2 of all faults in each (long)
	@$(MAKE) $(VENV)/.dev
	cd tests && $(abspath $(PY)) -m prove --faults $(or $(FAULTS),2)

.PHONY: prove-seeds
prove-seeds: ## run the whole of pliantd under N=50 seeds, in one thread each; SEED= one again, with its trace; MUTANTS=1 which one notices a missing rule
	@$(MAKE) $(VENV)/.dev
	cd tests && $(abspath $(PY)) -m prove.seeds$(if $(MUTANTS),.mutants,$(if $(SEED), --one $(SEED))$(if $(N), --seeds $(N)))

.PHONY: prove-mutants
prove-mutants: ## take each decision of a hand-over out in turn, and say what notices it, MODULES= some alone; goes on from docs/mutants.md, ALL=1 from the start (hours)
	@$(MAKE) $(VENV)/.dev
	cd tests && $(abspath $(PY)) -m prove.mutate $(if $(ALL),--all )$(MODULES)

.PHONY: drill
drill: ## inject faults into hand-overs, N= runs more or until EACH= of each kind, K= at once, SUITE= in a container; writes docs/drill.md (needs root; minutes)
	@.ci/packages test
	@$(MAKE) $(VENV)/.dev spank
	@status=0; $(if $(SUITE),docker/cluster drill,$(PY) -m benchmarks.drill) --runs $(or $(N),0) \
		--each $(or $(EACH),0) --seed $(or $(SEED),0) $(if $(K),--at-once $(K)) || status=$$?; \
	$(PY) -m benchmarks.drill.document; exit $$status

.PHONY: spank
spank: ## build the SPANK plugin for the Slurm that is installed here
	@if [ -e spank/Makefile ]; then $(MAKE) -C spank; fi

.PHONY: deb
deb: ## make the Debian package for this machine's Debian and its Slurm, in dist/
	@.ci/packages deb
	@packaging/deb/build

.PHONY: fixture
fixture: ## freeze a release for the tests of later ones: VERSION=, of its tag (needs root)
	@.ci/packages deb
	@.ci/packages demo
	@packaging/fixture/build $(VERSION)

.PHONY: cluster cluster-down test-cluster test-container test-releases
cluster: ## a cluster of containers with Pliant, and a job on it; SUITE=bookworm, trixie, forky
	@docker/cluster up

cluster-down: ## end that cluster, and the engine if it was started for it
	@docker/cluster down

test-cluster: $(VENV)/.dev ## the tests on a cluster of containers; SUITE as above
	$(PY) -m pytest --durations=15 tests/docker

test-container: ## the tests on a real Slurm, in a container with that of SUITE
	@docker/cluster tests

test-releases: $(VENV)/.dev ## both on each release of Slurm; writes docs/releases.md
	$(PY) -m benchmarks.releases

.PHONY: clean
clean: ## remove what was built here
	@if [ -e spank/Makefile ]; then $(MAKE) -C spank clean; fi
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: what Pliant needs to run, then what it takes to develop it.

$(VENV)/bin/python:
	$(call packages,python)
	python3 -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(PY) $(PIP) install -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	$(call install,dev)
	@touch $@

# The build of torch for CPUs alone; it is no package of PyPI's, so pip must know where it is.
$(VENV)/.torch: $(VENV)/.dev
	$(call install,torch)
	@touch $@

# A simulator to measure beside: in an environment of its own, for it needs what Pliant does not.
$(ACCASIM)/.done: $(VENV)/.dev
	python3 -m venv $(ACCASIM)
	$(call install,accasim,$(ACCASIM))
	@touch $@

# A group of pyproject.toml's [dependency-groups], into the environment or into another.
define install
@$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["$(1)"], sep="\n")' >$(VENV)/$(1).txt
$(or $(2),$(VENV))/bin/python $(PIP) install -r $(VENV)/$(1).txt
endef
