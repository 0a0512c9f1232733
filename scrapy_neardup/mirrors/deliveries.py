"""Record when any URL last returned a held document. No Scrapy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from ..signature import Signature, Visit

if TYPE_CHECKING:
    from ..store import Store


class Deliveries:
    """Records deliveries, and decides which documents were delivered in this run. A document is delivered when any URL
    returns it.

    A document that was added since the run began was delivered in the run. For an older document, the time is in the
    visit of its own URL. If that URL is missing or returns something else, the time is in a visit with a name.
    """

    def __init__(self, store: Store, started: float, clock: Callable[[], float] = time.time) -> None:
        """`started` is the start of the run. What the store lost of it was not delivered; see `Store.lost`."""
        self._store = store
        self.started = started
        self._clock = clock
        self._passing: WeakSet[Signature] = WeakSet()

    def is_delivered(self, document: Signature, *, by_own_host: bool = False) -> bool:
        """Return whether any URL returned a document in this run; with `by_own_host`, a URL of its own host."""
        if document in self._passing:
            return True
        if by_own_host:
            own = self._seen(document.url, document)
            return self.is_of_run(max(own, self._seen(_by_own_host(document), document)))
        return self.is_of_run(document.first_seen) or self.is_of_run(self.last(document))

    def is_of_run(self, seen: float) -> bool:
        """Return whether a visit belongs to this run.

        Visits in a killed session of the run do not count, since their items may never have arrived in a feed.
        """
        return seen >= self.started and not self._store.lost[0] < seen < self._store.lost[1]

    def last(self, document: Signature) -> float:
        """Return the time of the last delivery of a document, in seconds since the epoch; 0 if unknown."""
        own = self._seen(document.url, document)
        return own if self.is_of_run(own) else max(own, self._seen(_delivery(document), document))

    def is_deserted(self, document: Signature) -> bool:
        """Return whether the last delivery of a document was by another URL than its own."""
        return self._seen(_delivery(document), document) > self._seen(document.url, document)

    def record(self, document: Signature, *, by_own_host: bool = False) -> None:
        """Record the delivery of a document, unless this run has a delivery of it already."""
        if not self.is_delivered(document):
            self._record(_delivery(document), document, self._clock())
        if by_own_host and not self.is_delivered(document, by_own_host=True):
            self._record(_by_own_host(document), document, self._clock())

    def _record(self, name: str, document: Signature, seen: float) -> None:
        self._store.record(Visit("", document, False, seen, name=name))

    def record_passing(self, document: Signature) -> None:
        """Record the delivery of a document for this process only, since no URL may have it any more."""
        self._passing.add(document)

    def remember(self, urls: Iterable[str], new: Signature) -> None:
        """Record that URLs delivered older documents in this run. Call this before the visits of `new`."""
        for visit in filter(None, map(self._store.resolve, urls)):
            document = visit.signature
            if document is None or document is new or visit.is_copy or self.is_of_run(document.first_seen):
                continue
            if self.is_of_run(visit.seen):
                self._record(_delivery(document), document, visit.seen)

    def _seen(self, place: str | None, document: Signature) -> float:
        visit = self._store.resolve(place) if place else None
        return visit.seen if visit and visit.signature is document and not visit.is_copy else 0.0


def _delivery(document: Signature) -> str:
    return f"delivery {document.id}"


def _by_own_host(document: Signature) -> str:
    """Return the name under which the document's own host, a preferred one, is noted to have delivered it."""
    return f"own {_delivery(document)}"
