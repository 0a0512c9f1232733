"""What takes a look at all that a server holds: to forget a run, or what was not seen since a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...signature import Link, Signature
from ...watching import watched
from ..base import Forgotten, StoreError
from ..runs import Run
from .packing import LINK, origin_of, seen_of

if TYPE_CHECKING:
    from .store import RedisStore


def seen_before(store: RedisStore, when: float) -> Iterator[Signature]:
    """Yield the documents that no URL gave since then."""
    seen: dict[int, float] = {}
    for link in watched(store.documents.all_links(), "links"):
        if link.signature and link.signature.number is not None:
            number = link.signature.number
            seen[number] = max(link.seen, seen.get(number, link.seen))
    for signature in watched(store.signatures(), "docs", len(store)):
        if max(signature.first_seen, seen.get(signature.number or 0, signature.first_seen)) < when:
            yield signature


def forget_run(store: RedisStore, name: str) -> Forgotten:
    """Forget all that a run committed; raise StoreError for one that is not known, or alive."""
    shown = store.server.name
    if store.runs_known.get(name) is None:
        raise StoreError(f"store {shown!r} has no run {name!r}; `scrapy neardup runs` lists those it has")
    alive = StoreError(f"run {name!r} of store {shown!r} is alive; end it first")
    if name == store.run:
        raise alive
    with store.runs_known.held(name) as run:
        if run is None:
            raise alive
        return _forget_held(store, run, store.runs_known.held_number)


def _forget_held(store: RedisStore, run: Run, number: int) -> Forgotten:
    """Forget a run that is held. All it has is listed first: should others get hold of it, what they add stays."""
    documents = [each for each in watched(store.signatures(), "docs", len(store)) if each.key and each.key[0] == run.id]
    urls = {link.digest for each in documents for link in store.links(each)}
    found = ((LINK.unpack_from(link)[0], link) for link in store.documents.packed_links())
    others = {url: seen_of(link) for url, link in found if url not in urls and origin_of(link)[0] == number}
    trials = store.learned.of(number)
    store.runs_known.check_held()
    for each in documents:
        store.withdraw(each)
    for url, seen in others.items():
        store.record(Link("", None, False, seen, digest=url, void=True))
    store.learn(store.hosts.retract(trials))
    store.flush()
    store.runs_known.let_go(run.without(run.sealed + 1))
    return Forgotten(len(documents), len(urls) + len(others))
