"""Make the records of documents, with the fingerprints of all detectors in use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..document import Document
from ..fingerprints.record import Wanted, extended, make
from .detector import Detector, checked
from .standard import STANDARD


class Signer:
    """Makes the records of documents."""

    def __init__(self, detectors: Iterable[Detector]) -> None:
        detectors = list(detectors)
        parts = [each.part for each in detectors if isinstance(each, STANDARD) and type(each) in STANDARD]
        chosen: dict[str, Any] = {n: value for part in parts for n, value in part._asdict().items() if value}
        self._wanted = Wanted(**chosen)
        self._others = [each for each in detectors if type(each) not in STANDARD]

    def records(self, documents: Sequence[Document]) -> list[bytes]:
        """Return the records of documents. Raise TypeError or ValueError for an invalid fingerprint."""
        return self.finish(documents, self.begin(documents))

    def begin(self, documents: Iterable[Document]) -> list[bytes]:
        """Return the records with the fingerprints of the standard detectors only. This may be done in any thread."""
        return make([document.source for document in documents], self._wanted)

    def finish(self, documents: Iterable[Document], records: list[bytes]) -> list[bytes]:
        """Return records with the fingerprints of all other detectors added. Raise what such a detector raises."""
        if not self._others:
            return records
        return [extended(record, self._made(each)) for each, record in zip(documents, records, strict=True)]

    def _made(self, document: Document) -> dict[str, tuple[int, ...]]:
        ready = document.ready
        return {
            d.name: checked(d.name, ready[d.name] if d.name in ready else d.fingerprints(document))
            for d in self._others
        }
