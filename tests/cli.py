"""Call `scrapy neardup` in a process of its own, and write and read its feeds."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from forks import FORKS, PYTHON
from helpers import run

TIMEOUT = 100.0  # seconds for a call


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    # With unusual spaces, since rows must come out byte for byte, not as json.dumps would write them again.
    data = "".join(json.dumps(row, ensure_ascii=False, separators=(" ,", ":  ")) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)


def neardup(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Call a verb in a forked process (see forks.py), which starts faster than a new interpreter."""
    if sys.executable != PYTHON:  # a test has put another in its place
        return neardup_anew(folder, *arguments)
    fork = FORKS.start(folder, ["neardup", *arguments], environment())
    try:
        said = fork.communicate(TIMEOUT)
    finally:
        fork.kill()
    return CompletedProcess(arguments, fork.wait(TIMEOUT), *said)


def neardup_anew(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Call a verb in a new interpreter, as a shell does."""
    return run([sys.executable, "-m", "scrapy", "neardup", *arguments], cwd=folder, env=environment())


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SCRAPY_", "PYTHONPATH"))}


def succeeded(folder: Path, *arguments: str) -> CompletedProcess[str]:
    made = neardup(folder, *arguments)
    assert made.returncode == 0, made.stderr
    return made


def told(folder: Path, *arguments: str) -> Any:
    """Return what a verb prints as JSON."""
    return json.loads(succeeded(folder, *arguments, "--json").stdout)


def deduped(folder: Path, rows: list[dict[str, Any]], store: str = "held.sqlite") -> str:
    """Write rows to a feed, run `dedupe` on the feed with a store, and return what `dedupe` prints on stderr."""
    write(folder / "in.jsonl", rows)
    return succeeded(folder, "dedupe", "in.jsonl", "-o", "out.jsonl", "--store", store).stderr


def rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def ids(path: Path, field: str = "id") -> list[str]:
    return [row[field] for row in rows(path)]


def refused(folder: Path, *arguments: str) -> str:
    """Call a verb, check that it fails in one line and writes no file, and return this line."""
    before = listed(folder)
    made = neardup(folder, *arguments)
    assert made.returncode == 2, made.stdout + made.stderr
    assert made.stdout == ""
    assert made.stderr.count("\n") == 1, made.stderr
    assert made.stderr.startswith(("scrapy neardup", "usage: scrapy neardup"))
    assert listed(folder) == before
    return made.stderr


def listed(folder: Path) -> list[str]:
    """Return the names of the files in a folder, without Python's cache."""
    return sorted({*os.listdir(folder)} - {"__pycache__"})
