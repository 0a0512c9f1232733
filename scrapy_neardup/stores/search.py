"""Where in a store's parts the documents lie that detectors propose. No I/O but the mapped memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ..detectors import SimHash
from ..detectors.base import Detector
from ..fingerprints.hashing import hash_text
from ..index.base import Index
from ..index.hamming import HammingIndex
from ..index.keys import KeyIndex
from .lost import Lost
from .part import Part, Reading, spread

NEWEST = 16  # documents found by one key, or near one SimHash: no more are compared
Fingerprints: TypeAlias = Mapping[str, Sequence[int]]
Places: TypeAlias = set[tuple[int, int]]
"""Numbers of documents, each with the place of its part among all."""


class Search:
    """Finds by the tables of parts, as the indexes of these detectors would."""

    def __init__(self, detectors: Iterable[Detector]) -> None:
        indexes = {d.name: d.index() for d in detectors}
        keys = {name: index for name, index in indexes.items() if isinstance(index, KeyIndex)}
        self._salts = {name: salt(name) for name in keys}
        self._newest = {name: index.newest or NEWEST for name, index in keys.items()}
        self._distance = {
            name: index.distance
            for name, index in indexes.items()
            if isinstance(index, HammingIndex) and name == SimHash.name
        }
        self.own: dict[str, Index[Any]] = {
            name: index for name, index in indexes.items() if name not in keys and name not in self._distance
        }
        """Of detectors whose way to find nobody else knows, empty."""

    def find(self, parts: Sequence[Part], lost: Lost, fingerprints: Fingerprints) -> dict[str, Places]:
        """Return by detector what it proposes: by each fingerprint the newest, whatever part has them."""
        if not parts:
            return {}
        # The keys of all detectors lie in one table, and most lead nowhere: one pass over them for each part.
        names = {spread(key ^ mixed): name for name, mixed in self._salts.items() for key in fingerprints.get(name, ())}
        left = {key: self._newest[name] for key, name in names.items()}
        near = {(name, value): NEWEST for name in self._distance for value in fingerprints.get(name, ())}
        most_of_a_key = max(left.values(), default=NEWEST)
        found: dict[str, Places] = {}
        for at in reversed(range(len(parts))):
            part, gone = parts[at], lost.places(at)
            with Reading(part):
                table = part.tables["keys"]
                for key, places in table.find([key for key, most in left.items() if most > 0], most_of_a_key):
                    held = _held(places, gone, left[key], partial(table.newest, key))
                    left[key] -= len(held)
                    found.setdefault(names[key], set()).update((part.first + place, at) for place in held)
                for (name, value), most in near.items():
                    ask = partial(part.near_to, value, self._distance[name])
                    held = _held(ask(NEWEST), gone, most, ask) if most else []
                    near[name, value] -= len(held)
                    found.setdefault(name, set()).update((part.first + place, at) for place in held)
        return found


def _held(places: list[int], gone: bytearray | None, most: int, ask: Callable[[int], list[int]]) -> list[int]:
    """Return what was found and is held, the last ones; what is forgotten is not to crowd it out."""
    if not gone:
        return places[-most:]
    asked, held = most, [place for place in places if not gone[place]]
    while len(held) < min(most, len(places)) and len(places) >= asked:
        asked *= 8
        places = ask(asked)
        held = [place for place in places if not gone[place]]
    return held[-most:]


def salt(name: str) -> int:
    """Return what the keys of a detector are mixed with, so that those of all lie in one table."""
    return hash_text(name)
