"""Parse rows of feeds and compute their fingerprints, so that only their verdicts are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from ..detectors import Detector
from ..detectors.preparation import prepare
from ..document import Document
from ..items import item_document
from ..settings import Config
from . import BadRowError, FeedError, Line, Row, row_id

SOME = 16  # rows to tokenize at a time; more rows at a time are not faster


class Ready(NamedTuple):
    """A row with its document, ready for a verdict."""

    line: Line
    id: Any
    """The id of the row; None if the row has no document."""
    document: Document | None
    """The document; None for a row without text."""
    fault: str | None = None
    """The reason why the row can't be read; None if it can be read."""


class Signer(NamedTuple):
    """Parses rows and computes their fingerprints, as a configuration requires."""

    config: Config
    detectors: Sequence[Detector]
    id_field: str | None
    passes_bad: bool = False
    """True to yield an unreadable row with its fault instead of raising an error."""

    def signed(self, lines: Iterable[Line]) -> Iterator[Ready]:
        """Yield rows with their fingerprints. If a row fails, yield the rows before it, then raise FeedError."""
        lines = iter(lines)
        while some := list(islice(lines, SOME)):
            yield from self._some(some)

    def text(self, line: Line) -> str:
        """Return the part of a row that is compared with other rows: its text. Return "" if the row has no text."""
        document = item_document(Row.of(line).data, self.config)
        return document.text if document else ""

    def _some(self, lines: Iterable[Line]) -> Iterator[Ready]:
        made: list[Ready] = []
        failure: FeedError | None = None
        for line in lines:
            try:
                made.append(self._read(line))
            except FeedError as error:
                failure = error
                break
        with suppress(Exception):  # the loop below finds the failing row
            for document in filter(None, (ready.document for ready in made)):
                # Tokenizing several texts in a row is a tenth faster for Chinese: jieba's data stays in the CPU cache.
                document.lines  # noqa: B018 - computed on access
        for ready in made:
            self._finish(ready)
            yield ready
        if failure:
            raise failure

    def _read(self, line: Line) -> Ready:
        try:
            row = Row.of(line)
        except BadRowError as error:
            if not self.passes_bad:
                raise
            return Ready(line, None, None, str(error))
        try:
            document = item_document(row.data, self.config)
        except Exception as error:  # the user's extractor may raise anything
            raise FeedError(f"row {line.number}: {error}") from error
        return Ready(line, row_id(row, self.id_field, self.config.url_field) if document else None, document)

    def _finish(self, ready: Ready) -> None:
        try:
            if ready.document:
                prepare(ready.document, self.detectors)
        except Exception as error:  # a detector may raise anything
            raise FeedError(f"row {ready.line.number}: a detector failed on it: {error!r}") from error
