"""Signals that end a command as Ctrl-C does: without half-written files or processes left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import NoReturn

NAMES = ("SIGTERM", "SIGHUP")  # Windows has not both


class Ended(KeyboardInterrupt):
    """A signal has come; `code`: the exit code of a process that it has ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise Ended in here when a signal comes, unless it is ignored, as `nohup` has it, or has been seen to."""
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
