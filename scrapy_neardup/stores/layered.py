"""The store under those on disk: the newest documents and links in RAM, all others in parts. No I/O of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..detectors.base import Detector
from ..fingerprints.hashing import hash_text
from ..index.hosts import Hosts
from ..index.relations import Row
from ..signature import Key, Link, Signature
from ..text.urls import canonical_url
from .base import Forgotten, Selection
from .forgetting import forget
from .memory import MemoryStore
from .part import Part
from .parts import Parts
from .runs import Run
from .segments import Batch

LEAVE_AT_ADD, LEAVE_AT_ONCE = 2, 256  # documents taken out of RAM: together with one that comes; of one's own accord


class LayeredStore:
    """What is asked of every store, over two layers.

    Batches are what RAM holds of written documents and links, by run and number of the segment. Once they are in a
    part, `show` has their documents go by number, and RAM lets go of them little by little.
    """

    run = ""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self._names = [detector.name for detector in detectors]
        self.fresh = MemoryStore(detectors, few=True)
        self.parts = Parts(detectors)
        self.batches: dict[tuple[str, int], Batch] = {}
        self.newest: dict[int, Link] = {}
        """The links in RAM, by hash of the URL, the newest last."""
        self._links_of: dict[Signature, dict[int, Link]] = {}
        self._leaving: dict[Signature, None] = {}
        self.hosts = Hosts()
        self.stats: dict[str, int] = {}

    # Documents

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Signature]]:
        for name in self._names:
            wanted = fingerprints.get(name, ())
            if wanted:
                yield from ((name, s) for s in self.parts.find(name, wanted) if not self.fresh.holds(s))
                yield from ((name, s) for s in self.fresh.propose(name, wanted))

    def add(self, signature: Signature) -> None:
        self.fresh.add(signature)
        self._leave(LEAVE_AT_ADD)

    def commit(self, signature: Signature) -> None:
        pass

    def withdraw(self, signature: Signature) -> None:
        if signature.number is not None:
            self.parts.withdraw(signature)
        self.fresh.withdraw(signature)
        self._leaving.pop(signature, None)
        for digest, lost in self._links_of.pop(signature, {}).items():
            if self.parts.resolve(digest):  # what an older link says must not come back
                lost.signature, lost.mirror, lost.void = None, False, True
            else:
                del self.newest[digest]

    def holds(self, signature: Signature) -> bool:
        """Say whether a document is held, pending or committed."""
        return self.fresh.holds(signature) if signature.number is None else not self.parts.is_gone(signature.number)

    def keyed(self, key: Key) -> Signature | None:
        """Return a document, given as what it was written; None for one that is not held."""
        if batch := self.batches.get(key[:2]):
            found = batch.signatures[key[2]] if key[2] < len(batch.signatures) else None
            return found if found and self.holds(found) else None
        number = self.parts.number_of(key)
        return None if number is None else self.parts.numbered(number)

    def signatures(self) -> Iterable[Signature]:
        yield from self.parts.signatures()
        yield from (signature for signature in self.fresh.signatures() if signature.number is None)

    def degrees(self) -> Iterable[int]:
        yield from self.parts.degrees().tolist()
        yield from (signature.repeats for signature in self.fresh.signatures() if signature.number is None)

    def __len__(self) -> int:
        return len(self.parts) + len(self.fresh) - len(self._leaving)

    # Links

    def record(self, link: Link) -> None:
        if link.signature and not self.holds(link.signature):
            return  # forgotten since
        link.digest = link.digest or digest(link.url)
        before = self._resolve(link.digest)
        if before and before.signature:
            self._links_of.get(before.signature, {}).pop(link.digest, None)
            self._count(before.signature, -before.mirror)
        self.newest.pop(link.digest, None)
        self.newest[link.digest] = link
        if not link.void:
            self.hosts.meet(link.url, link.seen)
        if link.signature:
            self._links_of.setdefault(link.signature, {})[link.digest] = link
            self._count(link.signature, link.mirror)

    def repeat(self, signature: Signature) -> None:
        self._count(signature, 1)

    def _count(self, signature: Signature, more: int) -> None:
        if more:
            signature.repeats += more
            self.parts.repeat(signature)

    def resolve(self, url: str) -> Link | None:
        return self._resolve(digest(url))

    def _resolve(self, digest: int) -> Link | None:
        if known := self.newest.get(digest):
            return None if known.void else known
        return self.parts.resolve(digest)

    def links(self, signature: Signature) -> Iterator[Link]:
        if self.holds(signature):
            yield from (link for digest, link in self.parts.links(signature) if digest not in self.newest)
            yield from list(self._links_of.get(signature, {}).values())

    def all_links(self) -> Iterable[Link]:
        yield from (link for link in self.parts.all_links() if link.digest not in self.newest)
        yield from (link for link in self.newest.values() if not link.void)

    def count_links(self) -> int:
        """Return of how many URLs something is known."""
        void = sum(link.void for link in self.newest.values())
        stored = (self.parts.current_links(at) for at in range(len(self.parts.all)))
        return sum(int(current.sum()) for current in stored) + len(self.newest) - void

    def learn(self, trials: Iterable[Row]) -> None:
        pass

    # What is forgotten

    def forget(self, what: Selection) -> Forgotten:
        return forget(self, what)

    def seen_before(self, when: float) -> Iterable[Signature]:
        """Return the documents that no URL gave since then."""
        since: dict[int, float] = {}
        for link in self.newest.values():
            if link.signature and link.signature.number is not None:
                number = link.signature.number
                since[number] = max(link.seen, since.get(number, link.seen))
        yield from self.parts.seen_before(when, since, list(self.newest))
        for signature in self.fresh.signatures():
            seen = (link.seen for link in self._links_of.get(signature, {}).values())
            if signature.number is None and max((signature.first_seen, *seen)) < when:
                yield signature

    def let_go(self, batch: Batch) -> None:
        """Forget what a segment brought."""
        for signature in batch.signatures:
            LayeredStore.withdraw(self, signature)
        for link in batch.links:
            if self.newest.get(link.digest) is link:
                LayeredStore.record(self, Link(link.url, None, False, link.seen, digest=link.digest, void=True))

    # Parts

    def show(self, parts: Sequence[Part], runs: Mapping[str, Run]) -> None:
        """Go by these parts from now on."""
        before = self.parts.last if parts and parts[0].epoch == self.parts.epoch else 0
        new = [part for part in parts if part not in self.parts.all]
        self.parts.show(parts, runs)
        for segment in list(self.batches):
            for part in new:
                if part.segment_place(*segment) is not None:
                    self._settle(self.batches.pop(segment), part)
                    break
        self.parts.recount(self._changes())
        self.parts.enter_own(before)
        self._leave(LEAVE_AT_ONCE)

    def _changes(self) -> Iterator[tuple[Signature, int]]:
        """Yield what the links in RAM change of the repeats that the parts tell of."""
        for digest, link in self.newest.items():
            before = self.parts.resolve(digest)
            if before and before.signature and before.mirror:
                yield before.signature, -1
            if link.signature and link.mirror:
                yield link.signature, 1

    def _settle(self, batch: Batch, part: Part) -> None:
        """Have a batch be found in a part."""
        for signature in batch.signatures:
            if signature.number is not None or signature.key is None:
                continue
            place = part.place_of(signature.key)
            if place is None or self.parts.is_gone(part.first + place):
                LayeredStore.withdraw(self, signature)
            elif self.fresh.holds(signature):
                self.parts.hold(signature, part.first + place)
                self._leaving[signature] = None
            else:  # forgotten since the part was made
                self.parts.forget(part.first + place)
        for link in batch.links:
            if self.newest.get(link.digest) is link:
                del self.newest[link.digest]
                if link.signature and (rest := self._links_of.get(link.signature)):
                    rest.pop(link.digest, None)
                    if not rest:
                        del self._links_of[link.signature]

    def _leave(self, most: int) -> None:
        """Take documents out of RAM that are found in parts."""
        for _ in range(min(most, len(self._leaving))):
            signature = next(iter(self._leaving))
            del self._leaving[signature]
            self.fresh.withdraw(signature)

    def refresh(self) -> None:
        self._leave(LEAVE_AT_ONCE)


def digest(url: str) -> int:
    """Return the hash of a URL's canonical form."""
    return hash_text(canonical_url(url))
