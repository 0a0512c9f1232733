"""Read and write the state of each URL: its newest link, or else the document that it gave first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from ..signature import Link, Signature, Visit
from ..text.urls import canonical_url
from .interface import DOCUMENT, LINK, Backend, Entry, Found, Postings, Question, Row, StoreError
from .keys import id_of, place_of
from .postings import links_key, mirrors_key, postings, url_key

if TYPE_CHECKING:
    from .session import Session

MOST_KNOWN = 256  # URLs whose rows are cached
SEVERAL = 16  # the maximum number of rows of a URL to read
FEW = 16  # the maximum number of copies of a document that are counted exactly
MANY = 1 << 24  # the maximum number of links of a document

Rows: TypeAlias = list[tuple[Row, Link | None]]
"""The rows of a URL, oldest first, with their links. For a document that the URL does not give any more, it is None."""


class Links:
    """The links of a store.

    `held` returns the document of a row. `recount` is called with the id of each document whose number of copies
    changes.
    """

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
        self._foreseen: dict[int, Found] = {}
        self._known: dict[str, Rows] = {}
        """A cache of the rows of recent URLs, since a decision asks several times."""

    # Reading

    def resolve(self, url: str) -> Link | None:
        """Return the state of a URL in any spelling, as of the last write or `refresh`. None if it is unknown."""
        link = _newest(self._rows(url))
        return self._complete(link) if link else None

    def question(self, url: str) -> Question:
        """Return the lookup that finds the rows of a URL."""
        return Question({url_key(url): SEVERAL})

    def take(self, question: Question, found: Found) -> None:
        """Cache the answer to a lookup of `question`."""
        self._foreseen |= dict.fromkeys(question.keys, found)

    def refresh(self) -> None:
        """Clear the cache."""
        self._known.clear()
        self._foreseen.clear()

    def _write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        self._known.clear()
        for key in chain.from_iterable(entry.postings.keys for entry in chain(entries, deleted)):
            self._foreseen.pop(key, None)
        self._session.write(entries, deleted)

    def _rows(self, url: str) -> Rows:
        """Return the rows of a URL, as of the last write or `refresh`."""
        if url in self._known:
            return self._known[url]
        question, canonical = self.question(url), canonical_url(url)
        [key] = question.keys
        found = self._foreseen.pop(key, None) or self._backend.find([question])[0]
        told = [(row, self._link(row)) for row in found.rows.get(key, ())]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        rows = [(row, link) for row, link in told if link is None or canonical_url(link.url) == canonical]
        self._known[url] = rows
        return rows

    def _link(self, row: Row) -> Link | None:
        """Return the link in a row, or the own visit of its document as a link. None if there is neither."""
        if row.key.startswith(LINK):
            link = self._session.load(row)
            assert isinstance(link, Link)
            return link
        if not row.key.startswith(DOCUMENT):  # a damaged index may lead to any row
            return None
        document = self._held(row)
        return own_link(document) if document.own else None

    def _complete(self, link: Link) -> Link | None:
        """Set the document of a link, and return the link. Return None if that document is no longer held."""
        if link.target is None or link.signature is not None:
            return link
        for row in self._backend.get([f"{DOCUMENT}/{link.target}"]):
            link.signature = self._held(row)
            return link
        return None

    def of(self, document: Signature) -> list[Link]:
        """Return the links to a document, oldest first."""
        links = self._to(document)
        for link in links:
            link.signature = document
        if document.own and (own := self.resolve(document.url or "")) and own.signature is document and not own.key:
            links.append(own)
        return sorted((link for link in links if link.url), key=lambda link: link.seen)

    def _to(self, document: Signature) -> list[Link]:
        """Return the links to a document that have rows of their own."""
        key = links_key(document.id)
        [found] = self._backend.find([Question({key: MANY})])
        return [link for row in found.rows.get(key, ()) if (link := self._link(row)) and link.target == document.id]

    def all(self) -> Iterator[Link]:
        """Yield the state of all URLs."""
        yield from (link for each in self.rows() if each.url and (link := self._complete(each)))
        for row in self._backend.scan(DOCUMENT):
            document = self._held(row)
            if document.own and not row.is_pending and self._is_current(document):
                yield own_link(document)

    def rows(self) -> Iterator[Link]:
        """Yield all links that have rows of their own, without their documents."""
        for row in self._backend.scan(LINK):
            link = self._link(row)
            assert link
            yield link

    def _is_current(self, document: Signature) -> bool:
        """Return whether a document's own visit is the state of its URL."""
        link = self.resolve(document.url or "")
        return link is not None and not link.key and link.signature is document

    def count(self, id: str) -> int:
        """Return the number of copies of a document. A number above `FEW` may include deleted links."""
        key = mirrors_key(id)
        [found] = self._backend.find([Question({key: FEW + 1})])
        rows = found.rows.get(key, ())
        if len(rows) > FEW:
            return self._backend.count(key)
        return sum(link is not None and link.target == id for link in map(self._link, rows))

    # Writing

    def record(self, link: Link) -> None:
        """Write a link in place of earlier links of its URL.

        If the earlier links can't be read, write the link anyway, and raise StoreError.
        """
        link.target = link.signature.id if link.signature else None
        try:
            rows = self._rows(link.url) if link.url else []
        except StoreError:
            link.before = ""
            self._put(link, [])
            raise
        link.before = self._before(_newest(rows), link)
        self._put(link, rows)

    def _put(self, link: Link, rows: Rows, key: str = "") -> None:
        """Write a link, given the rows of its URL. `key` is the key of its row, or "" for a new row of this run."""
        before = _newest(rows)
        self._session.count(urls=int(before is None and bool(link.url)))
        if before and before.key and tells_same(before, link):
            link.key = before.key
            self._write([Entry(link.key, link, postings(link), keeps_place=True)])
            return
        rewritten, deleted = self._superseded(rows, link)
        link.key = key or f"{LINK}/{self._session.next_id()}"
        others = [each for each in deleted if each.key != link.key]
        self._write([*rewritten, Entry(link.key, link, postings(link))], others)
        self._recount_all([before, link])

    def begin(self, document: Signature, visit: Visit | None, entry: Entry) -> None:
        """Write a new document. `visit` is the visit of its own URL, `entry` its pending entry.

        If the state of the URL can't be read, write the visit as a link, which takes precedence over any earlier state,
        and raise StoreError.
        """
        document.own = visit if document.url else None
        try:
            rows = self._rows(document.url) if document.own and document.url else []
        except StoreError:
            link, document.own = own_link(document), None
            link.before = ""
            self._write([entry])
            self._put(link, [])
            raise
        rewritten, deleted = self._begun(document, rows)
        keys, simhash = entry.postings
        if document.own and document.url:
            document.own = document.own._replace(before=self._before(_newest(rows), own_link(document)))
            keys = [*keys, url_key(document.url)]
        self._write([*rewritten, entry._replace(postings=Postings(keys, simhash))], deleted)

    def _before(self, known: Link | None, link: Link) -> str | None:
        """Return `Link.before` for the new link of a URL, given its known link.

        If this run has a new row for the known link, the document before that row counts. So it is always one that the
        URL returned before the run.
        """
        if known is None:
            return None
        is_of_run = place_of(id_of(known.key) or known.target or "")[0] == self._session.run
        keeps = bool(known.key) if tells_same(known, link) else is_of_run
        return known.before if keeps else known.target or known.before or ""

    def _begun(self, document: Signature, rows: Rows) -> tuple[list[Entry], list[Entry]]:
        """Return the entries to rewrite and to delete when a document is added, given the rows of its URL."""
        if not document.own:
            return [], []
        told = [(row, link) for row, link in rows if link and link.target != document.id]
        self._session.count(urls=int(not told))
        self._recount_all(link for _, link in told)
        return self._superseded(told, own_link(document))

    # Rows of another store. If both stores have a link for a URL, the later link is kept.

    def foresee(self, urls: Iterable[str | None]) -> None:
        """Prefetch the rows of the URLs of links and documents to adopt."""
        questions = [self.question(url) for url in urls if url]
        for question, found in zip(questions, self._backend.find(questions), strict=True):
            self.take(question, found)

    def adopt(self, document: Signature) -> bool:
        """Write a document of another store. Return whether it was written with its own visit.

        The visit is left out if a later visit of its URL is known.
        """
        rows = self._rows(document.url) if document.own and document.url else []
        if document.own and not _is_later(own_link(document), _newest(rows)):
            document.own = None
        rewritten, deleted = self._begun(document, rows)
        self._session.count(documents=1)
        entry = Entry(f"{DOCUMENT}/{document.id}", document, postings(document))
        self._write([*rewritten, entry], deleted)
        return document.own is not None

    def adopt_link(self, link: Link, *, is_key_known: bool) -> bool:
        """Write a link of another store, unless a later visit of its URL is known. Return whether it changed a state.

        The link has its key and target. An existing row with this key is the same link, and is replaced only by a later
        visit.
        """
        rows = self._rows(link.url) if link.url else []
        if is_key_known and not any(row.key == link.key and told and tells_same(told, link) for row, told in rows):
            return False
        before = _newest(rows)
        # A link that repeats the document's own visit is stored beside it.
        is_beside = before is not None and not before.key and tells_same(before, link)
        if not (is_beside or _is_later(link, before)):
            return False
        self._put(link, rows, link.key)
        return bool(link.url) and not is_beside

    def _superseded(
        self, rows: Iterable[tuple[Row, Link | None]], link: Link | None
    ) -> tuple[list[Entry], list[Entry]]:
        """Return the entries that a new link supersedes: documents to rewrite without their visit, and links to delete.

        `link` is None if the URL is forgotten.
        """
        rewritten, deleted = [], []
        for row, known in rows:
            if known is None:
                continue
            if known.key:
                deleted.append(Entry(row.key, known, postings(known)))
            elif link is None or not tells_same(known, link):
                document = self._held(row)
                document.own = None
                rewritten.append(Entry(row.key, document, postings(document), keeps_place=True))
        return rewritten, deleted

    def _recount_all(self, links: Iterable[Link | None]) -> None:
        for link in links:
            if link and link.is_copy and link.target:
                self._recount(link.target)

    def unlink(self, url: str) -> None:
        """Forget the state of a URL."""
        rows = self._rows(url)
        if any(link for _, link in rows):
            self._session.count(urls=-1)
            self._write(*self._superseded(rows, None))
            self._recount_all(link for _, link in rows)

    def erase(self, row: Row) -> None:
        """Delete the row of a link. The state of its URL is that of the remaining rows, if any."""
        link = self._link(row)
        assert link
        self._write([], [Entry(row.key, link, postings(link))])
        if link.url and self.resolve(link.url) is None:
            self._session.count(urls=-1)
        self._recount_all([link])

    def drop(self, document: Signature) -> None:
        """Delete a document and all links to it."""
        urls = self.of(document)
        deleted = [Entry(link.key, link, postings(link)) for link in self._to(document)]
        gone = Entry(f"{DOCUMENT}/{document.id}", document, postings(document))
        self._session.count(urls=-len(urls))
        self._write([], [*deleted, gone])


def own_link(document: Signature) -> Link:
    """Return a document's own visit as a link."""
    assert document.own
    assert document.url
    seen, size, before = document.own
    return Link(document.url, document, False, seen, size, target=document.id, before=before)


def _newest(rows: Rows) -> Link | None:
    """Return the newest link among the rows of a URL, or None."""
    return next((link for _, link in reversed(rows) if link), None)


def tells_same(one: Link, other: Link) -> bool:
    """Return whether two links lead to the same document, both as copies or both not."""
    return (one.target, one.is_copy) == (other.target, other.is_copy)


def _is_later(link: Link, known: Link | None) -> bool:
    """Return whether a link takes precedence over the known link of its URL.

    The later one does. At equal times, a link with its own row takes precedence over the visit in a document's row.
    """
    return known is None or (link.seen, bool(link.key)) > (known.seen, bool(known.key))
