"""The detector for texts whose SimHashes are near."""

from __future__ import annotations

from ..document import Document
from ..fingerprints.simhash import simhash_counted
from ..index.kinds import Near
from ..signature import SIMHASH


class SimHash:
    """Proposes documents whose SimHash lies within a Hamming distance (Manku et al. 2007)."""

    name = SIMHASH
    scheme = "simhash/1"

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        words, counts = document.counted
        return (simhash_counted(words, counts),) if len(words) else ()

    def index(self) -> Near:
        return Near(self.distance)
