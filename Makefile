# `make` lists what can be made. Everything runs in .venv, which makes itself from requirements.lock.
SHELL := /bin/sh
.DEFAULT_GOAL := help

PYTHON ?=
RUN := .venv/bin/python -m
# Jobs of the examples and tests are started as `python`.
INSIDE := PATH="$(CURDIR)/.venv/bin:$$PATH"
PYTEST := $(INSIDE) $(RUN) pytest -n auto --maxprocesses 4 --dist loadfile
PYTEST_FLAGS ?=

# A shell's own settings must not change what is tested, or how long it takes.
unexport PYTHONPATH PYTHONHOME PYTHONOPTIMIZE PYTHONWARNINGS PYTHONDONTWRITEBYTECODE
export MPLBACKEND := Agg

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: env
env: ## make or refresh .venv (done by the others when needed; PYTHON=... chooses the Python)
	@PYTHON='$(PYTHON)' tools/make_env

.PHONY: demo
demo: env ## compare policies on a small cluster; writes demo-out/report.html
	@$(INSIDE) $(RUN) eunomia compare examples/demo.toml --out demo-out --force \
		--policy 'fifo?types=agnostic' --policy 'las?types=agnostic' \
		--policy max_min_fairness_agnostic --policy max_min_fairness

.PHONY: test
test: env ## run the tests, but for the slow ones
	@$(PYTEST) -m 'not slow' $(PYTEST_FLAGS)

SLOW_FLAGS ?=
.PHONY: test-slow
test-slow: env ## run the slow tests, which `test` leaves out, but for the longest, which `test-all` runs
	@$(PYTEST) -m 'slow and not nightly' $(PYTEST_FLAGS) $(SLOW_FLAGS)

.PHONY: test-all
test-all: env ## run all tests, on other random examples each time; SEED=... repeats some
	@seed=$${SEED:-$$(date +%s)}; echo "random examples of seed $$seed; again: make test-all SEED=$$seed" >&2; \
		HYPOTHESIS_PROFILE=varied $(PYTEST) --hypothesis-seed=$$seed $(PYTEST_FLAGS)

.PHONY: extras
extras: env
	-@$(RUN) pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary=:all: \
		--require-hashes -r requirements-extras.lock

.PHONY: test-extras
test-extras: extras ## run the tests that need Optuna or SciPy (installs both into .venv; without them those tests are skipped)
	@$(INSIDE) $(RUN) pytest $(PYTEST_FLAGS) tests/tuners/test_optuna.py \
		tests/reproduction/test_parts_by_hand.py::test_between_scattered_points_the_delaunay_triangle_counts \
		tests/reproduction/test_peers.py::test_pollux_tiresias_and_optimus_are_as_near_as_interpolation_allows

# A test that fails and then passes is named, so that somebody looks at it; what fails twice ends in an error, and so does
# a file that could not be imported, as no test has run then.
SUBMAKE := $(MAKE) --no-print-directory --old-file=extras --old-file=env
twice-%:
	+@rm -rf .pytest_cache/$*; cache="-o cache_dir=.pytest_cache/$*"; \
	$(SUBMAKE) $* PYTEST_FLAGS="$(PYTEST_FLAGS) $$cache" || { \
		! grep -qs '^ *"[^:]*":' .pytest_cache/$*/v/cache/lastfailed || exit 2; \
		echo "== $*: what failed is run once more"; \
		$(SUBMAKE) $* PYTEST_FLAGS="$(PYTEST_FLAGS) $$cache --last-failed --last-failed-no-failures=none" && \
		echo "== $*: what failed, above, passed when run once more"; }

SERVICE_TESTS ?= tests/service tests/slurm_commands/test_live_commands.py tests/docs/test_first_job.py
.PHONY: test-service
test-service: extras ## run the tests of the service but the longest (installs its extras and PostgreSQL where it may)
	-@tools/install_packages PostgreSQL "initdb pg_ctl" postgresql
	@$(INSIDE) $(RUN) pytest -n 2 --dist loadfile -m 'not nightly' $(PYTEST_FLAGS) $(SERVICE_TESTS)

