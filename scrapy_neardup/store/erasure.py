"""Forget selected records, all rows of a run, or the rows that a dead run wrote after it was last closed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ..hosts.relations import Row as Trial
from ..progress import watched
from ..signature import Signature, Visit
from ..text.shapes import named_site, site
from ..text.urls import canonical_url, host
from .interface import DOCUMENT, HOST, RUN, Entry, Forgotten, HostNews, Row, Selection, StoreError
from .keys import place_of, visit_key
from .runs import Run

if TYPE_CHECKING:
    from .store import Store

_WITH_PORT = re.compile(r"(?:\[[^]]*\]|[^:]*):\d+")


def forget(store: Store, what: Selection) -> Forgotten:
    """Forget a selection. Return the numbers of forgotten documents and URLs.

    All visits of a forgotten document are forgotten too, and evidence on mirrors that names the selected URL or host.
    """
    if what.run is not None:
        return _forget_run(store, what.run)
    documents, urls, others = _selected(store, what)
    trials = _trials(store, what)
    for signature in documents:
        store.withdraw(signature)
    for url in others.keys() - urls:
        store.unlink(others[url])
    store.learn(store.hosts.retract(trials))
    if what.host is not None:
        store.forget_counters(
            [(name, fact) for name, fact in store.counters.known() if is_of(what.host, f"http://{name}/")]
        )
    return Forgotten(len(documents), len(urls | others.keys()))


def selected(store: Store, what: Selection) -> Forgotten:
    """Return the numbers that `forget` would return, and forget nothing. Raise StoreError for an unknown run."""
    if what.run is not None:
        return _selected_of_run(store, what.run)
    documents, urls, others = _selected(store, what)
    return Forgotten(len(documents), len(urls | others.keys()))


def _selected(store: Store, what: Selection) -> tuple[list[Signature], set[str], dict[str, str]]:
    """Return selected documents, the canonical URLs of all their visits, and the selected URLs by canonical URL."""
    documents = list(_documents(store, what))
    urls = {canonical_url(visit.url) for signature in documents for visit in store.visits(signature) if visit.url}
    return documents, urls, {canonical_url(visit.url): visit.url for visit in _visits(store, what) if visit.url}


def _documents(store: Store, what: Selection) -> Iterable[Signature]:
    if what.url is not None:
        link = store.resolve(what.url)
        own = [link.signature] if link and link.signature and not link.is_copy else []
        return [*own, *(each for each in store.documents.of_page(what.url) if each not in own)]
    if what.host is not None:
        return [s for s in watched(store.signatures(), "docs", len(store)) if is_of(what.host, s.url)]
    return _seen_before(store, what.before) if what.before is not None else []


def _seen_before(store: Store, when: float) -> Iterator[Signature]:
    """Yield the documents that were last seen before a time."""
    alive = {visit.target for visit in watched(store.documents.visits.all(), "visits") if visit.seen >= when}
    for signature in watched(store.signatures(), "docs", len(store)):
        if signature.first_seen < when and signature.id not in alive:
            yield signature


def _visits(store: Store, what: Selection) -> Iterable[Visit]:
    if what.url is not None:
        return filter(None, [store.resolve(what.url)])
    if what.host is not None:
        return [visit for visit in watched(store.all_visits(), "visits") if is_of(what.host, visit.url)]
    return []


def _trials(store: Store, what: Selection) -> list[Trial]:
    if what.url is not None:
        return store.hosts.known(canonical_url(what.url))
    if what.host is not None:
        return [row for row in store.hosts.dump() if any(is_of(what.host, f"http://{name}/") for name in row.sites)]
    return []


def is_of(name: str, url: str | None) -> bool:
    """Return whether a URL is on the host `name`. If `name` includes a port, the port must be the same too."""
    if not url:
        return False
    if _WITH_PORT.fullmatch(name):
        return site(canonical_url(url)) in (name.lower(), named_site(name))
    # An IPv6 address without brackets is invalid in a URL, but users may give one.
    return (host(url) or None) in (name.lower(), host(f"http://{name}"))


# Runs


def end(store: Store, run: Run, *, forget: bool) -> None:
    """End a dead run. This process must hold its lock. With `forget`, delete rows written after it was last closed."""
    last = _last(store, run)
    if forget:
        erase(store, run.id, after=run.sealed)
    store.session.end(run, last, forget=forget)


def _forget_run(store: Store, name: str) -> Forgotten:
    """Forget all rows of a run. Raise StoreError if the run is unknown or alive."""
    _check_known(store, name)
    if name == store.run or not store.backend.hold_run(name):
        raise StoreError(f"run {name!r} of store {store.backend.name!r} is alive; end it first")
    try:
        store.session.update_runs(store.backend.get([f"{RUN}/{name}"]))  # it may have written more
        run, documents, urls = store.session.runs[name], store.session.documents, store.session.urls
        last = _last(store, run)
        erase(store, name)
        store.session.save(run.without(last))
        store.flush()
        return Forgotten(documents - store.session.documents, urls - store.session.urls)
    finally:
        store.backend.release_run(name)


def _selected_of_run(store: Store, name: str) -> Forgotten:
    _check_known(store, name)
    documents = {row.key[9:]: store.documents.held(row) for row in _rows(store, DOCUMENT, name, 0)}
    wrote = store.documents.visits.of_run(name)
    back = {key: store.documents.visits.restored(visit) for key, visit in wrote.items() if not visit.name}
    urls = {visit_key(visit.url) for each in documents.values() for visit in store.visits(each) if visit.url}
    gone = {key for key, before in back.items() if before is None or before.target in documents}
    return Forgotten(len(documents), len(urls - back.keys() | gone))


def _check_known(store: Store, name: str) -> None:
    if name not in store.session.runs:
        where = f"store {store.backend.name!r}"
        raise StoreError(f"{where} has no run {name!r}; `scrapy neardup runs` lists those it has")


def erase(store: Store, run: str, *, after: int = 0) -> None:
    """Undo what a run wrote with numbers above `after`: delete its documents, and put back what URLs had before."""
    for key, visit in store.documents.visits.of_run(run, after).items():
        store.documents.visits.undo(key, visit)
    for row in _rows(store, DOCUMENT, run, after):
        store.withdraw(store.documents.held(row))
    for row in _rows(store, HOST, run, after):
        news = store.session.load(row)
        assert isinstance(news, HostNews)
        store.learn(store.hosts.retract(news.trials))
        store.backend.write([], [Entry(row.key, news)])


def _rows(store: Store, kind: str, run: str, after: int) -> Iterator[Row]:
    return (row for row in store.backend.scan(kind, run) if place_of(row.key)[1] > after)


def _last(store: Store, run: Run) -> int:
    """Return the highest row number of a run."""
    rows = (row.key for kind in (DOCUMENT, HOST) for row in store.backend.scan(kind, run.id))
    visits = (visit.at for visit in store.documents.visits.of_run(run.id).values())
    return max((place_of(each)[1] for each in chain(rows, visits)), default=run.sealed)
