"""Handle what may befall the streams and the process of a verb: odd characters, closed pipes, full disks, signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
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
    signs = str(text)
    return signs if signs.isprintable() else "".join(map(_shown, signs))


def _shown(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


@contextmanager
def watched_streams() -> Iterator[None]:
    """Ignore errors of stderr, and a closed pipe at stdout. Raise StdoutError for any other error of stdout."""
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(cast("TextIO", _Stdout(sys.stdout))))
        stack.enter_context(redirect_stderr(cast("TextIO", _Stream(sys.stderr))))
        yield


class _Stream:
    """Wraps a stream. After its first error, all output is discarded, so that the work goes on."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with self._going_on():
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with self._going_on():
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Otherwise the interpreter fails when it writes the rest of the buffer at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        """Handle the error. On stderr there is nothing to do, since the exit code gives the outcome."""


class _Stdout(_Stream):
    def _lost(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError):  # a closed pipe is no error: the reader has seen enough
            raise StdoutError(error.strerror or error) from error


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise Ended in this block when one of the signals `NAMES` arrives, so that no file is left half written.

    A signal that is ignored (as under `nohup`), or has a handler already, keeps its effect.
    """
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    ours = [number for number in numbers if _is_free(number)]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _is_free(number: int) -> bool:
    return current_thread() is main_thread() and signal.getsignal(number) is signal.SIG_DFL


def _end(number: int, _: object) -> NoReturn:
    raise Ended(number)
