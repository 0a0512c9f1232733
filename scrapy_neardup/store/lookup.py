"""Build the lookups of documents, and group the answers by detector. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..detectors.detector import Detector
from ..fingerprints.record import SIMHASH
from ..index.kinds import Equal, Index, Near
from ..signature import Signature
from .interface import Found, Question, Row
from .records import DOCUMENT


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

    def proposed(self, name: str, signature: Signature, found: Found) -> list[Row]:
        """Return the rows in `found` that the detector `name` proposes, each once."""
        if name == SIMHASH and name not in self._newest:
            return found.near
        rows = [row for key in signature.keys.get(name, ()) for row in found.rows.get(key, ())]
        return [*{row.key: row for row in rows if row.key.startswith(DOCUMENT)}.values()]

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
