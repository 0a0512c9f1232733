"""Build the lookups of documents, and group the answers by detector. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..detectors.detector import Detector
from ..fingerprints.record import SIMHASH
from ..index.kinds import Equal, Index, Near
from ..signature import Signature
from .interface import Found, Question, Row


class Lookup:
    """Builds the lookups of the detectors: by equal keys, by SimHash distance, or in an index in RAM."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.names = [detector.name for detector in detectors]
        self.schemes = {detector.name: detector.scheme for detector in detectors}
        indexes = {detector.name: detector.index() for detector in detectors}
        self._newest = {n: each.newest for n, each in indexes.items() if isinstance(each, Equal)}
        self._distance = next((each.distance for each in indexes.values() if isinstance(each, Near)), None)
        self.own: dict[str, Index[Any]] = {n: e for n, e in indexes.items() if not isinstance(e, (Equal, Near))}
        """The indexes in RAM, by name of the detector."""

    def question(self, signature: Signature) -> Question:
        """Return the lookup of documents that resemble this one, for the back end."""
        asked = signature.keys
        keys = {key: newest for name, newest in self._newest.items() for key in asked.get(name, ())}
        return Question(keys, None if self._distance is None else signature.simhash, self._distance or 0)

    def proposed(self, signature: Signature, found: Found) -> Iterator[tuple[str, list[Row]]]:
        """Yield pairs: the name of a detector, and rows in `found` that it proposes. Names may occur several times."""
        asked = signature.keys if found.rows else {}
        for name in self.names:
            if name in self._newest:
                yield from ((name, rows) for key in asked.get(name, ()) if (rows := found.rows.get(key)))
            elif found.near and name == SIMHASH:
                yield name, found.near

    # Indexes in RAM

    def enter(self, signature: Signature) -> None:
        """Add a document to the indexes in RAM, in place of its old entries. If an index raises, undo the additions."""
        entered: list[str] = []
        fingerprints = signature.fingerprints if self.own else {}
        try:
            for name, index in self.own.items():
                index.remove(fingerprints.get(name, ()), signature)
                index.add(fingerprints.get(name, ()), signature)
                entered.append(name)
        except BaseException:
            for name in entered:
                self.own[name].remove(fingerprints.get(name, ()), signature)
            raise

    def remove(self, signature: Signature) -> None:
        """Remove a document from the indexes in RAM."""
        fingerprints = signature.fingerprints if self.own else {}
        for name, index in self.own.items():
            index.remove(fingerprints.get(name, ()), signature)
