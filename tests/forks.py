"""Run crawls, `scrapy neardup` and code in processes that are forked from one that has imported everything.

To import Scrapy takes a second, and the tests need some thousand processes. `python forks.py` is the process that
forks. It reads requests from stdin, a line of JSON each, and answers each in a line on stdout. Linux only.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import inspect
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO
from unittest.mock import patch

HERE = Path(__file__).parent
MODULES = ("scrapy.cmdline", "scrapy.core.engine", "scrapy.dupefilters", "scrapy.logformatter", "scrapy.pqueues")
MODULES += ("multiprocessing.synchronize", "scrapy.squeues", "scrapy.statscollectors")


class Forks:
    """Talks to the process that forks, which starts with the first request, and ends with this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def start(
        self, folder: Path, arguments: Sequence[str], env: dict[str, str], *, stdout: str = "", stderr: str = ""
    ) -> Fork:
        """Fork, and run `neardup VERB …`, `crawl SPEC` or `code CODE …`. `stdout`, `stderr`: devices; "" for a file."""
        files = [None if device else new_file() for device in (stdout, stderr)]
        streams = [str(file or device) for file, device in zip(files, (stdout, stderr), strict=True)]
        return Fork(self, self.ask("start", str(folder), list(arguments), env, *streams), files)

    def talk(self, folder: Path, arguments: Sequence[str], env: dict[str, str]) -> Talk:
        """Fork, and run what `start` can run, or `crawls`. Its stdin and stdout are pipes."""
        errors = new_file()
        with tempfile.TemporaryDirectory() as pipes:
            told, said = (os.path.join(pipes, name) for name in ("stdin", "stdout"))
            os.mkfifo(told)
            os.mkfifo(said)
            reader, writer = os.open(said, os.O_RDONLY | os.O_NONBLOCK), os.open(told, os.O_RDWR)
            pid = self.ask("start", str(folder), list(arguments), env, said, str(errors), told)
        os.set_blocking(reader, True)
        return Talk(self, pid, errors, open(writer, "w", buffering=1), open(reader))

    def ask(self, *request: Any) -> Any:
        if self._process is None:
            self._process = started()
            atexit.register(self._process.communicate)  # which ends it
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


