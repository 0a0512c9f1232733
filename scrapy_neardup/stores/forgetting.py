"""What of a store is meant by a `Selection`, and forgetting it. Runs are the business of stores on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from ..index.hosts import Hosts
from ..index.relations import Row
from ..signature import Link, Signature
from ..text.shapes import named_site, site
from ..text.urls import canonical_url, host
from ..watching import watched
from .base import Forgotten, Selection

_WITH_PORT = re.compile(r"(?:\[[^]]*\]|[^:]*):\d+")


class Forgetting(Protocol):
    """What it takes to forget."""

    hosts: Hosts

    def __len__(self) -> int: ...
    def signatures(self) -> Iterable[Signature]: ...
    def seen_before(self, when: float) -> Iterable[Signature]: ...
    def links(self, signature: Signature) -> Iterable[Link]: ...
    def all_links(self) -> Iterable[Link]: ...
    def resolve(self, url: str) -> Link | None: ...
    def record(self, link: Link) -> None: ...
    def withdraw(self, signature: Signature) -> None: ...
    def learn(self, trials: Iterable[Row]) -> None: ...


def forget(store: Forgetting, what: Selection) -> Forgotten:
    """Forget documents, with all that leads to them, other URLs, and evidence on hosts."""
    documents = list(_documents(store, what))
    urls = {canonical_url(link.url) for signature in documents for link in store.links(signature)}
    others = [link for link in _links(store, what) if canonical_url(link.url) not in urls]
    trials = _trials(store.hosts, what)
    for signature in documents:
        store.withdraw(signature)
    for link in others:
        store.record(Link(link.url, None, False, link.seen, void=True))
    store.learn(store.hosts.retract(trials))
    return Forgotten(len(documents), len(urls) + len(others))


def _documents(store: Forgetting, what: Selection) -> Iterable[Signature]:
    if what.url is not None:
        link = store.resolve(what.url)
        return [link.signature] if link and link.signature and not link.mirror else []
    if what.host is not None:
        return [s for s in watched(store.signatures(), "docs", len(store)) if is_of(what.host, s.url)]
    return store.seen_before(what.before) if what.before is not None else []


def _links(store: Forgetting, what: Selection) -> Iterable[Link]:
    if what.url is not None:
        return filter(None, [store.resolve(what.url)])
    if what.host is not None:
        return [link for link in watched(store.all_links(), "links") if is_of(what.host, link.url)]
    return []


def _trials(hosts: Hosts, what: Selection) -> list[Row]:
    if what.url is not None:
        return hosts.known(canonical_url(what.url))
    if what.host is not None:
        return [row for row in hosts.dump() if any(is_of(what.host, f"http://{name}/") for name in row.sites)]
    return []


def is_of(name: str, url: str | None) -> bool:
    """Say whether a URL is of a host, which is named with its port or without, however it is written."""
    if not url:
        return False
    if _WITH_PORT.fullmatch(name):
        return site(canonical_url(url)) in (name.lower(), named_site(name))
    # An address of version 6 without brackets is no host of a URL, but may be named.
    return (host(url) or None) in (name.lower(), host(f"http://{name}"))
