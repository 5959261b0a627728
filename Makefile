# Two commands: `make demo` and `make test`. Both set up .venv first; a second run starts at once.
SHELL := /bin/bash
BIN := .venv/bin
READY := .venv/.ready
BROWSER := .venv/.browser

.DEFAULT_GOAL := help
.PHONY: help setup demo fresh wheel quick test matrix lint types faults rest kafka live fuzz fuzz-inputs chaos docs
# The slowest tests, which kill processes, wait for streams or start Sparks of their own: apart, beside all others.
APART := tests/faults tests/chaos tests/spark/test_connect.py tests/spark/test_stream.py tests/spark/test_balanced_map.py \
	tests/spark/test_event_log.py tests/spark/test_workers_python.py tests/spark/test_fuzz_restarts.py

help: ## Say what the targets do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

# The tests' queries are too short for what Java's second compiler does for them, which takes half their time.
faults rest matrix: export JAVA_TOOL_OPTIONS += -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

setup: $(READY) ## Make .venv with the exact versions of constraints.txt, and ensure Java is installed

demo: $(READY) ## Show how evenly the schemes share a skewed stream
	$(BIN)/skewless demo

fresh: ## Prove the set-up on a clone of HEAD with an empty home and no caches
	scripts/fresh.sh

wheel: $(READY) ## Build the wheel, install it into a new environment, run the README's example there
	scripts/wheel.sh

quick: lint types $(BROWSER) ## Check style, types and imports, and run the tests that need no Spark
	$(BIN)/pytest --ignore=tests/spark --ignore=tests/faults --ignore=tests/chaos --ignore=tests/kafka

matrix: $(READY) ## Run the Spark tests on every Spark that is supported
	scripts/matrix.sh

test: lint types docs $(BROWSER) ## Check style, types, imports and the documentation's links, then run all tests
	$(MAKE) --no-print-directory --jobs=2 faults rest
	$(MAKE) --no-print-directory kafka

faults: $(READY) ## Run the slowest tests: faults, streams, Spark Connect
	$(BIN)/pytest $(APART)

rest: $(READY) $(BROWSER) ## Run all other tests
	$(BIN)/pytest $(APART:%=--ignore=%) --ignore=tests/kafka

kafka: $(READY) ## Run the tests with a real Kafka broker, in a process of their own: one JVM, other jars
	$(BIN)/pytest tests/kafka

live: $(READY) ## Watch three queries on one topic of a real broker while the hot key moves
	$(BIN)/python -m show.live

MINUTES ?= 10
fuzz: $(READY) ## Compare random computations and restarts with plain Spark, MINUTES=10 each
	SKEWLESS_FUZZ_MINUTES=$(MINUTES) $(BIN)/pytest -s tests/spark/test_fuzz.py tests/spark/test_fuzz_restarts.py \
		tests/spark/test_join_fuzz.py

INPUTS ?= 12000
SEED ?= 1
fuzz-inputs: $(READY) ## Hand INPUTS=12000 damaged spec strings, command lines, files and plans of SEED=1 to all readers
	PYTHONPATH=src:. $(BIN)/python -m tests.fuzz_inputs --inputs $(INPUTS) --seed $(SEED)
	PYTHONPATH=src:. $(BIN)/pytest tests/fuzz_inputs

chaos: $(READY) ## Kill, stop and damage what runs, at random moments of MINUTES=10, and compare all totals
	PYTHONPATH=src:. $(BIN)/python -m tests.chaos --minutes $(MINUTES) --seed $(SEED) --json chaos.json

docs: $(READY) ## Build the documentation into site/, offline; a broken link fails
	$(BIN)/python scripts/reference.py
	$(BIN)/zensical build --clean --strict

lint: $(READY) ## Check style and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY) ## Check types
	$(BIN)/mypy

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	scripts/setup.sh
	@touch $@

# Only tests need a browser, so `make demo` does not wait for one.
$(BROWSER): $(READY) scripts/setup.sh
	scripts/setup.sh chromium
	@touch $@
