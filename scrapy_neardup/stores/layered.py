"""The store under those on disk: the newest documents and links in RAM, all others in parts. No I/O of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf

from ..detectors.base import Detector
from ..fingerprints.hashing import hash_text
from ..index.hosts import Hosts
from ..index.relations import Row
from ..signature import Key, Link, Signature
from ..text.urls import canonical_url
from .arrived import Range, arrived
from .base import Forgotten, Selection
from .forgetting import forget
from .local import Local
from .memory import MemoryStore
from .part import Part
from .parts import Parts
from .runs import Run
from .segments import Batch

AT_ADD, AT_ONCE = 4, 80  # documents and links that go from RAM to parts: with one that comes; at `refresh`


class LayeredStore(Local):
    """What is asked of every store, over two layers.

    Batches are what RAM holds of written documents and links, by run and number of the segment. Once they are in a
    part, they go over to it little by little, in the order of coming: until then RAM is asked, and the part hides them.
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
        self._work: deque[Iterator[None]] = deque()  # that is done little by little, since a crawl waits for it
        self.hosts = Hosts()
        self.stats: dict[str, int] = {}

    # Documents

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Signature]]:
        found = self.parts.find(fingerprints)
        for name in self._names:
            for signature in chain(found.get(name, ()), self.fresh.propose(name, fingerprints.get(name, ()))):
                yield name, signature

    def add(self, signature: Signature) -> None:
        self.fresh.add(signature)
        self._go_on(AT_ADD)

    def commit(self, signature: Signature) -> None:
        pass

    def withdraw(self, signature: Signature) -> None:
        if signature.number is not None:
            self.parts.withdraw(signature)
        self.fresh.withdraw(signature)
        for digest, lost in self._links_of.pop(signature, {}).items():
            if self.parts.knows(digest):  # what an older link says must not come back
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

    def run_of(self, signature: Signature) -> str:
        key = self.parts.key(signature)
        return key[0] if key else self.run

    def signatures(self) -> Iterable[Signature]:
        yield from self.parts.signatures()
        yield from (signature for signature in self.fresh.signatures() if signature.number is None)

    def degrees(self) -> Iterable[int]:
        yield from self.parts.degrees().tolist()
        yield from (signature.repeats for signature in self.fresh.signatures() if signature.number is None)

    def __len__(self) -> int:
        return len(self.parts) + len(self.fresh)

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

    def show(self, parts: Sequence[Part], runs: Mapping[str, Run], *, at_once: bool = True) -> None:
        """Go by these parts from now on; not `at_once`: what RAM has of them goes over bit by bit."""
        self.finish()
        known, segments = self.parts.all, self.parts.count_segments()
        before = self.parts.last if parts and parts[0].epoch == self.parts.epoch else 0
        self.parts.show(parts, runs)
        found: dict[tuple[str, int], list[Range]] = {}
        for part in self.parts.all:
            for each in arrived(part, self.batches) if part not in known else ():
                self.parts.lost.hide(each.part, each.first, each.last)
                found.setdefault(each.segment, []).append(each)
        self._work.append(self.parts.entering(before))
        if not before:  # these indexes were made anew
            self.finish()
        self._work += [self._settling(segment, found[segment]) for segment in self.batches if segment in found]
        if self.parts.count_segments() != segments + sum(map(len, found.values())):  # they have what RAM never saw
            self._work += self._unseen([part for part in self.parts.all if part not in known])
        if at_once:
            self.finish()

    def _settling(self, segment: tuple[str, int], ranges: Sequence[Range]) -> Iterator[None]:
        """Have a batch be found in parts, a document or link at a step."""
        batch, numbers = self.batches.get(segment, Batch()), _numbers(ranges)
        for signature in batch.signatures:
            number = numbers.pop(signature.key[2], None) if signature.key else None
            if segment in self.batches:  # else it is forgotten by now
                self._settle(signature, number)
            yield
        for number in numbers.values():  # imported: RAM never had them
            self.parts.lost.uncover(number)
        for link in batch.links:
            if segment in self.batches and self.newest.get(link.digest) is link:
                self._drop(link)
            yield
        self.batches.pop(segment, None)

    def _settle(self, signature: Signature, number: int | None) -> None:
        """Have a document be found in a part, by that number."""
        if number is None or self.parts.lost.is_forgotten(number):
            LayeredStore.withdraw(self, signature)
        elif self.fresh.holds(signature):
            self.fresh.withdraw(signature)
            self.parts.hold(signature, number)
        else:  # forgotten since the part was made
            self.parts.forget(number)

    def _drop(self, link: Link) -> None:
        """Let go of a link that is in a part."""
        del self.newest[link.digest]
        if link.signature:
            self.parts.repeated(link.signature)
            if rest := self._links_of.get(link.signature):
                rest.pop(link.digest, None)
                if not rest:
                    del self._links_of[link.signature]

    def _unseen(self, new: Sequence[Part]) -> list[Iterator[None]]:
        """Return what is to be done since new parts tell of more than RAM knew."""
        return [self._recounting()]

    def _recounting(self) -> Iterator[None]:
        self.parts.recount(self._changes())
        yield

    def _changes(self) -> Iterator[tuple[Signature, int]]:
        """Yield what the links in RAM change of the repeats that the parts tell of."""
        for digest, link in self.newest.items():
            before = self.parts.resolve(digest)
            if before and before.signature and before.mirror:
                yield before.signature, -1
            if link.signature and link.mirror:
                yield link.signature, 1

    def _go_on(self, steps: float) -> bool:
        """Do so many steps of what is to be done; say whether there is more."""
        while self._work and steps > 0:
            if next(self._work[0], self) is self:
                self._work.popleft()
            steps -= 1
        return bool(self._work)

    def finish(self) -> None:
        """Do all that is to be done little by little."""
        self._go_on(inf)

    def refresh(self) -> bool:
        return self._go_on(AT_ONCE)


def digest(url: str) -> int:
    """Return the hash of a URL's canonical form."""
    return hash_text(canonical_url(url))


def _numbers(ranges: Iterable[Range]) -> dict[int, int]:
    """Return the numbers of a segment's documents, by their places in it."""
    return {
        place: each.part.first + at
        for each in ranges
        for at, place in enumerate(each.part.columns["documents"]["place"][each.first : each.last].tolist(), each.first)
    }