class Fork:
    """A forked process. It has the methods of `subprocess.Popen` that the tests need."""

    def __init__(self, forks: Forks, pid: int, files: Sequence[Path | None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forks = forks
        self._files = files

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._forks.ask("poll", self.pid)
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        if self.returncode is None:
            ending = os.pidfd_open(self.pid)  # no other process has this number, since only `poll` reaps
            try:
                select.select([ending], [], [], timeout)
            finally:
                os.close(ending)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Wait until the process ends. Return its stdout and stderr, and delete their files: call this only once."""
        self.wait(timeout)
        texts = [file.read_text(encoding="utf-8") if file else "" for file in self._files]
        for file in filter(None, self._files):
            file.unlink()
        return texts[0], texts[1]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Talk(Fork):
    """A forked process with pipes: write lines to its `stdin`, and read lines from its `stdout`."""

    def __init__(self, forks: Forks, pid: int, errors: Path, stdin: TextIO, stdout: TextIO) -> None:
        super().__init__(forks, pid, [errors])
        self.stdin, self.stdout, self._errors = stdin, stdout, errors

    def errors(self) -> str:
        """Return what the process has written to stderr so far."""
        return self._errors.read_text(encoding="utf-8")

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        self.stdin.close()
        with self.stdout:
            said = self.stdout.read()
        self.wait(timeout)
        errors = self.errors()
        self._errors.unlink()
        return said, errors


class Crawls:
    """Runs crawls one after another in one process, which takes a third of the time of a process for each."""

    def __init__(self) -> None:
        self._process: Talk | None = None
        self._read = 0

    def run(self, spec: Path, timeout: float = 120) -> tuple[int, str]:
        """Run the crawl of a file, and return its exit code and what it wrote to stderr."""
        if self._process is None:
            self._process, self._read = FORKS.talk(HERE, ["crawls"], dict(os.environ)), 0
            atexit.register(self._process.communicate)  # which ends it
        print(json.dumps([str(spec), dict(os.environ)]), file=self._process.stdin, flush=True)
        answers, _, _ = select.select([self._process.stdout], [], [], timeout)
        if answers and (code := self._process.stdout.readline()):
            errors = self._process.errors()[self._read :]
            self._read += len(errors)
            return int(code), errors
        return self._lost()

    def _lost(self) -> tuple[int, str]:
        """Kill the process, since it does not answer or has ended. The next crawl starts a new one."""
        assert self._process
        process, self._process = self._process, None
        atexit.unregister(process.communicate)
        process.kill()
        _, errors = process.communicate()
        return process.wait(), errors


def new_file() -> Path:
    handle, name = tempfile.mkstemp()
    os.close(handle)
    return Path(name)


def started() -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    return subprocess.Popen([sys.executable, __file__], cwd=HERE, **pipes)


def main() -> None:
    import_all()
    load_tables()
    sys.path.insert(0, "")  # as `python -m scrapy` has it
    gc.collect()
    gc.freeze()  # otherwise, each garbage collection in a fork visits all modules, and so copies their memory
    answers = {"start": start, "poll": poll}
    for line in sys.stdin:
        what, *rest = json.loads(line)
        print(json.dumps(answers[what](*rest)), flush=True)


def import_all() -> None:
    """Import all that forks need, but no reactor, since each fork chooses its own. Scrapy's deprecations are errors."""
    from scrapy.exceptions import ScrapyDeprecationWarning

    warnings.simplefilter("error", ScrapyDeprecationWarning)
    from scrapy_neardup.commands import VERBS

    names = ("crawl.extension", "crawl.middleware", "crawl.pipeline", *(f"commands.{m}" for m in VERBS.values()))
    with patch("inspect.stack", partial(inspect.stack, 0)):  # Scrapy asks who deprecates a class, and for no lines
        for module in (*MODULES, *(f"scrapy_neardup.{name}" for name in names), "crawl", "spiders", "pytest", "redis"):
            importlib.import_module(module)
        import_defaults()
        import_commands()
    warnings.resetwarnings()
    assert "twisted.internet.reactor" not in sys.modules


def load_tables() -> None:
    """Load lexicons, dictionaries and other tables once, since that takes half the time of a small crawl."""
    from scrapy.http import HtmlResponse

    from scrapy_neardup import Deduplicator, Document
    from scrapy_neardup.items import item_document
    from scrapy_neardup.papers import dwdcs
    from scrapy_neardup.settings import Config

    dwdcs.builtin()
    with tempfile.TemporaryDirectory() as folder, Deduplicator.open(f"{folder}/store.sqlite") as dedup:
        for host in "ab":
            text = " ".join(f"鹤 crane {number}" for number in range(100))
            dedup.claim(Document(f"http://{host}.example/", f"{text} {host}", f"Crane {host}")).commit()
    item_document({"url": "http://a.example/", "title": "Crane", "text": "A crane.", "price": 1}, Config())
    page = HtmlResponse("http://a.example/", body=b"<html><title>Crane</title><p class=a>A crane.</p></html>")
    page.css("p.a::text").getall(), page.css("a::attr(href)").getall()


def import_defaults() -> None:
    """Import the components that Scrapy enables by default."""
    from scrapy.settings import default_settings
    from scrapy.utils.misc import load_object

    for name, components in vars(default_settings).items():
        if name.endswith("_BASE"):
            for path in (*components.keys(), *components.values()):
                if isinstance(path, str) and path.startswith("scrapy."):
                    with suppress(ImportError):  # of an extra that is not installed
                        load_object(path)


def import_commands() -> None:
    """Import Scrapy's own commands, and read the entry points once, since that takes as long as a small command."""
    import scrapy.cmdline
    import scrapy.commands

    scrapy.cmdline.entry_points = cache(scrapy.cmdline.entry_points)
    scrapy.cmdline.entry_points(group="scrapy.commands")
    for module in pkgutil.iter_modules(scrapy.commands.__path__, "scrapy.commands."):
        importlib.import_module(module.name)


def start(folder: str, arguments: list[str], env: dict[str, str], out: str, err: str, told: str = os.devnull) -> int:
    files = [os.open(told, os.O_RDONLY), *(os.open(name, os.O_WRONLY | os.O_NOCTTY) for name in (out, err))]
    child = os.fork()
    if not child:
        os.setsid()  # signals to its group reach no other process
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
        for number, file in enumerate(files):
            os.dup2(file, number)
    for file in files:
        os.close(file)
    if not child:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = (stream(number) for number in (1, 2))
        os._exit(outcome(arguments))
    return child


def stream(number: int) -> TextIO:
    """Open stdout or stderr as a new interpreter does. The inherited object still has the settings of the parent."""
    errors = "strict" if number == 1 else "backslashreplace"
    by_line = number == 2 or os.isatty(number)
    return open(number, "w", encoding="utf-8", errors=errors, buffering=1 if by_line else -1, closefd=False)


def poll(child: int) -> int | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


def outcome(arguments: Sequence[str]) -> int:
    """Run what the arguments name, end it as an interpreter does, and return its exit code."""
    code: object = 0
    try:
        run(arguments)
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


def run(arguments: Sequence[str]) -> None:
    if arguments[0] in ("crawl", "crawls"):
        gc.unfreeze()  # a crawl freezes more
    if arguments[0] == "crawl":
        importlib.import_module("crawl").main(json.loads(Path(arguments[1]).read_text()))
    elif arguments[0] == "crawls":
        importlib.import_module("crawl").serve()
    elif arguments[0] == "code":
        sys.argv = ["-c", *arguments[2:]]
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(arguments[1], main.__dict__)
    else:
        sys.argv = ["scrapy", *arguments]
        importlib.import_module("scrapy.cmdline").execute()


PYTHON, FORKS, CRAWLS = sys.executable, Forks(), Crawls()

if __name__ == "__main__":
    main()
