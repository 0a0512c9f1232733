# These do all the set-up: `make example`, `make fleet`, `make docs` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: example fleet docs test check clean

example: $(VENV)/installed
	$(BIN)/python example_project/run.py

fleet: $(VENV)/installed
	$(BIN)/python example_project/run_fleet.py

docs: $(VENV)/installed
	$(BIN)/mkdocs build --strict

test: $(VENV)/installed
	$(BIN)/python -m pytest

check: $(VENV)/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

$(VENV)/installed: setup.cfg setup.py pyproject.toml $(wildcard scrapy_neardup/native/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist site example_project/out
