# Efficient training labs. `make help` lists the targets; CONTRIBUTING.md says more.
#
# Yours to override:  make setup PYTHON=python3.12 VENV=/path/to/env
#                     make setup TORCH="torch==2.12.0 --index-url https://…" PIP_ARGS="--index-url https://…"
#                     make setup LOCK=cpu              (exactly what the tests have run with; LOCK=cuda with a GPU)
#                     make test VENV=$VIRTUAL_ENV      (it gets what it lacks, and is never deleted)

PYTHON    ?= python3
VENV      ?= .venv
TORCH     ?=
PIP_ARGS  ?=
LOCK      ?=
WORKERS   ?=
PYTEST_ARGS ?=
DEMO_ARGS ?=
SITE_ARGS ?=
LAB_ARGS  ?=
BENCH_ARGS ?=

# Programs of the environment are found first: nbgrader starts some by name.
BIN   := $(if $(filter /%,$(VENV)),$(VENV)/bin,$(CURDIR)/$(VENV)/bin)
PY    := "$(BIN)/python"
STAMP := $(VENV)/.setup-stamp
SITE  := $(VENV)/.site-stamp
OUTER := $(PATH)
export PATH := $(BIN):$(PATH)
# Kernels, too, come from this environment and not from the user's home.
export JUPYTER_PREFER_ENV_PATH = 1
# Thousands of processes start in the tests: without compiled files each would compile all of them anew.
unexport PYTHONDONTWRITEBYTECODE

# A part of test-all, or several: make test-all PART="answers attacks" (tests/selection.py lists them; triton is one
# more), of it one lab (LAB=05), what `make test` has not run (LANE=rest), these files alone (FILES=tests/exercises).
PART      ?=
LAB       ?=
LANE      ?= all
FILES     ?=
PYTEST_PARTS = $(filter-out triton,$(PART))
# Two cores are kept busy by two processes, and in `make test`, half of which waits for limits to be reached, by three.
PROCESSES = 2
test: PROCESSES = 3
SHARED = -n $(or $(WORKERS),$(PROCESSES)) --dist worksteal
# The oldest Triton that labkit.interpreter supports is tried beside the newest, which is the environment's own.
OLD_TRITON = 3.6.0
TRITON_TESTS = tests/interpreter $(wildcard tests/meters/test_traffic*.py tests/meters/test_compiled*.py)
GPU    = nvidia-smi -L 2>/dev/null | grep -q GPU
# With or without a GPU the same tests run, and run alike: on the CPU. Those of the GPU are `make test-gpu`.
check test test-all test-old-triton build/rest.json: export CUDA_VISIBLE_DEVICES =

# What students get has neither grader nor tests, and of these targets few.
KNOWN = $(if $(wildcard grading),[a-z-]+,(help|setup|lab))

.DEFAULT_GOAL := help
.PHONY: help setup demo site pictures test test-all test-old-triton check lab lock notebooks bench test-gpu bench-gpu lint format clean FORCE

help: ## this list
	@grep -hE '^$(KNOWN):.*## ' Makefile | awk -F ':.*## ' '{ printf "  make %-16s %s\n", $$1, $$2 }'

setup: $(STAMP) ## make the environment (the other targets do this by themselves)
	@echo "ready: $(VENV)"

# Asked for anything special, or moved to another folder: look again, even if no file is newer.
ifneq ($(strip $(TORCH)$(PIP_ARGS)$(LOCK)$(filter-out file,$(origin PYTHON))),)
$(STAMP): FORCE
endif
ifneq ($(shell test -x "$(VENV)/bin/python" && tail -n 1 "$(STAMP)" 2>/dev/null),$(CURDIR))
$(STAMP): FORCE
endif

$(STAMP): pyproject.toml $(wildcard .make/setup*.py)
	@PATH="$(OUTER)"; command -v $(PYTHON) >/dev/null || { echo "setup: no $(PYTHON) on this machine. Fix: install Python 3.12, or make setup PYTHON=/path/to/python" >&2; exit 1; }
	@PATH="$(OUTER)"; $(PYTHON) .make/setup.py --venv "$(VENV)" --torch "$(TORCH)" --pip-args "$(PIP_ARGS)" --lock "$(LOCK)" $(if $(filter file,$(origin PYTHON)),,--this-python)

