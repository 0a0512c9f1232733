"""Run tests, and write down the lines of the package that each reaches in its own process.

    python bench/mutant_reach.py OUT [option of pytest]…

Run in the folder of a checkout. OUT gets JSON: `seconds` of each test, and `lines`: path → line → tests, and "" for
what an import reaches.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage


class Reach:
    """A plugin of pytest. A test is a function here, with all its cases."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        name, start = item.nodeid.partition("[")[0], time.perf_counter()
        self.coverage.switch_context(name)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            self.seconds[name] += time.perf_counter() - start

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """Return the tests that reach lines; `""` stands for code that runs on import."""
        data = self.coverage.get_data()
        return {
            str(Path(path).relative_to(Path.cwd())): data.contexts_by_lineno(path) for path in data.measured_files()
        }


def main() -> None:
    out, *options = sys.argv[1:]
    coverage = Coverage(data_file=None, source=["scrapy_neardup"], config_file=False)
    reach = Reach(coverage)
    with coverage.collect():
        code = pytest.main(options, plugins=[reach])
    Path(out).write_text(json.dumps({"seconds": reach.seconds, "lines": reach.lines()}))
    sys.exit(code)


if __name__ == "__main__":
    main()
