"""What each URL led to. Of a URL one row counts: the link, else the document that it gave first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..signature import Link, Signature, Visit
from ..text.urls import canonical_url
from .base import DOCUMENT, LINK, Backend, Entry, Question, Row
from .postings import links_key, mirrors_key, postings, url_key
from .session import Session

MOST_KNOWN = 256  # URLs
SEVERAL = 16  # rows of one URL that are looked at, at most
FEW = 64  # mirrors of a document that are counted one by one
MANY = 1 << 24  # links of a document


class Links:
    """The links of a store. `held` returns the document of a row; `recount` is told whose mirrors are more, or fewer."""

    def __init__(
        self,
        backend: Backend,
        session: Session,
        held: Callable[[Row], Signature],
        recount: Callable[[str], object],
    ) -> None:
        self._backend = backend
        self._session = session
        self._held = held
        self._recount = recount
        self._known: dict[str, Link | None] = {}
        """What URLs led to that were just asked for: a decision asks several times."""

    # What is known

    def resolve(self, url: str) -> Link | None:
        """Return what is known of a URL, in whatever spelling, since it was last written or `refresh` was called."""
        if url not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            told = next((link for _, link in reversed(self._rows(url)) if link), None)
            self._known[url] = self._complete(told) if told else None
        return self._known[url]

    def refresh(self) -> None:
        """Ask anew for what URLs led to."""
        self._known.clear()

    def _write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        self._known.clear()
        self._backend.write(entries, deleted)

    def _rows(self, url: str) -> list[tuple[Row, Link | None]]:
        """Return the rows of a URL with their links, oldest first: None for a document that tells of it no more."""
        key, canonical = url_key(url), canonical_url(url)
        [found] = self._backend.find([Question({key: SEVERAL})])
        told = [(row, self._link(row)) for row in found.rows.get(key, ())]
        return [(row, link) for row, link in told if link is None or canonical_url(link.url) == canonical]

    def _link(self, row: Row) -> Link | None:
        """Return the link that a row tells of."""
        if row.key.startswith(LINK):
            link = self._session.load(row)
            assert isinstance(link, Link)
            return link
        document = self._held(row)
        return own_link(document) if document.own else None

    def _complete(self, link: Link) -> Link | None:
        """Return a link with its document; None where that is held no more."""
        if link.target is None or link.signature is not None:
            return link
        for row in self._backend.get([f"{DOCUMENT}/{link.target}"]):
            link.signature = self._held(row)
            return link
        return None

    def of(self, document: Signature) -> list[Link]:
        """Return the URLs that led to a document, oldest first."""
        key = links_key(document.id)
        [found] = self._backend.find([Question({key: MANY})])
        links = [link for row in found.rows.get(key, ()) if (link := self._link(row)) and link.target == document.id]
        for link in links:
            link.signature = document
        if document.own and (own := self.resolve(document.url or "")) and own.signature is document and not own.key:
            links.append(own)
        return sorted((link for link in links if link.url), key=lambda link: link.seen)

    def all(self) -> Iterator[Link]:
        """Yield what is known of all URLs."""
        for row in self._backend.scan(LINK):
            link = self._link(row)
            if link and link.url and (link := self._complete(link)):
                yield link
        for row in self._backend.scan(DOCUMENT):
            document = self._held(row)
            if document.own and not row.is_pending and self._is_current(document):
                yield own_link(document)

    def _is_current(self, document: Signature) -> bool:
        """Return whether no link tells more of a document's own URL."""
        link = self.resolve(document.url or "")
        return link is not None and not link.key and link.signature is document

    def count(self, id: str) -> int:
        """Return how many mirrors a document has; of very many about."""
        key = mirrors_key(id)
        [found] = self._backend.find([Question({key: FEW})])
        links = [link for row in found.rows.get(key, ()) if (link := self._link(row)) and link.target == id]
        return len(links) if len(links) < FEW else self._backend.count(key)

    # What is written

    def record(self, link: Link) -> None:
        """Keep what a URL led to, in place of what was known of it."""
        rows = self._rows(link.url) if link.url else []
        link.target = link.signature.id if link.signature else None
        before = next((known for _, known in reversed(rows) if known), None)
        self._session.count(urls=int(before is None and bool(link.url)))
        if before and before.key and (before.target, before.mirror) == (link.target, link.mirror):
            link.key = before.key
            self._write([Entry(link.key, link, postings(link), keeps_place=True)])
            return
        rewritten, deleted = self._superseded(rows, link)
        link.key = f"{LINK}/{self._session.next_id()}"
        self._write([*rewritten, Entry(link.key, link, postings(link))], deleted)
        self._recount_all([before, link])

    def begin(self, document: Signature, visit: Visit | None) -> None:
        """Write a new document, whose own URL gave it at that visit, if any."""
        if visit and document.url:
            rows = self._rows(document.url)
            told = [(row, link) for row, link in rows if link and link.target != document.id]
            self._session.count(urls=int(not told))
            document.own = visit
            self._write(*self._superseded(told, own_link(document)))
            self._recount_all(link for _, link in told)
        self._write([Entry(f"{DOCUMENT}/{document.id}", document, postings(document))])

    def _superseded(
        self, rows: Iterable[tuple[Row, Link | None]], link: Link | None
    ) -> tuple[list[Entry], list[Entry]]:
        """Return the documents that are to tell of a URL no more, and the links to delete, where a new link comes."""
        rewritten, deleted = [], []
        for row, known in rows:
            if known is None:
                continue
            if known.key:
                deleted.append(Entry(row.key, known, postings(known)))
            elif link is None or (known.target, known.mirror) != (link.target, link.mirror):
                document = self._held(row)
                document.own = None
                rewritten.append(Entry(row.key, document, postings(document), keeps_place=True))
        return rewritten, deleted

    def _recount_all(self, links: Iterable[Link | None]) -> None:
        for link in links:
            if link and link.mirror and link.target:
                self._recount(link.target)

    def unlink(self, url: str) -> None:
        """Forget what a URL led to."""
        rows = self._rows(url)
        if any(link for _, link in rows):
            self._session.count(urls=-1)
            self._write(*self._superseded(rows, None))
            self._recount_all(link for _, link in rows)

    def erase(self, row: Row) -> None:
        """Delete the row of a link: its URL leads again to what it gave first, if that is held."""
        link = self._link(row)
        assert link
        self._write([], [Entry(row.key, link, postings(link))])
        if link.url and self.resolve(link.url) is None:
            self._session.count(urls=-1)
        self._recount_all([link])

    def drop(self, document: Signature) -> None:
        """Delete a document, with all URLs that led to it."""
        urls = self.of(document)
        key = links_key(document.id)
        [found] = self._backend.find([Question({key: MANY})])
        links = [link for row in found.rows.get(key, ()) if (link := self._link(row)) and link.target == document.id]
        deleted = [Entry(link.key, link, postings(link)) for link in links]
        gone = Entry(f"{DOCUMENT}/{document.id}", document, postings(document))
        self._session.count(urls=-len(urls))
        self._write([], [*deleted, gone])


def own_link(document: Signature) -> Link:
    """Return the link that a document tells of itself."""
    assert document.own and document.url
    return Link(document.url, document, False, document.own.seen, document.own.size, target=document.id)
