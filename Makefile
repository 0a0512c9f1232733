# Each of these does all of its own set-up: example, fleet, docs, test, test-all, check.
PYTHON ?= python3
VENV ?= .venv
# Processes that run tests: more than there are cores pays, since some tests wait for servers.
WORKERS ?= 3
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS)

.PHONY: example fleet docs test test-all check clean
.SECONDARY:

example: $(VENV)/for-example
	@$(BIN)/python example_project/run.py

fleet: $(VENV)/for-fleet
	@$(BIN)/python example_project/run_fleet.py

docs: $(VENV)/for-docs
	$(BIN)/mkdocs build --strict

test: $(VENV)/for-test
	$(PYTEST) --dist worksteal

# The quick tests first, then those marked as slow. Tests of one group share a worker, and so a browser or Spark.
test-all: $(VENV)/for-dev test
	$(PYTEST) --dist loadgroup -m slow

check: $(VENV)/for-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Install the plugin and one extra of setup.cfg; `example` needs none. The dots show that pip is at work.
$(VENV)/for-%: setup.cfg setup.py pyproject.toml $(wildcard scrapy_neardup/native/*.[ch]) | $(VENV)/bin/python
	@printf 'Installing scrapy-neardup and what `make $*` needs into $(VENV) '; \
	(while sleep 3; do printf .; done) & dots=$$!; \
	$(BIN)/python -m pip install --quiet --editable '.[$(filter-out example,$*)]'; code=$$?; \
	kill $$dots; echo; exit $$code
	@touch $@

$(VENV)/bin/python:
	@echo 'Making a virtual environment in $(VENV)'
	@$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist site example_project/out
