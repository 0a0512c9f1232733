# Each of these does all of its own set-up: example, fleet, docs, test, test-all, check.
PYTHON ?= python3
VENV ?= .venv
# Test processes. More than cores, since some tests wait for servers.
WORKERS ?= 3
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS)
GROUP = $(patsubst %,--group %,$(filter-out example,$*))

# What is compiled once serves all the processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: example fleet docs test test-all check clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

example: $(VENV)/for-example
	@$(BIN)/python -u example_project/run.py

fleet: $(VENV)/for-fleet
	@$(BIN)/python -u example_project/run_fleet.py

docs: $(VENV)/for-docs
	$(BIN)/mkdocs build --strict

# A file's tests share a worker, and so what one of them makes for all.
test: $(VENV)/for-test
	$(PYTEST) --dist loadfile

# The quick tests first, then the slow ones. Tests of one group share a worker, and so a browser or Spark.
test-all: $(VENV)/for-dev test
	$(PYTEST) --dist loadgroup -m slow

check: $(VENV)/for-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Install the plugin with one group of pyproject.toml; the example needs none. The dots show that pip is at work.
$(VENV)/for-%: setup.cfg setup.py pyproject.toml $(wildcard scrapy_neardup/native/*.[ch]) | $(VENV)/bin/python
	@printf 'Installing scrapy-neardup, Scrapy and what $* needs into $(VENV) '
	@(while sleep 2 >/dev/null && kill -0 $$$$; do printf .; done) 2>/dev/null & \
	$(BIN)/python -m pip install --quiet 'pip>=25.1' && $(BIN)/python -m pip install --quiet --editable . $(GROUP)
	@echo
	@touch $@

$(VENV)/bin/python:
	@echo 'Making a virtual environment in $(VENV)'
	@$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist site example_project/out
