"""The changes of a site that a run found, read from the rows of the store.

The rows hold the last state of each URL. So a URL that changed in several runs is listed under the last of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..matching.evidence import compare
from ..mirrors.deliveries import SCHEME
from ..settings import Config
from ..signature import Link, Signature
from ..store import Store
from ..store.keys import id_of, place_of
from ..store.runs import Run

KINDS = ("new", "changed", "back", "moved", "gone")


class Change(NamedTuple):
    """The change of one URL."""

    kind: str
    """`new`: a new URL with new content. `changed`: other content than at the visit before. `back`: content that the
    URL had before that. `moved`: known content at a new URL, while its own URL was not seen. `gone`: content of the run
    before that no URL has now."""
    url: str
    former_url: str | None = None
    """The own URL of moved content."""
    resemblance: float | None = None
    """The resemblance of changed content to the content before; None if that is no longer held."""


def last_crawl(store: Store) -> Run | None:
    """Return the last run with judged documents, or None."""
    return next(filter(_has_judged, reversed(store.runs())), None)


def _has_judged(run: Run) -> bool:
    return bool(run.sealed or run.documents or run.stats.get("documents"))


def changes(store: Store, run: Run, config: Config) -> Iterator[Change]:
    """Yield the changes that a run with these settings found, in no order."""
    # A page that the run skips since it was fetched lately is not gone.
    times = _Times(store, run, patience=config.mirror_ttl if config.revisit == "skip" else 0.0)
    fresh = list(times.read_links())
    for document in store.signatures():
        if document.url and (change := _of_document(store, times, document, document.url)):
            yield change
    yield from _of_links(store, times, fresh)


def counted(changes: Iterable[Change]) -> dict[str, int]:
    """Return the number of changes by kind."""
    counts = Counter(change.kind for change in changes)
    return {kind: counts[kind] for kind in KINDS}


def in_words(counts: Mapping[str, int]) -> str:
    """Return numbers of changes as a phrase, such as "3 new, 1 gone"."""
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts.get(kind)) or "no changes"


def _of_document(store: Store, times: _Times, document: Signature, url: str) -> Change | None:
    if not times.is_current(document):
        return None
    if not times.is_new(document):
        return Change("gone", url) if times.is_gone(document) else None
    before = document.own.before if document.own else None
    return Change("new", url) if before is None else _changed(store, url, document, before)


def _of_links(store: Store, times: _Times, fresh: Iterable[Link]) -> Iterator[Change]:
    """Yield the changes that the links of a run show: URLs with content that was held before the run."""
    moved = set()
    for link in fresh:
        document = store.document(link.target or "")
        if document is None or link.before == link.target:
            continue
        if link.is_copy and link.before is not None:
            yield _changed(store, link.url, document, link.before)
        elif not link.is_copy and link.before is not None:
            if not document.own and not times.is_new(document):  # otherwise it is a revisit
                yield Change("back", link.url)
        elif link.is_copy and document.url and document.id not in moved and times.is_left(document):
            moved.add(document.id)
            yield Change("moved", link.url, document.url)


def _changed(store: Store, url: str, document: Signature, before: str) -> Change:
    earlier = store.document(before)
    found = round(compare(document.sketch, earlier.sketch).resemblance, 4) if earlier else None
    return Change("changed", url, resemblance=found)


class _Times:
    """The times at which the documents of a store were last seen, beside those of a run."""

    def __init__(self, store: Store, run: Run, patience: float) -> None:
        self._store = store
        self._run = run
        self._writers = {each.id: each.writer for each in store.runs()}
        earlier = [each.started for each in store.runs() if _has_judged(each) and each.writer == run.writer]
        before = max((started for started in earlier if started < run.started), default=float("inf"))
        self._before, self._started = before - patience, run.started - patience
        self._seen: dict[str, float] = defaultdict(float)
        """By the id of the document, over all URLs."""
        self._own_seen: dict[str, float] = defaultdict(float)
        """By the id of the document, over URLs that are no copies."""

    def read_links(self) -> Iterator[Link]:
        """Read all links of the store. Yield those that the run added."""
        for link in self._store.documents.links.rows():
            if link.target is None:
                continue
            self._seen[link.target] = max(self._seen[link.target], link.seen)
            if link.url.startswith(SCHEME):
                continue
            if not link.is_copy:
                self._own_seen[link.target] = max(self._own_seen[link.target], link.seen)
            if link.url and place_of(id_of(link.key))[0] == self._run.id:
                yield link

    def is_new(self, document: Signature) -> bool:
        """Return whether the run added a document."""
        return self._store.run_of(document) == self._run.id

    def is_current(self, document: Signature) -> bool:
        """Return whether a URL that is no copy still has the content of a document."""
        return document.own is not None or document.id in self._own_seen

    def is_gone(self, document: Signature) -> bool:
        """Return whether a document was last seen in the run before, at any URL."""
        last = max(self._last_at_own_urls(document), self._seen.get(document.id, 0.0))
        return self._is_of_spider(document) and self._before <= last < self._started

    def is_left(self, document: Signature) -> bool:
        """Return whether the own URLs of a document were not seen in the run."""
        return self._is_of_spider(document) and self._last_at_own_urls(document) < self._started

    def _is_of_spider(self, document: Signature) -> bool:
        return self._writers.get(self._store.run_of(document)) == self._run.writer

    def _last_at_own_urls(self, document: Signature) -> float:
        return max(document.own.seen if document.own else 0.0, self._own_seen.get(document.id, 0.0))
