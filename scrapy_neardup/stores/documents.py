"""The documents of all parts of a store together, by number. For reading; no I/O but the mapped memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from weakref import WeakValueDictionary

import numpy as np

from ..detectors.base import Detector
from ..index.packed import Array
from ..signature import Key, Signature
from .lost import Lost, place_among
from .part import Part, Reading
from .records import document
from .repeats import Repeats
from .runs import Run
from .search import Fingerprints, Search


class Documents:
    """What the parts hold, given which detectors ask for it."""

    def __init__(self, detectors: Iterable[Detector]) -> None:
        self._detectors = list(detectors)
        self._search = Search(self._detectors)
        self._own = self._search.own
        """In RAM, since how they find is known to nobody else."""
        self.all: tuple[Part, ...] = ()
        """In the order of their documents' numbers."""
        self._held: WeakValueDictionary[int, Signature] = WeakValueDictionary()  # so that each is one object
        self._repeats = Repeats()
        self.lost = Lost()

    def show(self, parts: Iterable[Part], runs: Mapping[str, Run]) -> None:
        """Show these parts from now on. Documents keep their numbers, unless the epoch changed."""
        parts = tuple(sorted(parts, key=lambda part: part.first))
        if self.all and parts and parts[0].epoch != self.epoch:
            self._number_anew(parts)
        self.all = self._repeats.parts = parts
        self.lost.show(parts, runs)

    def _number_anew(self, parts: tuple[Part, ...]) -> None:
        """Have all that goes by number go by the numbers that the documents have in these parts."""
        held = [(self.key(signature), signature) for signature in self._held.values()]
        repeats = [(self._key_of(number), count) for number, count in self._repeats.known.items()]
        withdrawn = [self._key_of(number) for number in self.lost.numbers]
        self.all, self._held = parts, WeakValueDictionary()
        self.lost.numbers = {number for key in withdrawn if (number := self.number_of(key)) is not None}
        self._repeats.known = {n: count for key, count in repeats if (n := self.number_of(key)) is not None}
        for key, signature in held:
            signature.number = self.number_of(key) if key else None
            if signature.number is not None:
                self._held[signature.number] = signature
        self._own = {d.name: d.index() for d in self._detectors if d.name in self._own}

    def _key_of(self, number: int) -> Key:
        part = self.all[self._at(number) or 0]
        return part.key(number - part.first)

    @property
    def own(self) -> Iterable[str]:
        """The names of detectors with indexes of their own."""
        return self._own

    @property
    def last(self) -> int:
        """One more than the highest number."""
        return self.all[-1].last if self.all else 0

    @property
    def epoch(self) -> int:
        return self.all[0].epoch if self.all else 0

    # What is found

    def find(self, fingerprints: Fingerprints) -> dict[str, list[Signature]]:
        """Return the documents that each detector proposes, in the order of coming."""
        found = {
            name: [self._signature(self.all[at], number - self.all[at].first) for number, at in sorted(places)]
            for name, places in self._search.find(self.all, self.lost, fingerprints).items()
        }
        for name in self._own.keys() & fingerprints.keys():
            proposed = self._own[name].find(fingerprints[name])
            found[name] = [s for s in proposed if s.number is None or not self.is_gone(s.number)]
        return found

    def entering(self, first: int) -> Iterator[None]:
        """Enter the documents from a number on into the indexes that detectors have of their own, one at a step."""
        for signature in map(self.numbered, range(first, self.last) if self._own else ()):
            if signature:
                self._enter(signature)
            yield

    def _enter(self, signature: Signature) -> None:
        for name, index in self._own.items():
            index.add(signature.fingerprints.get(name, ()), signature)

    def segments_of(self, run: str) -> int:
        """Return one more than the highest number of a run's segments in the parts."""
        highest = -1
        for part in self.all:
            rows = part.columns["segments"]
            mine = rows["run"] == part.runs.index(run) if run in part.runs else np.zeros(len(rows), bool)
            highest = max(highest, int(rows["number"][mine].max(initial=0)) if mine.any() else -1)
        return highest + 1

    def has_segment(self, run: str, number: int) -> bool:
        """Say whether what was written as that segment is in a part."""
        return any(part.segment_place(run, number) is not None for part in self.all)

    def count_segments(self) -> int:
        """Return of how many segments, or pieces of them, the parts tell."""
        return sum(len(part.columns["segments"]) for part in self.all)

    # Documents by number

    def _signature(self, part: Part, place: int) -> Signature:
        number = part.first + place
        signature = self._held.get(number)
        if signature is None:
            with Reading(part):
                signature = document(part.columns, place)
            signature.number, signature.repeats = number, self._repeats[number]
            self._held[number] = signature
        return signature

    def numbered(self, number: int) -> Signature | None:
        """Return a document by its number; None for one that is forgotten."""
        at = self._at(number)
        if at is None or self.is_gone(number):
            return None
        return self._signature(self.all[at], number - self.all[at].first)

    def _at(self, number: int) -> int | None:
        return place_among(self.all, number)

    def hold(self, signature: Signature, number: int) -> None:
        """Let a document that was only in RAM, and is hidden here, be the one of that number."""
        signature.number = number
        self._held[number] = signature
        self.lost.uncover(number)
        self._repeats[number] = signature.repeats
        self._repeats.forget_if_stored(number)
        self._enter(signature)

    def number_of(self, key: Key) -> int | None:
        """Return the number of a document, given as what it was written; None where no part has it."""
        for part in self.all:
            place = part.place_of(key)
            if place is not None:
                return part.first + place
        return None

    def key(self, signature: Signature) -> Key | None:
        """Return as what a document was written."""
        at = self._at(signature.number) if signature.key is None and signature.number is not None else None
        if at is not None and signature.number is not None:
            signature.key = self.all[at].key(signature.number - self.all[at].first)
        return signature.key

    def signatures(self) -> Iterator[Signature]:
        for at, part in enumerate(self.all):
            gone = self.lost.places(at)
            yield from (self._signature(part, place) for place in range(len(part)) if not (gone and gone[place]))

    def __len__(self) -> int:
        return sum(map(len, self.all)) - len(self.lost)

    # How often they are repeated

    def recount(self, changes: Iterable[tuple[Signature, int]]) -> None:
        """Count anew: what the parts say, and what the links in RAM change of it."""
        self._repeats.known = {}
        for signature, more in changes:
            if signature.number is not None:
                self._repeats[signature.number] += more
        for number, signature in self._held.items():
            signature.repeats = self._repeats[number]

    def repeat(self, signature: Signature) -> None:
        """Take note of how often a document is repeated now."""
        if signature.number is not None:
            self._repeats[signature.number] = signature.repeats

    def repeated(self, signature: Signature) -> None:
        """Take note that a link to a document is in a part now."""
        if signature.number is not None:
            self._repeats.forget_if_stored(signature.number)

    def changed_repeats(self, first: int) -> dict[int, int]:
        """Return the counts by number that RAM and the parts from number `first` on have of earlier documents."""
        return self._repeats.changed(first)

    def degrees(self) -> Array:
        """Return how often each document is repeated."""
        counts = self._repeats.all()
        return counts[~np.concatenate([self.gone(at) for at in range(len(self.all))])] if self.all else counts

    # What is forgotten

    def is_gone(self, number: int) -> bool:
        return self.lost.is_gone(number)

    def withdraw(self, signature: Signature) -> None:
        """Forget a document."""
        if signature.number is not None:
            self.lost.forget(signature.number)
            for name, index in self._own.items():
                index.remove(signature.fingerprints.get(name, ()), signature)

    def forget(self, number: int) -> None:
        """Forget the document of a number."""
        self.lost.forget(number)

    def forget_runs(self, runs: Mapping[str, Run]) -> None:
        """Forget what was written in segments that runs have forgotten."""
        self.lost.forget_runs(runs)

    def withdrawn(self) -> set[int]:
        """Return the numbers of documents that were forgotten one by one."""
        return self.lost.all_numbers()

    def gone(self, at: int) -> Array:
        """Return which documents of a part are forgotten."""
        return self.lost.documents(at)
