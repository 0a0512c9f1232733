"""End a command on a signal as on Ctrl-C, without half-written files or leftover processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import NoReturn

NAMES = ("SIGTERM", "SIGHUP")  # Windows lacks SIGHUP


class Ended(KeyboardInterrupt):
    """A signal arrived. `code` is the exit code of a process that this signal ends."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise Ended in this block when one of the signals `NAMES` arrives.

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
