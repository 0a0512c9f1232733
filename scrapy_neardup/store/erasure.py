"""Erasing what a run wrote: of one that died, or that is to be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .interface import DOCUMENT, HOST, LINK, RUN, Entry, Forgotten, HostNews, Row, StoreError
from .records import place_of
from .runs import Run

if TYPE_CHECKING:
    from .store import Store


def end(store: Store, run: Run, *, forget: bool) -> None:
    """End a run that died, which this process holds; `forget` what it wrote since it was last closed."""
    last = _last(store, run)
    if forget:
        erase(store, run.id, after=run.sealed)
    store.session.end(run, last, forget=forget)


def forget_run(store: Store, name: str) -> Forgotten:
    """Forget all that a run wrote. Raise StoreError for one that is not known, or alive."""
    where = f"store {store.backend.name!r}"
    if name == store.run or (name in store.session.runs and not store.backend.hold_run(name)):
        raise StoreError(f"run {name!r} of {where} is alive; end it first")
    if name not in store.session.runs:
        raise StoreError(f"{where} has no run {name!r}; `scrapy neardup runs` lists those it has")
    try:
        store.session.take_in(store.backend.get([f"{RUN}/{name}"]))  # it may have gone on since it was read
        run, documents, urls = store.session.runs[name], store.session.documents, store.session.urls
        last = _last(store, run)
        erase(store, name)
        store.session.save(run.without(last))
        store.flush()
        return Forgotten(documents - store.session.documents, urls - store.session.urls)
    finally:
        store.backend.release_run(name)


def erase(store: Store, run: str, *, after: int = 0) -> None:
    """Delete a run's rows with a higher number than that, and what leads to its documents."""
    for row in _rows(store, DOCUMENT, run, after):
        store.withdraw(store.documents.held(row))
    for row in _rows(store, LINK, run, after):
        store.documents.links.erase(row)
    for row in _rows(store, HOST, run, after):
        news = store.session.load(row)
        assert isinstance(news, HostNews)
        store.learn(store.hosts.retract(news.trials))
        store.backend.write([], [Entry(row.key, news)])


def _rows(store: Store, kind: str, run: str, after: int) -> Iterator[Row]:
    return (row for row in store.backend.scan(kind, run) if place_of(row.key)[1] > after)


def _last(store: Store, run: Run) -> int:
    """Return the highest number of a run's rows."""
    rows = (row for kind in (DOCUMENT, LINK, HOST) for row in store.backend.scan(kind, run.id))
    return max((place_of(row.key)[1] for row in rows), default=run.sealed)
