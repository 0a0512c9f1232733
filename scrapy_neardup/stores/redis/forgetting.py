"""What takes a look at all that a server holds: to forget a run, or what was not seen since a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...signature import Link, Signature
from ...watching import watched
from ..base import Forgotten, StoreError
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
    shown, run = store.server.name, store.runs_known.get(name)
    if run is None:
        raise StoreError(f"store {shown!r} has no run {name!r}; `scrapy neardup runs` lists those it has")
    if store.is_alive(name):
        raise StoreError(f"run {name!r} of store {shown!r} is alive; end it first")
    store.documents.learn_runs()
    number = next((number for number, known in store.documents.runs.items() if known == name), 0)
    documents = [each for each in watched(store.signatures(), "docs", len(store)) if each.key and each.key[0] == name]
    urls = {link.digest for each in documents for link in store.links(each)}
    for each in documents:
        store.withdraw(each)
    others = [link for link in store.documents.packed_links() if origin_of(link)[0] == number]
    for packed in others:
        store.record(Link("", None, False, seen_of(packed), digest=LINK.unpack_from(packed)[0], void=True))
    store.learn(store.hosts.retract(store.learned.of(number)))
    store.runs_known.save(run.without(run.sealed + 1))
    store.flush()
    return Forgotten(len(documents), len(urls) + len(others))
