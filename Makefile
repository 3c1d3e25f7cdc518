# `make` lists what there is. Everything runs in .venv, which `make setup` makes.
BIN := .venv/bin
export PYTHON
# If it is set, each test process compiles all test modules again, which takes 5 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo wheel release-check test test-quick test-slow checks test-matrix test-clients helm-check lint bench bench-assignors soak clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv, fetch the jars and create class archives; PYTHON=... chooses the interpreter
	@deploy/setup.sh

demo: setup ## Run broker, groups and monitor until Ctrl-C; DURATION_S=90 ends it by itself
	@$(BIN)/rebalance-monitor demo $(if $(DURATION_S),--duration-s $(DURATION_S))

# Slow tests mostly wait. So the checks and the quick tests use the rest of the cores, with a lower priority. Their output
# comes in one piece when they end.
test: setup ## Run every check and every test, the real broker's included
	@$(MAKE) --no-print-directory -k -j2 test-slow checks

checks: setup
	@nice -n 10 $(MAKE) --no-print-directory -j1 lint test-quick >.checks.log 2>&1; code=$$?; cat .checks.log; exit $$code

# Two files at a time: three take two cores as long. In order, for the longest come first.
test-slow: setup ## Run the tests that start a broker, Spark or a browser
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "slow and not matrix and not helm" \
		$$(grep -rl "mark\.slow" tests --include="test_*.py" --exclude-dir=matrix --exclude-dir=chart | sort)

test-quick: setup ## Run the tests that take seconds
	$(BIN)/pytest -n auto -m "not slow"

test-matrix: setup ## Run the end-to-end tests against Kafka 3.7, 3.9 and 4.3 too; fetches their jars once
	$(BIN)/rebalance-monitor jars --every-kafka
	$(BIN)/pytest -v -m matrix

test-clients: setup ## Run groups of every client library under one monitor, an hour at most; CLIENTS=... are parts of their names
	$(BIN)/python -m tests.clients.run $(CLIENTS)

helm-check: setup ## Check the Helm chart with Helm and with published schemas; needs Go and Node.js
	$(BIN)/pytest -v -m helm tests/deploy/chart

wheel: ## Build the wheel into dist/; PYTHON=... chooses the interpreter
	@rm -rf dist && deploy/image/wheel.sh dist && ls dist/*.whl

release-check: setup ## Install the wheel into an empty environment, run demo and monitor from it; options in CHECK_ARGS=...
	$(BIN)/python -m tests.release_check $(CHECK_ARGS)

lint: setup ## Check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.11 --package dashboards
	$(BIN)/lint-imports

bench: setup ## Measure the monitor and compare with targets; options in BENCH_ARGS=...
	$(BIN)/python -m tests.bench.run $(BENCH_ARGS)

bench-assignors: setup ## Measure the assignment strategies
	$(BIN)/python -m tests.bench.assignors

soak: setup ## Run broker, groups and monitor for HOURS=1 and measure growth
	$(BIN)/python -m tests.bench.run_soak $(if $(HOURS),--hours $(HOURS))

clean: ## Remove all that was made here; the jars stay in the user's cache
	rm -rf .venv .checks.log .demo .bench .clients .helm build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
