"""Run tests in a copy of the checkout, as if the copy were installed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from mutant_kinds import Mutant

ROOT = Path(__file__).parents[1]
LEFT_OUT = (".git", ".venv", ".nox", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "site", "*.egg-info")
MARK = "MUTANT_RUN"  # in the environment of all that a run starts; tests take away SCRAPY_, NEARDUP_ and PYTHONPATH
MEMORY = 4 << 30  # bytes for a process: a loop without end may ask for all there is
PASSED = (0, 5)  # 5: there was no test to run


class Ended(NamedTuple):
    """The outcome of a run of tests."""

    failed: str
    """The first test that failed, `time`, or how pytest ended; empty where all passed."""
    seconds: float


class Tree:
    """The copy.

    PYTHONPATH does not do, since tests take it from processes that they start. So the copy has an environment of its
    own, whose one .pth names the copy and the packages of the environment in which this runs; what these hold as .pth,
    such as that of an editable install, is not read there.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self._folder = folder / "checkout", folder
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        venv.create(folder / "venv", symlinks=True)
        self._python = str(folder / "venv" / "bin" / "python")
        packages = sysconfig.get_path("purelib", scheme="venv", vars={"base": str(folder / "venv")})
        Path(packages, "copy.pth").write_text(f"{self.root}\n{sysconfig.get_path('purelib')}\n")
        self._mark, self._stopped = "", False

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Put a mutant into the copy."""
        path = self.root / mutant.path
        path.write_bytes(mutant.of(path.read_bytes()))
        # Python trusts compiled code by the seconds and the size of its source, and two mutants may share both.
        os.utime(path, (10**9, 10**9 + hash(mutant) % 10**8))
        try:
            yield
        finally:
            shutil.copy2(ROOT / mutant.path, path)

    def pytest(self, *options: str, limit: float | None = None) -> Ended:
        """Run tests up to the first that fails."""
        return self.run("-m", "pytest", *options, limit=limit)

    def run(self, *arguments: str, limit: float | None = None) -> Ended:
        if self._stopped:
            raise InterruptedError
        temporary, said = self._folder / "tmp", self._folder / "said.txt"
        temporary.mkdir()
        self._mark = uuid4().hex
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        env |= {MARK: self._mark, "TMPDIR": str(temporary)}
        quiet = ("-x", "-q", "--tb=short", "-rfE", "-p", "no:cacheprovider")
        command = ["prlimit", f"--data={MEMORY}", self._python, *arguments, *quiet]
        start = time.monotonic()
        with said.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        try:
            outcome = failed(process.wait(limit), said)
        except subprocess.TimeoutExpired:
            outcome = "time"
        finally:
            end(self._mark)
            process.wait()
            shutil.rmtree(temporary, ignore_errors=True)
        if self._stopped:
            raise InterruptedError
        return Ended(outcome, time.monotonic() - start)

    def said(self) -> str:
        """Return the end of the last run's output."""
        return (self._folder / "said.txt").read_text(errors="replace")[-5000:]

    def stop(self) -> None:
        """End the run, and conclude nothing from that."""
        self._stopped = True
        end(self._mark)


def failed(code: int, said: Path) -> str:
    if code in PASSED:
        return ""
    first = re.search(r"^(?:FAILED|ERROR) (\S+)", said.read_text(errors="replace"), re.MULTILINE)
    return first[1] if first else f"exit {code}"


def end(mark: str) -> None:
    """Kill the processes that a run has left behind; tests start sessions of their own, outside its process group."""
    while pids := list(marked(f"{MARK}={mark}".encode())):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def marked(mark: bytes) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes():
                yield int(path.parent.name)


def digest() -> str:
    """Return a hash that changes with the package and its tests."""
    found = (path for folder in ("scrapy_neardup", "tests") for path in (ROOT / folder).rglob("*"))
    paths = sorted(path for path in found if path.suffix in (".py", ".lua", ".c"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]
