"""Handle what may befall the streams and the process of a verb: odd characters, closed pipes, full disks, signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from threading import current_thread, main_thread
from typing import Any, NoReturn, TextIO, cast

NAMES = ("SIGTERM", "SIGHUP")  # Windows lacks SIGHUP


class StdoutError(Exception):
    """Stdout can't be written. The message gives the reason. It is no OSError, which stands for errors of files."""


class Ended(KeyboardInterrupt):
    """A signal arrived. `code` is the exit code of a process that this signal ends."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


def prepare() -> None:
    """Make stdout and stderr accept all characters. A character that they can't encode is written as `\\u2192`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it is closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as there is a process
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="backslashreplace")


def shown(text: object) -> str:
    """Return a text as one printable line. Control characters are written as `\\x1b`."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(text))


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
