"""Print results, and handle what may befall the streams and the process of a verb: odd characters, closed pipes, full
disks, signals."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, NoReturn

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


def prepare() -> None:
    """Make stdout and stderr accept all characters. A character that they can't encode is written as `\\u2192`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it is closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as there is a process
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="backslashreplace")


def discard() -> None:
    """Discard what a stream holds and can't write. Otherwise the interpreter fails to write it at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
