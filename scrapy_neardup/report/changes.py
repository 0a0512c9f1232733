"""Find the changes of a site that a run saw, from the rows of the store.

The rows hold the last visit of each URL, with its document and the document that it returned before. So a URL that
changed in several runs is listed under the last of them. For each document, the last visit before the run shows whether
it has moved or is gone. URLs that may return other content at each visit, such as temporary redirects, are left out,
unless their document is that of an item that a list page gave with a URL of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from ..matching.matcher import compare
from ..signature import Signature, Visit
from ..store import Store
from ..store.records import Run, run_of
from ..store.visits import former
from ..verdict import named

SEEN = ("new", "changed")  # the kinds that any crawl can find
KINDS = (*SEEN, "moved", "gone")
FULL = "full"  # the mark, in the stats of a run, of a crawl that finished and skipped no page because of its age
NOT_FULL = "Moved and gone pages are unknown, since the crawl may have left out pages"
_LIMITED = ("requests/stopped", "store/unjudged")  # a run with such stats missed pages


class Change(NamedTuple):
    """The change of one URL."""

    kind: str
    """`new`: a new URL with new content. `changed`: other content than at the previous visit. `moved`: held
    content at a new URL, if no earlier URL was seen with it. `gone`: content of the previous crawl that no URL has
    now."""
    url: str
    former_url: str | None = None
    """The last URL of moved content."""
    resemblance: float | None = None
    """The resemblance of changed content to the previous content; None if the previous content is no longer held."""


def last_crawl(store: Store) -> Run | None:
    """Return the last run that is not one of a command; None if there is none."""
    return next((run for run in reversed(store.runs()) if not run.writer.startswith("neardup ")), None)


def kinds_of(run: Run) -> tuple[str, ...]:
    """Return the kinds of changes that a run can find. Only a full crawl finds what moved and what is gone."""
    is_full = run.stats.get(FULL) and not any(run.stats.get(name) for name in _LIMITED)
    return KINDS if is_full else SEEN


def changes(store: Store, run: Run) -> Iterator[Change]:
    """Yield the changes that a run found, in no order."""
    visits, kinds = _Visits(store, run), kinds_of(run)
    for visit in visits.changed:
        if before := former(visit):
            yield _changed(store, visit, before.target or "")
        elif visit.target in visits.own and run_of(visit.target or "") == run.id and not visit.is_copy:
            yield Change("new", visit.url)
    if "moved" in kinds:
        yield from visits.moved()
    for item in visits.new_items:
        yield Change("new", item.name)
    if "gone" in kinds:
        yield from visits.gone(_previous(store, run))


def _previous(store: Store, run: Run) -> float:
    """Return the start of the last full crawl of the same spider before a run; infinity if there is none."""
    full = [each.started for each in store.runs() if each.writer == run.writer and "gone" in kinds_of(each)]
    return max((started for started in full if started < run.started), default=float("inf"))


def _changed(store: Store, visit: Visit, before: str) -> Change:
    """Return the change of a URL that returned the document with the id `before` at its previous visit."""
    document, earlier = store.document(visit.target or ""), store.document(before)
    found = compare(document.sketch, earlier.sketch).resemblance if document and earlier else None
    return Change("changed", visit.url, resemblance=found and round(found, 4))


def counted(changes: Iterable[Change], kinds: Iterable[str]) -> dict[str, int]:
    """Return the number of changes of each of these kinds."""
    counts = Counter(change.kind for change in changes)
    return {kind: counts[kind] for kind in kinds}


def in_words(counts: Mapping[str, int]) -> str:
    """Return numbers of changes as a phrase, such as "3 new, 1 gone"."""
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts.get(kind)) or "no changes"


class _Item(NamedTuple):
    """One of several items of a page, which has no visit of its own."""

    id: str
    name: str
    seen: float
    """The last delivery before the run."""


class _Visits:
    """The last visits of all URLs, in a run or before it."""

    def __init__(self, store: Store, run: Run) -> None:
        self.changed: list[Visit] = []
        """The URLs that the run saw for the first time, or with another document than before."""
        self.delivered: set[str] = set()
        """The ids of the documents that any URL returned since the run began."""
        self.kept: set[str] = set()
        """The ids of those that a URL returned before too."""
        self.earlier: dict[str, Visit] = {}
        """The last visit by this spider before the run, by the id of the document."""
        self.own: set[str] = set()
        """The ids of the documents that their own URL returned last."""
        self.new_items: list[_Item] = []
        """The items of pages with several items that the run added."""
        self._items: list[_Item] = []
        """Those that earlier runs of this spider added."""
        self._delivered_before: dict[str, float] = {}
        self._run, self._store = run, store
        self._writers = {each.id: each.writer for each in store.runs()}
        for visit in store.urls.all():
            if visit.signature is not None:
                self._read(replace(visit, signature=None), visit.signature)
        for document in store.signatures():
            if document.label and document.id not in self.own:
                self._read_item(document)

    def _read_item(self, document: Signature) -> None:
        item = _Item(document.id, named(document.url, document.label), document.first_seen)
        added_by = run_of(document.id)
        if added_by == self._run.id:
            self.new_items.append(item)
        elif self._writers.get(added_by) == self._run.writer:
            seen = max(item.seen, self._delivered_before.get(item.id, 0.0))
            self._items.append(item._replace(seen=seen))

    def _read(self, visit: Visit, document: Signature) -> None:
        id = document.id
        if is_seen := visit.seen >= self._run.started:
            self.delivered.add(id)
        else:
            self._delivered_before[id] = max(visit.seen, self._delivered_before.get(id, 0.0))
        if visit.name or not (visit.firm or visit.url == document.url or self._is_listed(document)):
            return
        if visit.url == document.url and not visit.is_copy:
            self.own.add(id)
        added_by, before = run_of(visit.at), former(visit)
        if is_seen and added_by == self._run.id and not (before and before.target == id):
            self.changed.append(visit)
        elif is_seen:
            self.kept.add(id)
        elif self._writers.get(added_by) == self._run.writer:
            self.earlier[id] = max(visit, self.earlier.get(id, visit), key=attrgetter("seen"))

    def _is_listed(self, document: Signature) -> bool:
        """Return whether a document is of an item that another page gave, with a URL of its own."""
        own = self._store.resolve(document.url) if document.url else None
        return own is not None and not own.firm and own.signature is document

    def moved(self) -> Iterator[Change]:
        """Yield the moved documents, each with the first of its new URLs.

        A former URL that is known as a copy may be among the requests that the run skipped. Then nothing is known.
        """
        settled = set(self.kept)
        for visit in sorted(self.changed, key=attrgetter("seen")):
            id = visit.target or ""
            if former(visit) is None and id in self.earlier and id not in settled:
                settled.add(id)
                last = self.earlier[id]
                if not (last.is_copy and self._run.stats.get("requests/skipped")):
                    yield Change("moved", visit.url, last.url)

    def gone(self, since: float) -> Iterator[Change]:
        """Yield the documents that were last seen after the time `since`, and before the run."""
        for id, last in self.earlier.items():
            if last.seen >= since and id not in self.delivered:
                yield Change("gone", last.url)
        for item in self._items:
            if item.seen >= since and item.id not in self.delivered and item.id not in self.earlier:
                yield Change("gone", item.name)