demo: $(STAMP) ## grade a sample class and show the report
	@$(PY) -m grading demo $(DEMO_ARGS)

site: $(SITE) ## make the course's pages, static HTML, in build/site
	@$(PY) -m grading site $(SITE_ARGS)

# What only the pages need is installed when they are first made.
$(SITE): $(STAMP)
	@echo "site: installing what makes the pages"
	@$(PY) -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) $(LOCK:%=--constraint .make/locks/%.txt) -e ".[site]"
	@touch $@

pictures: $(STAMP) ## take the README's pictures anew, in Chromium
	@$(PY) -m tests.browser.pictures

lab: $(STAMP) ## open JupyterLab on your own copy of the labs, in work/
	@$(PY) .make/lab.py $(LAB_ARGS)

notebooks: $(STAMP) ## write the student notebooks from solutions/
	@$(PY) -m grading build

lint: $(STAMP)
	$(PY) -m ruff check
	$(PY) -m ruff format --check

check: lint ## the fast lane: lint, fresh notebooks, quick tests; changes no file
	$(PY) -m pytest --lane check $(SHARED) $(PYTEST_ARGS)

test: lint ## what to run before a change is handed in: about ten minutes on two cores
	$(PY) -m pytest --lane test $(SHARED) $(PYTEST_ARGS)

ifeq ($(strip $(PART)),)
test-all: lint test-old-triton $(SITE) ## everything: every answer, attack and notebook, the oldest Triton; one part: PART=attacks
	$(PY) -m pytest --lane all $(SHARED) $(PYTEST_ARGS)
else
test-all: $(if $(filter triton,$(PART)),test-old-triton,$(STAMP)) $(if $(filter classroom,$(PART)),$(SITE))
	$(if $(PYTEST_PARTS),$(PY) -m pytest --lane $(LANE) $(PYTEST_PARTS:%=--part=%) $(LAB:%=--lab=%) $(SHARED) $(PYTEST_ARGS) $(FILES))
endif

# The tests that test-all has beyond test, for .ci/lanes.py to choose from.
build/rest.json: $(STAMP) FORCE
	@mkdir -p build
	@$(PY) -m pytest --lane rest --collect-only -qqq --places $@

ifeq ($(shell uname -s),Linux)
test-old-triton: $(VENV)/triton-$(OLD_TRITON)/.complete ## the quick tests of kernels, with the oldest Triton that is supported
	PYTHONPATH="$(BIN)/../triton-$(OLD_TRITON)" $(PY) -c "import triton; assert triton.__version__ == '$(OLD_TRITON)', triton"
	PYTHONPATH="$(BIN)/../triton-$(OLD_TRITON)" $(PY) -m pytest --lane check $(SHARED) $(PYTEST_ARGS) $(TRITON_TESTS)
else
test-old-triton:
	@echo "skipped: Triton has builds for Linux only"
endif

$(VENV)/triton-$(OLD_TRITON)/.complete: $(STAMP)
	$(PY) -m pip install --quiet --no-deps --upgrade --target "$(BIN)/../triton-$(OLD_TRITON)" $(PIP_ARGS) "triton==$(OLD_TRITON)"
	touch $@

lock: $(VENV)/uv/.complete ## write down the versions that are installed, in .make/locks/
	@$(PY) .make/lock.py "$(BIN)/../uv/bin/uv"

$(VENV)/uv/.complete: $(STAMP)
	$(PY) -m pip install --quiet --no-deps --upgrade --target "$(BIN)/../uv" $(PIP_ARGS) uv
	@touch $@

test-gpu: $(STAMP) ## the tests that need an NVIDIA GPU
	@if $(GPU); then $(PY) -m pytest -m gpu $(PYTEST_ARGS) || [ $$? = 5 ]; else echo "skipped: no NVIDIA GPU"; fi

bench: $(STAMP) ## measure, and write benchmarks/results/
	@$(PY) -m benchmarks $(BENCH_ARGS)

bench-gpu: $(STAMP) ## the measurements that need an NVIDIA GPU
	@if $(GPU); then $(PY) -m benchmarks --gpu $(BENCH_ARGS); else echo "skipped: no NVIDIA GPU"; fi

format: $(STAMP) ## let ruff rewrite what it can
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

clean: ## remove what was built (never work/ or the environment)
	rm -rf build .pytest_cache .ruff_cache .hypothesis *.egg-info
	find labkit grading tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
