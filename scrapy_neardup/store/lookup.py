"""Build lookups from fingerprints, and group the answers by detector. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..detectors.detector import Detector
from ..index.kinds import Equal, Index, Near
from ..signature import SIMHASH, Signature
from .interface import Found, Question, Row
from .postings import fingerprint_keys

Fingerprints: TypeAlias = Mapping[str, Sequence[int]]


class Lookup:
    """Builds the lookups of the detectors: by equal keys, by SimHash distance, or in an index in RAM."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.names = [detector.name for detector in detectors]
        self.schemes = {detector.name: detector.scheme for detector in detectors}
        indexes = {detector.name: detector.index() for detector in detectors}
        self._newest = {n: each.newest for n, each in indexes.items() if isinstance(each, Equal)}
        self._distance = next((each.distance for each in indexes.values() if isinstance(each, Near)), None)
        self._asked: Fingerprints | None = None
        self._of_asked: dict[str, list[int]] = {}
        self.own: dict[str, Index[Any]] = {n: e for n, e in indexes.items() if not isinstance(e, (Equal, Near))}
        """The indexes in RAM, by name of the detector."""

    def question(self, fingerprints: Fingerprints) -> Question:
        """Return the lookup that the back end answers for these fingerprints."""
        keys = {key: self._newest[name] for name, keys in self._keys(fingerprints).items() for key in keys}
        simhashes = fingerprints.get(SIMHASH, ()) if self._distance is not None else ()
        return Question(keys, simhashes[0] if simhashes else None, self._distance or 0)

    def _keys(self, fingerprints: Fingerprints) -> dict[str, list[int]]:
        if fingerprints is not self._asked:  # each decision asks twice for the same fingerprints
            named = {name: fingerprints.get(name, ()) for name in self._newest}
            self._of_asked = {name: fingerprint_keys(name, values) for name, values in named.items()}
            self._asked = fingerprints
        return self._of_asked

    def proposed(self, fingerprints: Fingerprints, found: Found) -> Iterator[tuple[str, list[Row]]]:
        """Yield pairs: the name of a detector, and rows in `found` that it proposes. Names may occur several times."""
        keys = self._keys(fingerprints) if found.rows else {}
        for name in self.names:
            if name in keys:
                yield from ((name, rows) for key in keys[name] if (rows := found.rows.get(key)))
            elif found.near and name == SIMHASH:
                yield name, found.near

    # Indexes in RAM

    def enter(self, signature: Signature) -> None:
        """Add a document to the indexes in RAM, in place of its old entries. If an index raises, undo the additions."""
        entered: list[str] = []
        try:
            for name, index in self.own.items():
                index.remove(signature.fingerprints.get(name, ()), signature)
                index.add(signature.fingerprints.get(name, ()), signature)
                entered.append(name)
        except BaseException:
            for name in entered:
                self.own[name].remove(signature.fingerprints.get(name, ()), signature)
            raise

    def remove(self, signature: Signature) -> None:
        """Remove a document from the indexes in RAM."""
        for name, index in self.own.items():
            index.remove(signature.fingerprints.get(name, ()), signature)
