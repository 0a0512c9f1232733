"""Parse rows of feeds and make their records, so that only their verdicts are missing.

The calling process decides on one row after another, so the result does not depend on who parses and signs them. In one
process, a thread signs each batch of rows while the batch before it is decided on. With several processes, each batch
is parsed and signed in one of them, which sends back the documents and the records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..detectors import Detector
from ..detectors.processes import check_can_be_sent, given, start, stop
from ..detectors.standard import Signer as Records
from ..document import Document
from ..items import item_document
from ..settings import Config
from . import BadRowError, FeedError, Line, Row, row_id

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

BATCH, SIZE = 256, 1 << 20  # the maximum rows and bytes of a batch
AHEAD = 3  # batches in memory for each process

Signed: TypeAlias = "Generator[tuple[list[Line], list[Made]], None, None]"
"""Batches with what is made of them."""


class Made(NamedTuple):
    """What is made of a row before its verdict."""

    id: Any = None
    """The id of the row; None if the row has no document."""
    document: Document | None = None
    """The document; None for a row without text."""
    record: bytes | None = None
    """The record of the document; None if it is not made yet."""
    fault: str | None = None
    """The reason why the row can't be read; None if it can be read."""
    error: str | None = None
    """The error that ends the feed at this row; None if there is none."""


class Signer:
    """Parses rows and makes their records, as a configuration requires."""

    def __init__(
        self, config: Config, detectors: Sequence[Detector], id_field: str | None, *, passes_bad: bool = False
    ) -> None:
        """With `passes_bad`, an unreadable row is no error, but has a fault."""
        self.detectors = detectors
        self._records = Records(detectors)
        self._config = config
        self._id_field = id_field
        self._passes_bad = passes_bad

    def signed(self, lines: Sequence[Line]) -> list[Made]:
        """Parse and sign rows. The first row with an error is the last one of the result."""
        rows = self.read(lines)
        return self.finish(lines, rows, self.begin(rows))

    def read(self, lines: Sequence[Line]) -> list[Made]:
        """Parse rows."""
        rows: list[Made] = []
        while len(rows) < len(lines) and not (rows and rows[-1].error):
            rows.append(self._read(lines[len(rows)]))
        return rows

    def begin(self, rows: Sequence[Made]) -> list[bytes]:
        """Return the records of parsed rows. This calls no code of the user's, so any thread may do it."""
        return self._records.begin(row.document for row in rows if row.document)

    def finish(self, lines: Sequence[Line], rows: list[Made], records: Sequence[bytes]) -> list[Made]:
        """Add the records to the rows, and the fingerprints of the user's detectors to the records."""
        at, rest = 0, iter(records)
        try:
            for at, row in enumerate(rows):
                if row.document:
                    [record] = self._records.finish([row.document], [next(rest)])
                    rows[at] = Made(row.id, row.document, record)
        except Exception as error:  # a detector may raise anything
            return [*rows[:at], Made(error=f"row {lines[at].number}: a detector failed on it: {error!r}")]
        return rows

    def _read(self, line: Line) -> Made:
        try:
            row = Row.of(line)
        except BadRowError as error:
            return Made(fault=str(error)) if self._passes_bad else Made(error=str(error))
        try:
            document = item_document(row.data, self._config)
        except Exception as error:  # the user's extractor may raise anything
            return Made(error=f"row {line.number}: {error}")
        try:
            return Made(row_id(row, self._id_field, self._config.url_field), document) if document else Made()
        except FeedError as error:
            return Made(error=str(error))


def ready_rows(lines: Iterable[Line], signer: Signer, workers: int) -> Signed:
    """Yield batches of rows with what is made of them, in order.

    Up to `workers` processes make it, or this process if `workers` is below 2. Close the generator after use. Raise
    FeedError if a row can't be read or signed. Raise ConfigError if a detector can't be sent to another process.
    """
    end: list[FeedError] = []
    batches = _batches(lines, end)
    if workers >= 2:
        check_can_be_sent(signer.detectors)
    with closing(_here(batches, signer) if workers < 2 else _Elsewhere(signer, workers).signed(batches)) as made:
        for some, rows in made:
            error = rows[-1].error if rows else None
            yield some, rows[:-1] if error else rows
            if error:
                raise FeedError(error)
    if end:
        raise end[0]


def _here(batches: Iterable[list[Line]], signer: Signer) -> Signed:
    """Parse batches, and sign each in a thread while the caller decides on the batch before it."""
    ahead: deque[tuple[list[Line], list[Made], Future[list[bytes]]]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for lines in chain(batches, [[]]):
            rows = signer.read(lines)
            ahead.append((lines, rows, thread.submit(signer.begin, rows)))
            if len(ahead) > 1:
                lines, rows, records = ahead.popleft()
                yield lines, signer.finish(lines, rows, records.result())


class _Elsewhere:
    """Parses and signs batches in other processes."""

    def __init__(self, signer: Signer, count: int) -> None:
        self._signer = signer
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: deque[tuple[list[Line], Future[list[Made]]]] = deque()

    def signed(self, batches: Iterator[list[Line]]) -> Signed:
        first = list(islice(batches, self._count))
        self._count = len(first)  # start no process that would get no batch
        try:
            for lines in chain(first, batches):
                self._waiting.append((lines, self._submitted(lines)))
                if len(self._waiting) > AHEAD * self._count:
                    yield self._first()
            while self._waiting:
                yield self._first()
        finally:
            if self._pool:
                stop(self._pool)

    def _submitted(self, lines: list[Line]) -> Future[list[Made]]:
        self._pool = self._pool or start(self._count, self._signer)
        try:
            made: Future[list[Made]] = self._pool.submit(_answer, lines)
        except BrokenExecutor:  # `_first` tries unanswered batches again
            stop(self._pool)
            self._pool = None
            return self._submitted(lines)
        return made

    def _first(self) -> tuple[list[Line], list[Made]]:
        lines, future = self._waiting.popleft()
        try:
            return lines, future.result()
        except BrokenExecutor:
            return lines, self._alone(lines)

    def _alone(self, lines: list[Line]) -> list[Made]:
        """Sign a batch again, in a new process. If this dies too, halve the batch until the failing row is found."""
        pool = start(1, self._signer)
        try:
            _begun(pool)
            made: list[Made] = pool.submit(_answer, lines).result()
            return made
        except BrokenExecutor:
            if len(lines) == 1:
                return [Made(error=f"row {lines[0].number}: two worker processes died on it")]
        finally:
            stop(pool)
        half = len(lines) // 2
        first = self._alone(lines[:half])
        return first if first[-1].error else first + self._alone(lines[half:])


def _answer(lines: list[Line]) -> list[Made]:
    signer: Signer = given()
    return signer.signed(lines)


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
