"""What is known of a URL before it is fetched, and after that failed. No Scrapy, no I/O of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from urllib.parse import urlsplit

import mmh3

from .config import Config
from .signature import Link
from .stores import Store
from .text.urls import canonical_url, host


class Mirrors:
    """Knows which URLs need not be fetched, and where else the content of a dead one lies."""

    def __init__(
        self,
        store: Store,
        *,
        ttl: float,
        recheck: float = 0.0,
        skip_mirrors: bool = True,
        skip_revisits: bool = False,
        trusted_hosts: Collection[str] = (),
        hosts: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._recheck = recheck
        self._skip_mirrors = skip_mirrors
        self._skip_revisits = skip_revisits
        self._trusted = frozenset(host(f"//{name}") for name in trusted_hosts)
        self._hosts = {_netloc(f"//{mirror}"): canonical for mirror, canonical in (hosts or {}).items()}
        self._clock = clock

    @classmethod
    def from_config(cls, store: Store, config: Config) -> Mirrors:
        return cls(
            store,
            ttl=config.mirror_ttl,
            recheck=config.recheck,
            skip_mirrors=config.skip_mirrors,
            skip_revisits=config.revisit == "skip",
            trusted_hosts=config.trusted_hosts,
            hosts=config.mirror_hosts,
        )

    def held_by(self, url: str) -> Link | None:
        """Return the link that says that a URL's content is held, so that it need not be fetched; else None."""
        link = self._store.resolve(url)
        if link is None:
            return self._ruled(url) if self._skip_mirrors else None
        if link.signature is None or not link.firm or self._clock() - link.seen > self._ttl:
            return None
        if not link.mirror:
            return link if self._skip_revisits else None
        return link if self._skip_mirrors and not self._is_trusted(url, link.signature.url) else None

    def rechecks(self, url: str) -> bool:
        """Say whether this URL belongs to the share that is fetched all the same; another share in each run."""
        share = mmh3.hash64(canonical_url(url) + self._store.run, signed=False)[0] / 2**64
        return share < self._recheck

    def alternatives(self, url: str, tried: Collection[str] = ()) -> Iterator[str]:
        """Yield where else the content of a URL lies, the canonical first, then the mirrors last seen first."""
        seen = {canonical_url(known) for known in (url, *tried)}
        for other in self._copies(url):
            if canonical_url(other) not in seen and host(other) and other.startswith(("http://", "https://")):
                seen.add(canonical_url(other))
                yield other

    def _copies(self, url: str) -> Iterator[str]:
        link = self._store.resolve(url)
        if link and link.signature:
            if link.signature.url:
                yield link.signature.url
            links = self._store.links(link.signature)
            yield from (other.url for other in sorted(links, key=lambda other: (other.mirror, -other.seen)))
        if counterpart := self._counterpart(url):
            yield counterpart

    def _ruled(self, url: str) -> Link | None:
        """Apply the user's rules to a URL of which nothing is known: is its counterpart held?"""
        counterpart = self._counterpart(url)
        link = self._store.resolve(counterpart) if counterpart else None
        return link if link and link.signature and not self._is_trusted(url, counterpart) else None

    def _counterpart(self, url: str) -> str | None:
        parts = urlsplit(url)
        for name in (_netloc(url), host(url)):
            if canonical := self._hosts.get(name):
                return parts._replace(netloc=canonical).geturl()
        return None

    def _is_trusted(self, url: str, other: str | None) -> bool:
        return host(url) in self._trusted and host(url) != host(other or "")


def _netloc(url: str) -> str:
    port = urlsplit(url).netloc.rpartition("@")[2].rpartition(":")[2]
    return f"{host(url)}:{port}" if port.isdecimal() else host(url)
