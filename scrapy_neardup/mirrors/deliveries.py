"""Record when any URL last returned a held document. No Scrapy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from ..fingerprints.hashes import hash_text
from ..signature import Link, Signature
from ..text.urls import SCHEME

if TYPE_CHECKING:
    from ..store import Store

OWN_HOST = "own-host:"  # follows the scheme if the original's own host, a preferred one, returned the document


class Deliveries:
    """Records deliveries, and decides which documents were delivered in this run. A document is delivered when any URL
    returns it.

    A document that was added since the run began was delivered in the run. For an older document, the time of the
    delivery is in the link of its own URL. If that URL is missing or returns something else (an item without URL, a
    page with several items, a dead original with a live copy), the time is in the link of a made-up URL.
    """

    def __init__(
        self,
        store: Store,
        started: float,
        clock: Callable[[], float] = time.time,
        *,
        lost: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """`started` is the start of the run. The rows of the time span `lost` were forgotten; see `Store.lost`."""
        self._store = store
        self.started = started
        self._lost = lost
        self._clock = clock
        self._passing: WeakSet[Signature] = WeakSet()

    def is_delivered(self, document: Signature, *, by_own_host: bool = False) -> bool:
        """Return whether any URL returned a document in this run; with `by_own_host`, a URL of its own host."""
        if document in self._passing:
            return True
        if by_own_host:
            own = self._seen(document.url, document) if document.url else 0.0
            return self.is_of_run(max(own, self._seen(_made_up_url(document, OWN_HOST), document)))
        came = document.own.seen if document.own else document.first_seen
        return self.is_of_run(came) or self.is_of_run(self.last(document))

    def is_of_run(self, seen: float) -> bool:
        """Return whether a visit belongs to this run.

        Visits in a killed session of the run do not count, since their items may never have arrived in a feed.
        """
        return seen >= self.started and not self._lost[0] < seen < self._lost[1]

    def last(self, document: Signature) -> float:
        """Return the time of the last delivery of a document, in seconds since the epoch; 0 if unknown."""
        own = self._seen(document.url, document) if document.url else 0.0
        return own if self.is_of_run(own) else max(own, self._seen(_made_up_url(document), document))

    def is_deserted(self, document: Signature) -> bool:
        """Return whether the last delivery of a document was by another URL than its own."""
        return self._seen(_made_up_url(document), document) > (
            self._seen(document.url, document) if document.url else 0.0
        )

    def record(self, document: Signature, *, by_own_host: bool = False) -> None:
        """Record the delivery of a document, unless this run has a delivery of it already."""
        if not self.is_delivered(document):
            self._store.record(Link(_made_up_url(document), document, False, self._clock()))
        if by_own_host and not self.is_delivered(document, by_own_host=True):
            self._store.record(Link(_made_up_url(document, OWN_HOST), document, False, self._clock()))

    def record_passing(self, document: Signature) -> None:
        """Record the delivery of a document for this process only, since no URL may have it any more."""
        self._passing.add(document)

    def remember(self, urls: Iterable[str], new: Signature) -> None:
        """Record that URLs delivered older documents in this run. Call this before the URLs are linked to `new`."""
        for link in filter(None, map(self._store.resolve, urls)):
            document = link.signature
            if document is None or document is new or link.is_copy or self.is_of_run(document.first_seen):
                continue
            if self.is_of_run(link.seen):
                self._store.record(Link(_made_up_url(document), document, False, link.seen))

    def _seen(self, url: str, document: Signature) -> float:
        link = self._store.resolve(url)
        return link.seen if link and link.signature is document and not link.is_copy else 0.0


def _made_up_url(document: Signature, given_by: str = "") -> str:
    told = (document.url, document.title, document.facts.hex(), document.sketch.codes.hex(), document.sketch.tokens)
    return f"{SCHEME}{given_by}{hash_text(repr(told)):016x}"
