"""How often each document of a store's parts is repeated: what the parts say, and what RAM knows better. No I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from ..index.packed import Array
from .part import Part


class Repeats:
    """Counts by the number of a document."""

    def __init__(self) -> None:
        self.parts: Sequence[Part] = ()
        self.known: dict[int, int] = {}
        """Where they changed since the parts were made."""

    def __getitem__(self, number: int) -> int:
        known = self.known.get(number)
        return self._stored(number) if known is None else known

    def __setitem__(self, number: int, count: int) -> None:
        self.known[number] = count

    def forget_if_stored(self, number: int) -> None:
        """Let go of a count that the parts have by now."""
        if number in self.known and self.known[number] == self._stored(number):
            del self.known[number]

    def _stored(self, number: int) -> int:
        for part in reversed(self.parts):
            if part.first <= number:
                return int(part.columns["repeats"][number - part.first])
            changed = part.columns["changed"]
            at = bisect_left(changed["document"], number)
            if at < len(changed) and changed["document"][at] == number:
                return int(changed["repeats"][at])
        return 0

    def changed(self, first: int) -> dict[int, int]:
        """Return the counts that RAM and the parts from number `first` on have of earlier documents."""
        found: dict[int, int] = {}
        for part in self.parts:
            if part.last > first:
                rows = part.columns["changed"]
                found.update(zip(rows["document"].tolist(), rows["repeats"].tolist(), strict=True))
        return {**found, **self.known}

    def all(self) -> Array:
        """Return the counts of all documents, forgotten ones too."""
        counts = np.zeros(self.parts[-1].last if self.parts else 0, np.uint32)
        for part in self.parts:
            counts[part.first : part.last] = part.columns["repeats"]
            counts[part.columns["changed"]["document"]] = part.columns["changed"]["repeats"]
        counts[list(self.known)] = list(self.known.values())
        return counts
