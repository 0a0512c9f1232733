"""Stdout and stderr that take any text, and that may be closed or full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast


class StdoutError(Exception):
    """Nothing can be printed any more; the message says why. No OSError: those are of the files that a verb writes."""


def prepare() -> None:
    """Make stdout and stderr accept all characters, if need be as `\\u2192`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as there is a process
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="backslashreplace")


@contextmanager
def watched_streams() -> Iterator[None]:
    """Work in here though nobody reads what is said. Raise StdoutError where stdout can't be written otherwise."""
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(cast("TextIO", _Stdout(sys.stdout))))
        stack.enter_context(redirect_stderr(cast("TextIO", _Stream(sys.stderr))))
        yield


def shown(text: object) -> str:
    """Return a text for people, in one line: characters that a terminal would act on are written as `\\x1b`."""
    signs = str(text)
    return signs if signs.isprintable() else "".join(map(_shown, signs))


def _shown(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


class _Stream:
    """A stream into which is written as long as that can be done; then the work goes on, and says it to nobody."""

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
            # So that the interpreter does not fail to write what is left at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        """Take note that nothing can be said any more: of stderr the exit code says what counts."""


class _Stdout(_Stream):
    def _lost(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError):  # then whoever reads has seen enough
            raise StdoutError(error.strerror or error) from error
