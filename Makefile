# Every command sets up its own virtual environment; only python3 and make are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.dev-installed
APP := $(VENV)/.app-installed
SMALL_PAGES := figure2 table2 figure3a partners
KEPT := docs/results/campaign docs/results/learning
OPTIMISED := tests/test_compiled_and_eager.py tests/training/test_update.py
export JAX_PLATFORMS ?= cpu

.PHONY: demo test test-slow test-optimised chaos fuzz attack soak golden lint format types imports bench docs campaign results clean

# Two runs side by side, one a core; interrupted, the same command goes on.
demo: $(APP)
	if test -d demo/runs; then $(BIN)/dropin train --resume demo/runs; \
	else $(BIN)/dropin train lbf gpl-q --rules reference --seeds 0,1 --steps 960000 \
	--checkpoint-every 80000 --keep all --directory demo/runs; fi
	$(BIN)/python examples/demo.py demo/runs

test: lint types imports $(DEV)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

# The other tests hardly optimise what they compile; these compile as users do.
test-optimised: $(DEV)
	DROPIN_TEST_XLA=normal $(BIN)/pytest -m "not slow" $(OPTIMISED)

# All tests, the slow ones among them, with every shape and type checked at run time.
test-slow: $(DEV)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder \
	--jaxtyping-packages=dropin,shape_checks.check

# Kills, loss of power and faults of the disk; prints what was tried and found. An hour unless
# told otherwise, as in make chaos MINUTES=20 FLAGS="--parts power disk".
chaos: $(DEV)
	PYTHONPATH=tests nice -n 10 $(BIN)/python -m chaos --minutes $(or $(MINUTES),60) $(FLAGS)

# Whether the library still computes what it computed when tests/golden/values.json was recorded.
golden: $(DEV)
	$(BIN)/python tests/golden/golden.py check

# Hours of use in compressed time, after which nothing may be left behind; see tests/soak. At least
# 24 cycles, and at least 15 minutes unless told otherwise.
soak: $(DEV)
	PYTHONPATH=src:tests:tests/arena:tests/experiments nice -n 19 $(BIN)/python -m soak \
	--minutes $(or $(MINUTES),15) $(FLAGS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(DEV)
	$(BIN)/basedpyright --pythonpath $(BIN)/python

imports: $(DEV)
	$(BIN)/lint-imports

# Everything that is read, fuzzed for 20 minutes more, or as many as are given, guided by coverage;
# Linux only. The corpus and the counts are kept in fuzz-state, or as in FLAGS="--state DIRECTORY".
fuzz: $(DEV)
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[fuzz]"
	$(BIN)/python tests/fuzz/fuzz_run.py --minutes $(or $(MINUTES),20) $(FLAGS)

# The arena under attack: the slow tests of it, with what they measure.
attack: $(DEV)
	$(BIN)/pytest -s tests/arena/test_attack.py tests/arena/test_fuzz.py

bench: $(DEV)
	$(BIN)/python benchmarks/games.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/xla.py --quick

# All runs of the results page: trains what is missing, at low priority, until it is stopped. As in
# make campaign CORES="0 1" or make campaign FLAGS=--plan
campaign: $(APP)
	$(BIN)/dropin campaign --use docs/results/learning --nice 19 $(if $(CORES),--cores $(CORES)) $(FLAGS)

# The pages of results, drawn anew from the runs that are kept in docs/results.
results: $(DEV)
	$(BIN)/dropin reproduce summary --rules reference --draw \
	--use $(KEPT) --directory docs/results/reference
	$(BIN)/dropin campaign --plan --report lines --use docs/results/learning --directory no-runs \
	| grep -v "^The rest takes" > docs/results/campaign/plan.txt
	$(BIN)/dropin benchmark report docs/results/benchmark --out docs/results/benchmark
	for item in $(SMALL_PAGES); do $(BIN)/dropin reproduce $$item --scale 0.05 --draw \
	--use docs/results/learning --directory docs/results/small || exit 1; done

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(APP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[plot]"
	touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[dev]"
	touch $@ $(APP)

clean:
	rm -rf $(VENV) site demo .pytest_cache .ruff_cache .hypothesis
