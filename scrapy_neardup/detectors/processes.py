"""Processes that make fingerprints for this one, and end with it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import resource_tracker
from typing import Any
from weakref import finalize

import cloudpickle
from loky import ProcessPoolExecutor
from loky.backend import get_context
from loky.backend import resource_tracker as loky_tracker

from ..settings import ConfigError
from . import Detector

WATCH = 2.0  # seconds between looks whether the process that started this one still lives

_given: ContextVar[Any] = ContextVar("neardup_given")  # to a process, at its start


def start(count: int, given: object) -> ProcessPoolExecutor:
    """Start processes that find in `given()` what they are given here. Does not wait for them."""
    _start_tracker()
    # By a pipe, as arguments go, this process would wait for each one to read it: for ever, for one that can't live.
    file = _written(given)
    # Not multiprocessing's: it would run the script again that started this process.
    context, arguments = get_context("loky"), (file, os.getpid())
    pool = ProcessPoolExecutor(count, context=context, timeout=None, initializer=_begin, initargs=arguments)
    finalize(pool, os.unlink, file)  # a process may also be started later, in place of one that died
    try:
        with _ctrl_c_held_up():
            pool.submit(int)  # only now does it start them
    except BaseException:  # Ctrl-C: nobody else knows of them yet
        stop(pool)
        raise
    return pool


def stop(pool: ProcessPoolExecutor) -> None:
    """Stop processes, whatever they are at."""
    pool.shutdown(wait=False, kill_workers=True)


def _written(given: object) -> str:
    """Return the path of a file that only this user can read or write."""
    with tempfile.NamedTemporaryFile(prefix="neardup-", delete=False) as file:
        cloudpickle.dump(given, file)
    return file.name


def given() -> Any:
    """Return what this process was given at its start."""
    return _given.get()


def check_can_be_sent(detectors: Iterable[Detector], reason: str = "has to be") -> None:
    """Raise ConfigError for a detector that can't be sent to another process; `reason` says why it should."""
    for detector in detectors:
        check("NEARDUP_DETECTORS", detector, repr(detector.name), reason)


def check(setting: str, what: object, name: str, reason: str) -> None:
    """Raise ConfigError where something that a setting names can't be sent to another process."""
    try:
        cloudpickle.dumps(what)
    except Exception as error:  # whatever its attributes do on being copied
        raise ConfigError(f"{setting}: {name} {reason} sent to another process, and can't: {error}") from error


def _start_tracker() -> None:
    """Start what cleans up behind loky, so that it says nothing: after a kill it may complain of what is long gone."""
    option = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(option)
    try:
        loky_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)


@contextmanager
def _ctrl_c_held_up() -> Iterator[None]:
    """Start processes in here: Ctrl-C is not for them, but for this one, which then stops them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # started in here, it would let go of what is held up
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(given: str, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be held up
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with open(given, "rb") as file:
        _given.set(cloudpickle.load(file))


def _end_with(parent: int) -> None:
    """End this process when its parent has gone: one that was killed could not say so."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    os._exit(1)
