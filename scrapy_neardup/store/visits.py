"""Read and write the visits of a store: one row for each URL, which is written in place. records.py has the bytes.

A visit is found by its URL, in any spelling. A visit without a URL has a name, which begins with a word for its kind. A
`copy` is a copy without URL; an `item`, one of several items of a page; a `delivery`, that of a document whose own URL
does not tell when it was delivered.

The *state* of a visit is its document, and whether the URL is a copy. The row also has the state before the run that
wrote the present one. The state before comes back if the run dies. If the same spider gets the same state again, the
row gets the new time, but stays where it is in the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from ..signature import Signature, Visit
from . import records
from .backend import Backend, Entry, Row, StoreError
from .records import DOCUMENT, VISIT, Key

if TYPE_CHECKING:
    from .runs import Session

MOST_KNOWN = 4096  # visits and documents to cache
AT_ONCE = 500  # visits to read at a time
FEW = 16  # the maximum number of copies of a document that are counted exactly
MANY = 1 << 24  # the maximum number of visits of a document or a run
MOST_COUNTS = 1 << 16  # counts of copies to cache


class Visits:
    """The visits of a store. `held` is the function that returns the document in a row."""

    def __init__(self, backend: Backend, session: Session, held: Callable[[Row], Signature]) -> None:
        self._backend, self._session, self._held = backend, session, held
        self.copies: dict[int, int] = {}  # a cache of the numbers of copies, by the id of the document
        self._known: dict[Key, Any] = {}
        """A cache by key: visits with their documents (rows, until they are asked for), and documents."""

    # Reading

    def resolve(self, place: str) -> Visit | None:
        """Return the visit of a URL, in any spelling, or the visit with a name; None if there is none."""
        visit = self._read(records.visit_key(place))
        if visit is None or place in (visit.url, visit.name):
            return visit
        # URLs may have the same hash.
        return visit if records.canonical_place(visit.name or visit.url) == records.canonical_place(place) else None

    def _read(self, key: int) -> Visit | None:
        """Return the visit with this key; None if there is none, or if its document is not held any more."""
        if key not in self._known:
            self.take([key], self._backend.get([key]))
        known = self._known[key]
        if isinstance(known, Row):
            self._known[key] = known = self._completed(self._load(known))
        return cast("Visit | None", known)

    def _load(self, row: Row) -> Visit:
        return cast(Visit, self._session.load(row))

    def _completed(self, stored: Visit) -> Visit | None:
        return next(self._complete([stored]), None)

    def _complete(self, visits: Iterable[Visit]) -> Iterator[Visit]:
        """Add their documents to stored visits. Leave out visits whose document is not held any more."""
        some = list(visits)
        wanted = {visit.target for visit in some if visit.target and visit.target not in self._known}
        held = {row.key: self._held(row) for row in (self._backend.get(wanted) if wanted else ())}
        for visit in some:
            if visit.target is None:
                yield visit
            elif self._session.has_forgotten(visit.target):
                continue
            elif document := held.get(visit.target) or self._known.get(visit.target):
                url = visit.url or ("" if visit.name else document.url or "")
                yield _with(visit, url, document, visit.at, visit.before)

    def all(self) -> Iterator[Visit]:
        """Yield all visits, also those with a name. Leave out those whose document is not held any more."""
        rows = map(self._load, self._backend.scan(VISIT))
        while some := list(islice(rows, AT_ONCE)):
            yield from self._complete(some)

    def of(self, document: Signature, most: int = MANY) -> list[Visit]:
        """Return the visits of a document, oldest first: that of its own URL, the newest `most` copies, and the newest
        `most` others. Leave out visits with nothing to show (`Visit.shown`).
        """
        visits = self._complete(self._to(document, most).values())
        return sorted((visit for visit in visits if visit.shown), key=attrgetter("seen"))

    def at_most(self, document: Signature) -> int:
        """Return an upper bound of the number of visits of a document, without reading them."""
        return 1 + sum(self._backend.count(records.index_key(name, document.id)) for name in ("links", "mirrors"))

    def _to(self, document: Signature, most: int = MANY) -> dict[int, Visit]:
        listed = self._rows_of("links", "mirrors", of=document.id, most=most)
        key, own = records.visit_key(document.url or ""), self._read(records.visit_key(document.url or ""))
        visits = {key: own} if document.url and own else {}
        visits |= {key: self._load(row) for key, row in listed.items()}
        return {key: visit for key, visit in visits.items() if visit.target == document.id}

    def _rows_of(self, *kinds: str, of: int, most: int = MANY) -> dict[int, Row]:
        """Return the newest rows of visits that the index has for a document or run, by key."""
        rows = self._backend.rows_of(*(records.index_key(kind, of) for kind in kinds), most=most)
        # A damaged index may lead to any row.
        return {row.key: row for row in rows if isinstance(row.key, int) and row.key < 0}

    def of_run(self, run: str, after: int = 0) -> Iterator[tuple[int, Visit]]:
        """Yield key and stored visit of each state that a run wrote with a number above `after`, some of them twice."""
        own = records.code(run)
        # The index does not list the visits of its documents' own URLs.
        urls = (self._held(row).url for row in self._backend.scan(DOCUMENT, run))
        keys = chain([*self._rows_of("run", of=own)], (records.visit_key(url) for url in urls if url))
        while some := dict.fromkeys(islice(keys, AT_ONCE)):
            for row in self._backend.get(some):
                visit = self._load(row)
                if records.code_of(visit.at) == own and records.number_of(visit.at) > after:
                    yield cast(int, row.key), visit

    def count(self, id: int) -> int:
        """Return the number of copies of a document. A number above `FEW` may count URLs that changed since."""
        if id not in self.copies:
            if len(self.copies) >= MOST_COUNTS:
                self.copies.clear()
            self.copies[id] = self._counted(id)
        return self.copies[id]

    def _counted(self, id: int) -> int:
        visits = [*map(self._load, self._rows_of("mirrors", of=id, most=2 * FEW).values())]  # some come twice
        if len(visits) > FEW:
            return self._backend.count(records.index_key("mirrors", id))
        return sum(visit.target == id and visit.is_copy for visit in visits)

    # Caches

    def take(self, keys: Iterable[int], rows: Iterable[Row]) -> None:
        """Cache the rows that were found under keys of visits."""
        if len(self._known) >= MOST_KNOWN:
            self.clear()
        self._known |= dict.fromkeys(keys)
        for row in rows:
            self._known[row.key] = row  # decoded when it is asked for, since it may be damaged

    def note(self, document: Signature) -> None:
        """Cache a document that was just read, since its visit is often asked for next."""
        if len(self._known) < MOST_KNOWN:
            self._known[document.id] = document

    def clear(self) -> None:
        """Clear the cache, except the numbers of copies."""
        self._known.clear()

    # Writing

    def record(self, visit: Visit | None, new: Entry | None = None) -> None:
        """Write a visit in place of the last one of its URL or name, together with the entry of a new document.

        Either may be None. If the last visit can't be read, write both, then raise StoreError.
        """
        others = [new] if new else []
        at = cast(int, new.key) if new else self._session.next_id()
        if new and len(self.copies) < MOST_COUNTS:
            self.copies[at] = 0
        self._write([*others, self._entry(visit, at, others)] if visit else others)

    def _entry(self, visit: Visit, at: int, others: Sequence[Entry]) -> Entry:
        """Return the entry of a visit, with the id `at` if its state is new. Before raising, write it and `others`."""
        visit.target = visit.signature.id if visit.signature else None
        if not visit.url and not visit.name:
            visit.name = f"copy {at:016x}"
        key = records.visit_key(place := visit.name or visit.url)
        try:
            known = self.resolve(place)
        except StoreError:
            self._write([*others, _entry(key, _packed(visit, at, None))])
            raise
        is_same = known and (known.target, known.is_copy) == (visit.target, visit.is_copy)
        if known and is_same and self._session.is_of_writer(known.at):
            return _entry(key, _packed(visit, known.at, known.before, is_own=_is_own(known)), is_news=False)
        if visit.is_copy or known:
            self._recount(known, -1)
            self._recount(visit, 1)
        return _entry(key, _packed(visit, at, self._before(known) if known else None))

    def _before(self, known: Visit) -> Visit | None:
        """Return the state to put back if this run dies. `known` is the state that this run replaces.

        If a resumed run dies, it loses only what it wrote since it was resumed. So put back the state at that time,
        whose `before` is the state before the run.
        """
        if not self._session.is_own(known.at):
            earlier = None if known.target else known.before
            return _packed(known, known.at, earlier and replace(earlier, before=None))
        if records.number_of(known.at) > self._session.sealed:
            return known.before
        return _packed(known, known.at, former(known))

    def _write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        for entry in chain(entries, deleted):
            self._known.pop(entry.key, None)
        self._backend.write(entries, deleted)

    def adopt(self, key: int, stored: Visit) -> bool:
        """Write a visit of another store, unless one as late or later is known. Return whether it was written."""
        known, visit = self._read(key), self._completed(stored)
        if visit is None or (known and known.seen >= visit.seen):
            return False
        self._write([_entry(key, stored)])
        return True

    def _recount(self, visit: Visit | None, change: int) -> None:
        if visit and visit.is_copy and visit.target in self.copies:
            self.copies[visit.target] = max(0, self.copies[visit.target] + change)

    # Forgetting

    def unlink(self, url: str) -> None:
        if visit := self.resolve(url):
            self._delete({records.visit_key(url): visit})

    def _delete(self, visits: dict[int, Visit], *others: Entry) -> None:
        deleted = [_entry(key, _packed(visit, visit.at, visit.before)) for key, visit in visits.items()]
        self._write([], [*deleted, *others])
        for visit in visits.values():
            self._recount(visit, -1)

    def drop(self, document: Signature) -> None:
        """Delete a document and all its visits."""
        self._delete(self._to(document), Entry(document.id, document, *records.postings(document)))

    def undo(self, key: int, stored: Visit) -> None:
        """Put back the state before the run that wrote a visit. Delete the visit if there is no such state."""
        if before := self.restored(stored):
            self._write([_entry(key, before)])
            self._recount(stored, -1)
            self._recount(before, 1)
        else:
            self._delete({key: stored})

    def restored(self, stored: Visit) -> Visit | None:
        """Return the state before the run that wrote a visit; None if there is none, or if it was forgotten."""
        before = stored.before
        if before is None or not any(self._complete([before])):
            return None
        return None if self._session.has_forgotten(before.at) else before


def former(visit: Visit) -> Visit | None:
    """Return the last state before the run that wrote a visit; if possible, one with a document."""
    before, own = visit.before, records.code_of(visit.at)
    while before and (records.code_of(before.at) == own or (before.target is None and before.before)):
        before = before.before
    return before


def _entry(key: int, stored: Visit, *, is_news: bool = True) -> Entry:
    return Entry(key, stored, records.visit_keys(stored), None, is_news)


def _packed(visit: Visit, at: int, before: Visit | None, *, is_own: bool | None = None) -> Visit:
    """Return a visit as it is stored: without its document, and without the URL if it is the document's own."""
    url = "" if (_is_own(visit) if is_own is None else is_own) else visit.url
    return _with(visit, url, None, at, before)


def _with(visit: Visit, url: str, document: Signature | None, at: int, before: Visit | None) -> Visit:
    """Return a visit with other values, in a fifth of the time that `replace` takes."""
    return Visit(
        url, document, visit.is_copy, visit.seen, visit.size, visit.evidence, visit.loose, visit.name, visit.target,
        at, before,
    )  # fmt: skip


def _is_own(visit: Visit) -> bool:
    return visit.signature is not None and not visit.is_copy and visit.url == visit.signature.url
