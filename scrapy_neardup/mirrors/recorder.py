"""Record in a store which documents URLs returned. No Scrapy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..document import Document
from ..fingerprints.hashes import hash_bytes
from ..signature import Evidence, Signature, Visit
from ..text.urls import canonical_url
from ..verdict import named

if TYPE_CHECKING:
    from ..store import Store


class Recorder:
    """Records visits of URLs in a store."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def own(self, document: Document, signature: Signature) -> Visit | None:
        """Return the visit of a new document's own URL; None if the URL may return other documents too."""
        if not document.url or document.url in document.loose:
            return None
        return Visit(document.url, signature, False, self._clock(), document.size)

    def keep_fetching(self, document: Document) -> None:
        """Record that the URLs of a document also return content that is not held, so that they are fetched again.

        Only URLs that are known as copies are changed.
        """
        for url in urls(document):
            known = self._store.resolve(url)
            if known and known.is_copy:
                self._store.record(Visit(url, None, False, self._clock(), document.size))

    def unlink(self, document: Document) -> None:
        """Record that the URLs of a document return several documents."""
        for url in urls(document):
            self._store.record(Visit(url, None, False, self._clock(), document.size))

    def link_item(self, document: Document, signature: Signature, evidence: Evidence) -> None:
        """Record that one of several items of a page is a copy, unless the page is that of the original."""
        page = document.url or ""
        if canonical_url(page) != canonical_url(signature.url or ""):
            now, name = self._clock(), item_name(document)
            self._store.record(Visit("", signature, True, now, evidence=evidence, firm=False, name=name))

    def link(
        self,
        urls: Iterable[str],
        document: Document,
        signature: Signature,
        *,
        is_copy: bool,
        evidence: Evidence | None = None,
    ) -> None:
        """Record that URLs returned a document; "" stands for a copy without a URL."""
        for url in urls:
            firm = url not in document.loose
            known = None if (firm and not is_copy) or not url else self._store.resolve(url)
            # A URL with a document of its own does not become a copy, whatever else it or a list page returns.
            if not (known and known.signature and not known.is_copy and (is_copy or known.firm)):
                self._store.record(Visit(url, signature, is_copy, self._clock(), document.size, evidence, firm))


def item_name(document: Document) -> str:
    """Return the name of the visit of one of several items of a page. It ends with what is shown of the item."""
    told = hash_bytes(document.sketch.codes + document.facts)
    return f"item {told:016x}: {named(document.url, document.label)}"


def urls(document: Document) -> list[str]:
    """Return the URLs of a document, with its own URL first."""
    return [url for url in (document.url, *document.aliases) if url]