MINUTES ?= 4
.PHONY: test-attack
test-attack: extras ## attack the service by users' tokens, on both stores (MINUTES=60 for an hour)
	-@tools/install_packages PostgreSQL "initdb pg_ctl" postgresql
	@$(INSIDE) $(RUN) tests.service.attack --minutes $(MINUTES)

.PHONY: test-slurm
test-slurm: extras ## run the tests against a real Slurm on loopback (installs it and the extra where it may; else skipped)
	-@tools/install_packages Slurm "slurmctld slurmd munged" \
		slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
	@EUNOMIA_TEST_SLURM=1 $(INSIDE) $(RUN) pytest -n 3 --dist load $(PYTEST_FLAGS) tests/slurm

.PHONY: test-ray
test-ray: extras ## run the tests against a real Ray cluster on this machine (installs the extra into .venv; else skipped)
	-@$(RUN) pip install --quiet --no-compile --no-input --disable-pip-version-check --no-deps --only-binary=:all: \
		--require-hashes -r requirements-ray.lock
	@EUNOMIA_TEST_RAY=1 $(INSIDE) $(RUN) pytest -o faulthandler_timeout=300 $(PYTEST_FLAGS) tests/ray_cluster

.PHONY: test-kubernetes
test-kubernetes: extras ## run the tests against a real API server (needs tools/install_kubernetes --build, once; else skipped)
	-@tools/install_kubernetes
	-@$(RUN) pip install --quiet --no-compile --no-input --disable-pip-version-check --no-deps --only-binary=:all: \
		--require-hashes -r requirements-kubernetes.lock
	@EUNOMIA_TEST_KUBERNETES=1 $(INSIDE) $(RUN) pytest $(PYTEST_FLAGS) tests/kubernetes

.PHONY: test-learning
test-learning: env ## run the tests of learning (installs PyTorch and Gymnasium into .venv; without them most are skipped)
	-@$(RUN) pip install --quiet --no-compile --no-input --disable-pip-version-check --no-deps --only-binary=:all: \
		--require-hashes -r requirements-learning.lock
	@$(INSIDE) $(RUN) pytest $(PYTEST_FLAGS) tests/learning tests/reproduction/test_symphony_training.py

.PHONY: test-versions
test-versions: ## try the newest versions of what this depends on, on each Python that is here (QUICK=1: on one, in part)
	@tools/test_versions

.PHONY: serve-demo
serve-demo: extras ## start the service with sample jobs, and say where it is (installs the extra into .venv)
	@$(INSIDE) .venv/bin/python examples/service/demo.py

.PHONY: check
check: check-static test ## format, lint, types, import direction, links of the docs, and the tests

.PHONY: check-static
check-static: env ## what `check` does besides the tests
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	.venv/bin/python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	.venv/bin/python tools/check_docs.py

.PHONY: format
format: env ## lay out the code, and fix what the linter can fix
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

.PHONY: bench
bench: env ## measure side by side with other systems (installs cvxpy into .venv); writes bench.json
	-@$(RUN) pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary=:all: \
		--require-hashes -r requirements-bench.lock
	@$(RUN) benchmarks

DATA ?= ../shared/data
.PHONY: figures
figures: env ## redo the tables of the pages of results in the background, resumable; DATA=... has the reference data
	@.venv/bin/python tools/make_figures.py --data '$(DATA)' --list
	@nohup nice .venv/bin/python tools/make_figures.py --data '$(DATA)' >/dev/null 2>&1 &
	@echo 'started; see out/figures/progress.log'

.PHONY: docs
docs: env ## write the pages of policies, the table of claims, and the reference from the docstrings to out/reference/
	@.venv/bin/python tools/make_policies_page.py
	@.venv/bin/python tools/make_claims_table.py
	@.venv/bin/python tools/make_reference.py --out out/reference

.PHONY: lock
lock: ## choose new versions and write requirements*.lock (needs the network and Python 3.11)
	@tools/make_lock

.PHONY: clean
clean: ## remove all that was made, .venv too
	rm -rf .venv build dist out demo-out bench.json .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src reproduction tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info reproduction/src/*.egg-info
