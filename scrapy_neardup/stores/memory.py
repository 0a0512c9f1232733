"""The store in RAM: indexes and nothing else. The store on disk is this one with a log beneath it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from ..detectors.base import Detector
from ..index.base import Index
from ..index.flat import FlatIndex
from ..index.hamming import HammingIndex
from ..index.hosts import Hosts
from ..index.relations import Row
from ..signature import Link, Signature
from ..text.urls import canonical_url
from .base import Forgotten, Selection
from .forgetting import forget
from .local import Local
from .runs import Run

MAX_PROPOSED = 2000  # by a detector: what very many documents have in common tells none of them from another


class MemoryStore(Local):
    """A store that forgets everything when the process ends."""

    run = ""

    def __init__(self, detectors: Sequence[Detector], *, few: bool = False) -> None:
        """Begin empty; `few`: there will be some thousand documents at a time."""
        self._indexes: dict[str, Index[Signature]] = {
            d.name: _for_few(d.index()) if few else d.index() for d in detectors
        }
        self._signatures: dict[Signature, None] = {}
        self._urls: dict[str, Link] = {}
        self._links: dict[Signature, dict[str, Link]] = {}
        self.hosts = Hosts()
        self.stats: dict[str, int] = {}

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Signature]]:
        for name in self._indexes:
            for signature in self.propose(name, fingerprints.get(name, ())):
                yield name, signature

    def propose(self, name: str, fingerprints: Sequence[int]) -> Iterable[Signature]:
        """Return the documents that one detector proposes."""
        return islice(self._indexes[name].find(fingerprints), MAX_PROPOSED)

    def add(self, signature: Signature) -> None:
        entered: list[str] = []
        try:
            for name, index in self._indexes.items():
                index.add(signature.fingerprints.get(name, ()), signature)
                entered.append(name)
        except BaseException:  # in an index of the user's: half a document is not to be found
            for name in entered:
                self._indexes[name].remove(signature.fingerprints.get(name, ()), signature)
            raise
        self._signatures[signature] = None

    def commit(self, signature: Signature) -> None:
        pass

    def holds(self, signature: Signature) -> bool:
        """Say whether a document is held, pending or committed."""
        return signature in self._signatures

    def withdraw(self, signature: Signature) -> None:
        if signature not in self._signatures:
            return
        del self._signatures[signature]
        for name, index in self._indexes.items():
            index.remove(signature.fingerprints.get(name, ()), signature)
        for url in self._links.pop(signature, {}):
            self._urls.pop(url, None)

    def record(self, link: Link) -> None:
        if link.signature and link.signature not in self._signatures:
            return  # forgotten since
        url = canonical_url(link.url)
        before = self._urls.pop(url, None)
        if before and before.signature:
            self._links[before.signature].pop(url, None)
            before.signature.repeats -= before.mirror
        if link.void:
            return
        self._urls[url] = link
        self.hosts.meet(link.url, link.seen)
        if link.signature:
            self._links.setdefault(link.signature, {})[url] = link
            link.signature.repeats += link.mirror

    def resolve(self, url: str) -> Link | None:
        return self._urls.get(canonical_url(url))

    def all_links(self) -> Iterable[Link]:
        return list(self._urls.values())

    def repeat(self, signature: Signature) -> None:
        signature.repeats += 1

    def forget(self, what: Selection) -> Forgotten:
        return forget(self, what)

    def seen_before(self, when: float) -> Iterable[Signature]:
        """Return the documents that no URL gave since then."""
        return [
            signature
            for signature in self._signatures
            if max((signature.first_seen, *(link.seen for link in self.links(signature)))) < when
        ]

    def degrees(self) -> Iterable[int]:
        return [signature.repeats for signature in self._signatures]

    def links(self, signature: Signature) -> list[Link]:
        return list(self._links.get(signature, {}).values())

    def learn(self, trials: Iterable[Row]) -> None:
        pass

    def signatures(self) -> Iterable[Signature]:
        return list(self._signatures)

    def runs(self) -> list[Run]:
        return []

    def is_alive(self, run: str) -> bool:
        return False

    def describe(self) -> dict[str, object]:
        return {"store": "in memory"}

    def __len__(self) -> int:
        return len(self._signatures)

    def run_of(self, signature: Signature) -> str:
        return self.run

    def flush(self, *, wait: bool = True) -> None:
        pass

    def refresh(self) -> bool:
        return False

    def close(self, *, clean: bool = True) -> None:
        pass


def _for_few(index: Index[Signature]) -> Index[Signature]:
    return FlatIndex(index.distance) if isinstance(index, HammingIndex) else index
