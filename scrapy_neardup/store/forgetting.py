"""Forgetting: which documents, URLs and evidence a `Selection` means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..mirrors.relations import Row as Trial
from ..progress import watched
from ..signature import Link, Signature
from ..text.shapes import named_site, site
from ..text.urls import canonical_url, host
from .interface import Forgotten, Selection

if TYPE_CHECKING:
    from .store import Store

_WITH_PORT = re.compile(r"(?:\[[^]]*\]|[^:]*):\d+")


def forget(store: Store, what: Selection) -> Forgotten:
    """Forget documents, with all that leads to them, other URLs, and evidence on hosts."""
    documents = list(_documents(store, what))
    urls = {canonical_url(link.url) for signature in documents for link in store.links(signature)}
    others = {canonical_url(link.url): link.url for link in _links(store, what)}
    trials = _trials(store, what)
    for signature in documents:
        store.withdraw(signature)
    for url in others.keys() - urls:
        store.unlink(others[url])
    store.learn(store.hosts.retract(trials))
    return Forgotten(len(documents), len(urls | others.keys()))


def _documents(store: Store, what: Selection) -> Iterable[Signature]:
    if what.url is not None:
        link = store.resolve(what.url)
        return [link.signature] if link and link.signature and not link.mirror else []
    if what.host is not None:
        return [s for s in watched(store.signatures(), "docs", len(store)) if is_of(what.host, s.url)]
    return _seen_before(store, what.before) if what.before is not None else []


def _seen_before(store: Store, when: float) -> Iterator[Signature]:
    """Yield the documents that no URL gave since then."""
    alive = {link.target for link in watched(store.documents.links.rows(), "links") if link.seen >= when}
    for signature in watched(store.signatures(), "docs", len(store)):
        own = signature.own.seen if signature.own else 0.0
        if max(signature.first_seen, own) < when and signature.id not in alive:
            yield signature


def _links(store: Store, what: Selection) -> Iterable[Link]:
    if what.url is not None:
        return filter(None, [store.resolve(what.url)])
    if what.host is not None:
        return [link for link in watched(store.all_links(), "links") if is_of(what.host, link.url)]
    return []


def _trials(store: Store, what: Selection) -> list[Trial]:
    if what.url is not None:
        return store.hosts.known(canonical_url(what.url))
    if what.host is not None:
        return [row for row in store.hosts.dump() if any(is_of(what.host, f"http://{name}/") for name in row.sites)]
    return []


def is_of(name: str, url: str | None) -> bool:
    """Return whether a URL is of a host, which is named with its port or without, however it is written."""
    if not url:
        return False
    if _WITH_PORT.fullmatch(name):
        return site(canonical_url(url)) in (name.lower(), named_site(name))
    # An address of version 6 without brackets is no host of a URL, but may be named.
    return (host(url) or None) in (name.lower(), host(f"http://{name}"))
