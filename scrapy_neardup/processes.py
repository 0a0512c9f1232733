"""Run slow work in worker processes, and make the records of many rows before their verdicts.

Each worker process belongs to a thread of `concurrent.futures`, which starts it and sends it one call after another
through a pipe. So a worker that dies costs only its current call. A worker ends when its pipe is closed, even if the
process that started it was killed. No worker runs the main script again, since that may start a crawl.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import cloudpickle

from .detectors import Detector, Signer
from .document import Document
from .items import item_document
from .settings import Config, ConfigError

AHEAD = 3  # batches in memory for each process
_CODE = f"import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import _serve; _serve()"

T = TypeVar("T")
R = TypeVar("R", bound="Sequence[Any]")
Signed: TypeAlias = tuple[list[Document | None], list[bytes]]
"""For each row its document, or None for a row with nothing to compare; and the record of each document."""


class ProcessError(Exception):
    """A call failed, or its process died. The message gives the reason."""

    died = False
    at_start = False  # true if the process died before its first call


class Processes:
    """Calls functions in up to `count` workers; for 0, in a thread of this process. Each call begins with `given`."""

    def __init__(self, count: int, given: Any) -> None:
        self._given = cloudpickle.dumps(given) if count else given
        self._count = count
        self._threads = ThreadPoolExecutor(count or 1)
        self._of_thread = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_stopped = False

    def submit(self, function: Callable[[Any, Any], T], argument: Any) -> Future[T]:
        """Return the future of `function(given, argument)`. An error in a process is raised as ProcessError."""
        return self._threads.submit(self._call, function, argument)

    def stop(self) -> None:
        """End all processes without waiting for their calls."""
        with self._lock:
            self._is_stopped = True
            for process in self._all:
                process.kill()
        self._threads.shutdown()
        for process in self._all:
            _end(process)

    def _call(self, function: Callable[[Any, Any], T], argument: Any) -> T:
        if not self._count:
            return function(self._given, argument)
        if not getattr(self._of_thread, "process", None):
            self._of_thread.process = self._started()
            self._answer(self._given, at_start=True)
        is_made, value = self._answer((function, argument))
        if not is_made:
            raise ProcessError(value)
        made: T = value
        return made

    def _started(self) -> subprocess.Popen[bytes]:
        call, pipe = [sys.executable, "-c", _CODE, json.dumps(sys.path)], subprocess.PIPE
        with self._lock:
            if self._is_stopped:
                raise ProcessError("the processes are stopped")
            # A session of its own keeps Ctrl-C from it. This process stops it.
            self._all.append(subprocess.Popen(call, stdin=pipe, stdout=pipe, start_new_session=True))
            return self._all[-1]

    def _answer(self, call: Any, *, at_start: bool = False) -> Any:
        process, data = self._of_thread.process, pickle.dumps(call)
        try:
            process.stdin.write(data)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self._of_thread.process = None  # the next call starts another process
            dead = ProcessError(f"a process died with exit code {_end(process)}")
            dead.died, dead.at_start = True, at_start
            raise dead from error


def _end(process: subprocess.Popen[bytes]) -> int:
    process.kill()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):  # closing sends the rest of a call, which a dead process does not take
            pipe.close()
    return process.wait()


def _serve() -> None:
    """Answer calls from stdin on stdout, until stdin ends. Output that a call prints goes to stderr."""
    with suppress(EOFError, OSError), os.fdopen(os.dup(0), "rb") as calls, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        given, answer = cloudpickle.loads(pickle.load(calls)), pickle.dumps(None)
        while True:
            answers.write(answer)
            answers.flush()
            answer = _made(given, *pickle.load(calls))


def _made(given: Any, function: Callable[[Any, Any], Any], argument: Any) -> bytes:
    try:
        return pickle.dumps((True, function(given, argument)))
    except Exception as error:  # as text, since it may be impossible to pickle
        return pickle.dumps((False, str(error) if isinstance(error, ProcessError) else repr(error)))


def check_can_be_sent(setting: str, things: Mapping[str, Any]) -> None:
    """Raise ConfigError if a value of a setting can't be sent to another process."""
    for name, thing in things.items():
        try:
            cloudpickle.dumps(thing)
        except Exception as error:  # its attributes may raise anything when they are copied
            why = f"{name!r} has to be sent to another process, but pickling fails: {error}"
            raise ConfigError(f"{setting}: {why}") from error


class RowSigner:
    """Makes the document of each row, and the record of each document, by a configuration."""

    def __init__(self, config: Config, detectors: Sequence[Detector]) -> None:
        self.detectors = detectors
        self._config = config
        self._signer = Signer(detectors)

    def sign(self, rows: Sequence[tuple[int, Any]]) -> Signed:
        """Return the documents and records of numbered rows. Raise ProcessError with the number of a row that fails."""
        number, documents, made = 0, list[Document | None](), list[bytes]()
        try:
            for number, data in rows:  # noqa: B007 - for the error
                documents.append(item_document(data, self._config))
            begun = iter(self._signer.begin(filter(None, documents)))
            for (number, _), document in zip(rows, documents, strict=True):  # noqa: B007 - likewise
                made += self._signer.finish([document], [next(begun)]) if document else []
        except Exception as error:  # the user's extractors and detectors may raise anything
            raise ProcessError(f"row {number}: {error!r}") from error
        return documents, made


def signed(batches: Iterable[R], signer: RowSigner, workers: int) -> Generator[tuple[R, Signed], None, None]:
    """Yield each batch of rows with what `signer` made of it in advance. A row begins with its number and its data.

    `workers` is the number of processes; 0 for a thread of this one. Raise ProcessError if a row or a process fails.
    """
    if workers:
        check_can_be_sent("NEARDUP_DETECTORS", {each.name: each for each in signer.detectors})
    processes, waiting = Processes(workers, signer), deque[tuple[R, Future[Signed]]]()
    try:
        for rows in batches:
            waiting.append((rows, processes.submit(RowSigner.sign, [row[:2] for row in rows])))
            if len(waiting) > (AHEAD * workers or 1):
                batch, made = waiting.popleft()
                yield batch, made.result()
        while waiting:
            batch, made = waiting.popleft()
            yield batch, made.result()
    except ProcessError as error:
        if not error.died:
            raise
        place = "--workers" if error.at_start else f"rows {batch[0][0]} to {batch[-1][0]}"
        raise ProcessError(f"{place}: {error}") from error
    finally:
        processes.stop()
