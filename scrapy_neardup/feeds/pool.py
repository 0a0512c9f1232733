"""Parse rows of feeds and compute their fingerprints in several processes. Yield the rows in order.

The calling process decides on one row after another, so the result does not depend on the number of processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from ..detectors.processes import check_can_be_sent, given, start, stop
from ..fingerprints.sketch import Sketch
from . import FeedError, Line
from .remote import Signed
from .signer import Ready, Signer

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

BATCH, SIZE = 256, 1 << 20  # the maximum rows and bytes of a batch
AHEAD = 3  # batches in memory for each process


def ready_rows(lines: Iterable[Line], signer: Signer, workers: int) -> Generator[Ready, None, None]:
    """Yield rows with their documents and fingerprints, in order.

    Up to `workers` processes compute the fingerprints, or this process if `workers` is below 2. Close the generator
    after use. Raise FeedError if a row can't be read, or its fingerprints can't be computed. Raise ConfigError if a
    detector can't be sent to another process.
    """
    if workers < 2:
        yield from signer.signed(lines)
        return
    check_can_be_sent(signer.detectors)
    elsewhere = _Elsewhere(signer, workers)
    try:
        yield from elsewhere.signed(lines)
    finally:
        elsewhere.close()


# The data that processes exchange. Workers receive lines, and send back only the results.

Packed = tuple[Any, tuple[str | None, dict[str, tuple[int, ...]], Sketch, int, str, bytes, bool] | None, str | None]
Answer = tuple[list[Packed], str | None]
"""The results for all rows before the first failed row, and the error of that row; None if no row failed."""


def _answer(lines: list[Line]) -> Answer:
    made: list[Packed] = []
    try:
        made.extend(map(_packed, given().signed(lines)))
    except FeedError as error:
        return made, str(error)
    return made, None


def _packed(ready: Ready) -> Packed:
    document = ready.document
    if document is None:
        return None, None, ready.fault
    url, prints, sketch, layout = document.url, document.ready, document.sketch, document.layout
    return ready.id, (url, prints, sketch, layout, document.title, document.facts, document.thin), None


def _unpacked(line: Line, packed: Packed, signer: Signer) -> Ready:
    name, fields, fault = packed
    if fields is None:
        return Ready(line, None, None, fault)
    return Ready(line, name, Signed(*fields, text=partial(signer.text, line)))


class _Elsewhere:
    """Computes the fingerprints of rows in other processes."""

    def __init__(self, signer: Signer, count: int) -> None:
        self._signer = signer
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: deque[tuple[list[Line], Future[Answer]]] = deque()

    def signed(self, lines: Iterable[Line]) -> Iterator[Ready]:
        end: list[FeedError] = []
        batches = _batches(lines, end)
        first = list(islice(batches, self._count))
        self._count = len(first)  # start no process that would get no batch
        for batch in chain(first, batches):
            self._waiting.append((batch, self._submitted(batch)))
            if len(self._waiting) > AHEAD * self._count:
                yield from self._first()
        while self._waiting:
            yield from self._first()
        if end:
            raise end[0]

    def close(self) -> None:
        if self._pool:
            stop(self._pool)

    def _submitted(self, lines: list[Line]) -> Future[Answer]:
        self._pool = self._pool or start(self._count, self._signer)
        try:
            made: Future[Answer] = self._pool.submit(_answer, lines)
        except BrokenExecutor:  # `_first` tries unanswered batches again
            stop(self._pool)
            self._pool = None
            return self._submitted(lines)
        return made

    def _first(self) -> Iterator[Ready]:
        lines, future = self._waiting.popleft()
        try:
            made, failure = future.result()
        except BrokenExecutor:
            made, failure = self._alone(lines)
        for line, packed in zip(lines, made, strict=False):
            yield _unpacked(line, packed, self._signer)
        if failure:
            raise FeedError(failure)

    def _alone(self, lines: list[Line]) -> Answer:
        """Compute the fingerprints of a batch again, in a new process.

        If the new process dies too, halve the batch until the failing row is found.
        """
        pool = start(1, self._signer)
        try:
            _begun(pool)
            made: Answer = pool.submit(_answer, lines).result()
            return made
        except BrokenExecutor:
            if len(lines) == 1:
                return [], f"row {lines[0].number}: two worker processes died on it"
        finally:
            stop(pool)
        half = len(lines) // 2
        first, failure = self._alone(lines[:half])
        if failure:
            return first, failure
        second, failure = self._alone(lines[half:])
        return first + second, failure


def _begun(pool: ProcessPoolExecutor) -> None:
    """Wait until a new process has started. Raise FeedError if the process dies before it receives a row."""
    try:
        pool.submit(int).result()
    except BrokenExecutor as error:
        raise FeedError(f"--workers: a new process died at once: {error}") from error


def _batches(lines: Iterable[Line], end: list[FeedError]) -> Iterator[list[Line]]:
    """Yield rows in batches.

    If reading fails, append the error to `end`. The caller raises it after the rows that were read before.
    """
    batch: list[Line] = []
    size = 0
    try:
        for line in lines:
            batch.append(line)
            size += len(line.raw)
            if len(batch) == BATCH or size >= SIZE:
                yield batch
                batch, size = [], 0
    except FeedError as error:
        end.append(error)
    if batch:
        yield batch
