"""Rows of feeds with their documents and fingerprints, ready for the decision."""

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

SOME = 16  # rows that are cut into words at a time: more bring nothing


class Ready(NamedTuple):
    """A row and what is decided by."""

    line: Line
    id: Any
    """None without a document."""
    document: Document | None
    """None for a row without text."""
    fault: str | None = None
    """Why the row can't be read."""


class Signer(NamedTuple):
    """How rows are read and signed."""

    config: Config
    detectors: Sequence[Detector]
    id_field: str | None
    passes_bad: bool = False
    """Whether a row that can't be read comes with its fault; else it is the end."""

    def signed(self, lines: Iterable[Line]) -> Iterator[Ready]:
        """Yield rows with their documents. Raise FeedError, once the rows before are out, for one that can't be."""
        lines = iter(lines)
        while some := list(islice(lines, SOME)):
            yield from self._some(some)

    def text(self, line: Line) -> str:
        """Return what of a row is compared."""
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
        with suppress(Exception):  # below it shows with which of them
            for document in filter(None, (ready.document for ready in made)):
                # All at once: a tenth less for Chinese, whose dictionary the processor then has at hand.
                document.lines  # noqa: B018 - made on being asked for
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
        except Exception as error:  # whatever an extractor of the user's own does
            raise FeedError(f"row {line.number}: {error}") from error
        return Ready(line, row_id(row, self.id_field, self.config.url_field) if document else None, document)

    def _finish(self, ready: Ready) -> None:
        try:
            if ready.document:
                prepare(ready.document, self.detectors)
        except Exception as error:  # whatever a detector does with a document
            raise FeedError(f"row {ready.line.number}: no fingerprints of it: {error!r}") from error
