"""Start worker processes for slow detectors and extractors, and end them when this process ends."""

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
from typing import TYPE_CHECKING, Any
from weakref import finalize

import cloudpickle

from ..settings import ConfigError
from . import Detector

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

WATCH = 2.0  # seconds between two checks that the parent process lives

_given: ContextVar[Any] = ContextVar("neardup_given")  # data that a process gets at its start


def start(count: int, given: object) -> ProcessPoolExecutor:
    """Start `count` processes without waiting for them. In each process, `given()` returns the value of `given`."""
    from loky import ProcessPoolExecutor  # here, since most crawls start no process
    from loky.backend import get_context

    _start_tracker()
    # Not a pipe: it would block until each process has read the value, and forever if a process can't start.
    file = _written(given)
    # Not the context of multiprocessing, which would run the starting script again.
    context, arguments = get_context("loky"), (file, os.getpid())
    pool = ProcessPoolExecutor(count, context=context, timeout=None, initializer=_begin, initargs=arguments)
    finalize(pool, os.unlink, file)  # a process may start later, in place of a dead one
    try:
        with _ctrl_c_held_up():
            pool.submit(int)  # starts them
    except BaseException:  # such as Ctrl-C: the caller has no pool to stop yet
        stop(pool)
        raise
    return pool


def stop(pool: ProcessPoolExecutor) -> None:
    """Stop processes at once."""
    pool.shutdown(wait=False, kill_workers=True)


def _written(given: object) -> str:
    """Write a value to a file that only this user can read or write. Return the path."""
    with tempfile.NamedTemporaryFile(prefix="neardup-", delete=False) as file:
        cloudpickle.dump(given, file)
    return file.name


def given() -> Any:
    """Return the data that this process got at its start."""
    return _given.get()


def check_can_be_sent(detectors: Iterable[Detector], reason: str = "has to be") -> None:
    """Raise ConfigError if a detector can't be sent to another process. `reason` goes into the message."""
    for detector in detectors:
        check("NEARDUP_DETECTORS", detector, repr(detector.name), reason)


def check(setting: str, what: object, name: str, reason: str) -> None:
    """Raise ConfigError if the value of a setting can't be sent to another process."""
    try:
        cloudpickle.dumps(what)
    except Exception as error:  # its attributes may raise anything when they are copied
        raise ConfigError(f"{setting}: {name} {reason} sent to another process, but pickling fails: {error}") from error


def _start_tracker() -> None:
    """Start loky's resource tracker without its warnings, which are about files of killed processes."""
    from loky.backend import resource_tracker as loky_tracker

    option = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(option)
    try:
        loky_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)


@contextmanager
def _ctrl_c_held_up() -> Iterator[None]:
    """Block Ctrl-C in processes that are started in this block. The parent process receives it, and stops them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # before the block, since its start would end the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(given: str, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # if it could not be blocked
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with open(given, "rb") as file:
        _given.set(cloudpickle.load(file))


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, even if the parent was killed."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    os._exit(1)
