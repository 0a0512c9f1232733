"""Print results, and handle what may befall the streams and the process of a verb: odd characters, closed pipes, full
disks, signals."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from threading import current_thread, main_thread
from typing import Any, NoReturn, TextIO, cast

NAMES = ("SIGTERM", "SIGHUP")  # Windows lacks SIGHUP

# Results


def answer(opts: argparse.Namespace, result: object, lines: Iterable[str] = (), said: str = "") -> None:
    """Print `result` as JSON if `--json` is given; otherwise `lines`, and what was `said` of the work on stderr."""
    if opts.json:
        from ..feeds import json_text

        print(json_text(result, indent=2))
        return
    for line in lines:
        print(shown(line))
    if said:
        print(shown(said), file=sys.stderr)


def fields(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each name and value, with what they contain indented below."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield name
            yield from (f"  {line}" for line in fields(value))
        elif isinstance(value, list):
            yield name
            yield from (f"  {part}" for part in value)
        else:
            yield f"{name:24} {value}"


def shown(text: object) -> str:
    """Return a text as one printable line. Control characters are written as `\\x1b`."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(text))


class Moment:
    """A time, given in seconds since the epoch. `format()` gives local time for people, `str()` ISO 8601."""

    def __init__(self, seconds: float) -> None:
        self._local = time.localtime(seconds)  # datetime fails after the year 9999

    def __format__(self, spec: str) -> str:
        return format(time.strftime("%Y-%m-%d %H:%M:%S", self._local), spec)

    def __str__(self) -> str:
        offset = time.strftime("%z", self._local)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', self._local)}{offset[:-2]}:{offset[-2:]}"


# Streams


class StdoutError(Exception):
    """Stdout can't be written. The message gives the reason. It is no OSError, which stands for errors of files."""


def prepare() -> None:
    """Make stdout and stderr accept all characters. A character that they can't encode is written as `\\u2192`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it is closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as there is a process
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="backslashreplace")


@contextmanager
def watched_streams() -> Iterator[None]:
    """Ignore errors of stderr, and a closed pipe at stdout. Raise StdoutError for any other error of stdout."""
    stdout, stderr = _Stream(sys.stdout, is_told=True), _Stream(sys.stderr, is_told=False)
    with redirect_stdout(cast("TextIO", stdout)), redirect_stderr(cast("TextIO", stderr)):
        yield


class _Stream:
    """Wraps a stream. After its first error, all output is discarded, so that the work goes on."""

    def __init__(self, file: TextIO, *, is_told: bool) -> None:
        self._file = file
        self._is_told = is_told

    def write(self, text: str) -> int:
        self._try(self._file.write, text)
        return len(text)

    def flush(self) -> None:
        self._try(self._file.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def _try(self, call: Callable[..., object], *args: str) -> None:
        try:
            call(*args)
        except OSError as error:
            # Otherwise the interpreter fails when it writes the rest of the buffer at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            # A closed pipe is no error: the reader has seen enough. For stderr, the exit code gives the outcome.
            if self._is_told and not isinstance(error, BrokenPipeError):
                raise StdoutError(error.strerror or error) from error


# Signals


class Ended(KeyboardInterrupt):
    """A signal arrived. `code` is the exit code of a process that this signal ends."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise Ended in this block when one of the signals `NAMES` arrives, so that no file is left half written.

    A signal that is ignored (as under `nohup`), or has a handler already, keeps its effect.
    """
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    is_ours = current_thread() is main_thread()
    ours = [number for number in numbers if is_ours and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: object) -> NoReturn:
    raise Ended(number)
