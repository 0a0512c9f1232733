"""When a held document was last given, by any URL. No Scrapy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..fingerprints.hashes import hash_text
from ..signature import Link, Signature

if TYPE_CHECKING:
    from ..store import Store

SCHEME = "neardup:"  # of the URL that stands for a document whose own URL did not give it
OWN_HOST = "own-host:"  # the same where it was a URL of that host: only noted for preferred hosts


class Deliveries:
    """Knows which documents were given in this run.

    A document that came since the run began was given in it, whatever its URL gives now. Of an older one the link of
    its own URL tells it. Where that leads to nothing, or to something else (the item has no URL, a page gives several
    items, the original has gone and a copy is alive), a link of a made-up URL does.
    """

    def __init__(
        self,
        store: Store,
        started: float,
        clock: Callable[[], float] = time.time,
        *,
        lost: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """`started`: when the run began, in seconds since the epoch; `lost`: from when to when it had died."""
        self._store = store
        self._started = started
        self._lost = lost
        self._clock = clock

    def is_delivered(self, document: Signature, *, by_own_host: bool = False) -> bool:
        """Return whether any URL gave a document in this run; `by_own_host`: one that was recorded as such."""
        if by_own_host:
            own = self._seen(document.url, document) if document.url else 0.0
            return self._is_of_run(max(own, self._seen(_made_up_url(document, OWN_HOST), document)))
        came = document.own.seen if document.own else document.first_seen
        return self._is_of_run(came) or self._is_of_run(self.last(document))

    def _is_of_run(self, seen: float) -> bool:
        """Return whether this run gave what was seen then; what it gave before it was killed may never have arrived."""
        return seen >= self._started and not self._lost[0] < seen < self._lost[1]

    def last(self, document: Signature) -> float:
        """Return when a document was last given, in seconds since the epoch; 0 where that is not known."""
        own = self._seen(document.url, document) if document.url else 0.0
        return own if self._is_of_run(own) else max(own, self._seen(_made_up_url(document), document))

    def is_deserted(self, document: Signature) -> bool:
        """Return whether another URL than the document's own was the last to give it."""
        return self._seen(_made_up_url(document), document) > (
            self._seen(document.url, document) if document.url else 0.0
        )

    def record(self, document: Signature, *, by_own_host: bool = False) -> None:
        """Note that a document was given just now, unless it is known that it was in this run."""
        if not self.is_delivered(document):
            self._store.record(Link(_made_up_url(document), document, False, self._clock()))
        if by_own_host and not self.is_delivered(document, by_own_host=True):
            self._store.record(Link(_made_up_url(document, OWN_HOST), document, False, self._clock()))

    def remember(self, urls: Iterable[str], new: Signature) -> None:
        """Remember which older documents URLs gave in this run, before they lead to a new one."""
        for link in filter(None, map(self._store.resolve, urls)):
            document = link.signature
            if document is None or document is new or link.is_copy or self._is_of_run(document.first_seen):
                continue
            if self._is_of_run(link.seen):
                self._store.record(Link(_made_up_url(document), document, False, link.seen))

    def _seen(self, url: str, document: Signature) -> float:
        link = self._store.resolve(url)
        return link.seen if link and link.signature is document and not link.is_copy else 0.0


def _made_up_url(document: Signature, given_by: str = "") -> str:
    told = (document.url, document.title, document.identity, document.sketch.codes.hex(), document.sketch.tokens)
    return f"{SCHEME}{given_by}{hash_text(repr(told)):016x}"
