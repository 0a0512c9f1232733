"""Advise whether to skip a URL with held content, and find other URLs for a dead link. No Scrapy.

A document is *delivered* when a URL returns it. Deliveries are recorded, since a URL may be skipped only if another URL
delivers the document in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakSet

from .fingerprints.hashes import hash_text
from .hosts import SHORT, Counterpart
from .matching.matcher import SCOPES, Preference
from .matching.reviews import Reviews
from .settings import Config
from .signature import Signature, Visit
from .text.urls import canonical_url, host, named_site, parts_of, site
from .verdict import OTHER_LAYOUT

if TYPE_CHECKING:
    from .store import Store

MAX_COPIES = 1000  # the maximum number of URLs of one document to consider
MANY = 8  # a text at this many paths, however long, belongs to no page: it may be a login wall
DAY = 86_400.0
AHEAD = 60.0  # seconds by which the clock of another machine may be ahead
SKIP, REDIRECT, STOP = "skip", "redirect", "stop"


class Advice(NamedTuple):
    """Advice on a URL that need not be fetched."""

    action: str
    """SKIP: `url` has the content. REDIRECT: fetch `url` instead. STOP: send no request."""
    url: str | None
    """The URL that has the content, or should have it."""
    size: int = 0
    """Bytes of the URL's last response; 0 if unknown."""
    known_by: str = ""
    """The source of the advice, in words for the log; "" if the URL itself was fetched before."""
    rule: Counterpart | None = None
    document: Signature | None = None
    """The document that another URL must still deliver in this run, so that the skip holds; None if there is none."""


def is_in_share(url: str, run: str, share: float) -> bool:
    """Return whether a URL is drawn in a run. Each run draws other URLs: a `share` of all, from 0 to 1."""
    return share > 0 and hash_text(canonical_url(url) + run) / 2**64 < share


class Alternative(NamedTuple):
    """Another URL with the content of a dead URL."""

    url: str
    link: Visit | None  # the visit of the URL; None if it was never fetched
    known_by: str  # `original`, `copy`, `rule`, or `setting` for NEARDUP_MIRROR_HOSTS
    confidence: float | None = None  # the confidence of the rule; None without a learned rule


class Deliveries:
    """Records deliveries, and decides which documents were delivered in this run.

    A document that was added since the run began was delivered in the run. For an older document, the time is in the
    visit of its own URL. If another URL delivered it later, the time is in a visit with a name.
    """

    def __init__(self, store: Store, started: float) -> None:
        """`started` is the start of the run. Deliveries in its lost periods (`Run.lost`) do not count."""
        self._store = store
        self.started = started
        self._lost = next((run.lost for run in store.runs() if run.id == store.run), ())
        self.passing: WeakSet[Signature] = WeakSet()  # they count as delivered, though no URL may return them

    def is_delivered(self, document: Signature, *, by_own_host: bool = False) -> bool:
        """Return whether any URL returned a document in this run; with `by_own_host`, a URL of its own host."""
        if document in self.passing or self.is_of_run(document.first_seen):
            return True
        return self.is_of_run(self.last(document, by_own_host=by_own_host))

    def is_of_run(self, seen: float) -> bool:
        """Return whether a visit at the time `seen` belongs to this run.

        Visits from a session of the run that was killed do not count, since their items may not have reached a feed.
        Visits in the future do not count either: another machine's clock was ahead.
        """
        is_now = self.started <= seen <= time.time() + AHEAD
        return is_now and not any(first < seen < last for first, last in self._lost)

    def last(self, document: Signature, *, by_own_host: bool = False) -> float:
        """Return the time of the last delivery of a document, in seconds since the epoch; 0 if unknown."""
        own = self._seen(document.url, document)
        return own if self.is_of_run(own) else max(own, self._seen(_name(document, by_own_host=by_own_host), document))

    def is_deserted(self, document: Signature) -> bool:
        """Return whether the last delivery of a document was in an earlier run, by another URL than its own."""
        is_now = self.is_delivered(document)
        return not is_now and self._seen(_name(document), document) > self._seen(document.url, document)

    def is_back(self, document: Signature) -> bool:
        """Return whether the own URL of a document returned the document in this run."""
        return self.is_of_run(self._seen(document.url, document))

    def record(self, document: Signature, *, by_own_host: bool = False) -> None:
        """Record a delivery of a document, once a run; with `by_own_host`, also that its own host delivered it."""
        for is_own in (False, True) if by_own_host else (False,):
            if not self.is_delivered(document, by_own_host=is_own):
                name = _name(document, by_own_host=is_own)
                self._store.record(Visit("", document, False, time.time(), name=name))

    def remember(self, urls: Iterable[str], new: Signature) -> None:
        """Record which older documents URLs delivered in this run, before `new` replaces them in the visits."""
        for visit in filter(None, map(self._store.resolve, urls)):
            document = visit.signature
            if document is None or document is new or visit.is_copy or self.is_of_run(document.first_seen):
                continue
            if self.is_of_run(visit.seen):
                self._store.record(Visit("", document, False, visit.seen, name=_name(document)))

    def _seen(self, place: str | None, document: Signature) -> float:
        visit = self._store.resolve(place) if place else None
        return visit.seen if visit and visit.signature is document and not visit.is_copy else 0.0


def _name(document: Signature, *, by_own_host: bool = False) -> str:
    """Return the name of the visit that records a delivery by any host or, if `by_own_host`, by the document's own."""
    return f"{'own ' * by_own_host}delivery {document.id}"


class Mirrors:
    """Advises on URLs before a fetch, and finds other URLs with the content of a dead URL."""

    def __init__(
        self, store: Store, config: Config, reviews: Reviews | None = None, deliveries: Deliveries | None = None
    ) -> None:
        self._store = store
        self._config = config
        self._ttl = config.mirror_ttl
        self._preference = Preference(config.preferred_hosts)
        self._scope = SCOPES[config.scope]
        self._hosts = {named_site(mirror): original for mirror, original in config.mirror_hosts.items()}
        self._reviews = reviews or Reviews(Config())
        self._deliveries = deliveries
        # Ids of documents; see `_is_placeholder`. They stay here, although their URLs get other documents during a run.
        self._placeholders: set[int] = set()

    # Before the fetch

    def advise(self, url: str, before: Collection[str] = ()) -> Advice | None:
        """Return the advice on a URL; None if the URL is to be fetched.

        `before` has the URLs that redirected to `url`. Learned rules apply only to a URL that was never fetched.
        """
        link, advice = self._store.resolve(url), None
        if link is not None:
            advice = None if self._is_led_to(link, before) else self._advise_known(url, link)
        elif self._config.skip_mirrors:
            advice = self._advise_unknown(url)
        return advice if advice and self._scope(url) == self._scope(advice.url or "") else None

    def _advise_known(self, url: str, link: Visit) -> Advice | None:
        if link.signature is None or not self._is_sure(link) or self._reviews.differ(url, link.signature.url):
            return None
        # A spider that asks for a URL again in one run wants something else, as with another cookie.
        is_again = url == link.url and self._deliveries is not None and self._deliveries.is_of_run(link.seen)
        skips = self._config.skip_mirrors if link.is_copy else self._config.revisit == "skip" and not is_again
        # A page that repeats one item of a list page may be a list page too, unless its layout is another.
        is_list = link.signature.label and not (link.evidence and link.evidence.kind in OTHER_LAYOUT)
        is_preferred = link.is_copy and self._preference.outranks(url, link.signature.url)
        if not skips or is_list or is_preferred or self._is_placeholder(link.signature):
            return None
        return Advice(SKIP, link.signature.url, link.size, document=self._awaited(link.signature, link))

    def _is_led_to(self, link: Visit, before: Collection[str]) -> bool:
        """Return whether the original's URL redirected to this one. Then only this URL returns the document now."""
        leading = map(self._store.resolve, before)
        return any(other and not other.is_copy and other.signature is link.signature for other in leading)

    def _advise_unknown(self, url: str) -> Advice | None:
        """Return advice by the rules on hosts: SKIP for the first held counterpart, else REDIRECT to an unknown one."""
        unheld: Advice | None = None
        for other, rule in self._counterparts(url):
            link = self._store.resolve(other)
            held = link.signature if link else None
            is_apart = self._reviews.differ(url, other) or self._reviews.differ(url, held.url if held else None)
            if is_apart or self._preference.outranks(url, other) or (rule and not rule.is_original):
                continue
            known_by = "the rule of its host" if rule else "NEARDUP_MIRROR_HOSTS"
            if link is None:
                unheld = unheld or Advice(REDIRECT, other, known_by=known_by, rule=rule)
                continue
            # Under a rule, the text must be long enough to contradict a wrong rule.
            is_sure = rule is None or (self._is_sure(link) and held is not None and held.sketch.tokens >= SHORT)
            if held and is_sure and not (rule and self._is_placeholder(held)):
                return Advice(SKIP, held.url, link.size, known_by, rule, self._awaited(held))
        return unheld if self._config.redirect_mirrors else None

    def _awaited(self, document: Signature, link: Visit | None = None) -> Signature | None:
        """Return a document if a URL other than that of `link` must still deliver it in this run; else None."""
        if self._deliveries is None or (link and not link.is_copy):
            return None
        is_alive = self._config.revisit == "skip" and time.time() - self._deliveries.last(document) <= self._ttl
        return None if is_alive or self._deliveries.is_delivered(document) else document

    def _is_placeholder(self, document: Signature) -> bool:
        """Return whether the text of a document is at too many paths for its length, as with a login wall.

        A placeholder has fewer than about `SHORT` tokens for each path, or is at `MANY` paths. A path on several hosts
        counts once. The pages may return their real text later.
        """
        least = min(MANY, max(2, 1 + round(document.sketch.tokens / SHORT)))
        if document.id not in self._placeholders and self._store.urls.at_most(document) >= least:
            links = self._store.visits(document, MAX_COPIES)
            if len({parts[2:] for link in links if (parts := parts_of(link.url))}) >= least:
                self._placeholders.add(document.id)
        return document.id in self._placeholders

    # After a failed fetch

    def alternatives(self, url: str, tried: Collection[str] = ()) -> Iterator[Alternative]:
        """Yield other URLs with the content of a URL, best first.

        Visited URLs come first, by the day of the visit, the latest at the top. For the same day, preferred hosts come
        first, then https, then shorter URLs. URLs that are known only by rules come last.
        """
        seen = {canonical_url(known) for known in (url, *tried)}
        for other in self._copies(url):
            is_http = host(other.url) and other.url.startswith(("http://", "https://"))
            if is_http and canonical_url(other.url) not in seen and not self._reviews.differ(url, other.url):
                seen.add(canonical_url(other.url))
                yield other

    def _copies(self, url: str) -> Iterator[Alternative]:
        link = self._store.resolve(url)
        if link and link.signature and not self._reviews.differ(url, link.signature.url):
            links = self._store.visits(link.signature, MAX_COPIES)
            for other in sorted(links, key=self._rank):
                yield Alternative(other.url, other, "copy" if other.is_copy else "original")
            if link.signature.url:
                yield Alternative(link.signature.url, None, "original")
        for name, rule in self._counterparts(url):
            confidence = rule.relation.confidence if rule else None
            yield Alternative(name, None, "rule" if rule else "setting", confidence)

    def _rank(self, link: Visit) -> tuple[float, bool, bool, int]:
        days = (time.time() - link.seen) // DAY
        return days, link.url not in self._preference, not link.url.startswith("https:"), len(link.url)

    # Rules

    def _counterparts(self, url: str) -> Iterator[tuple[str, Counterpart | None]]:
        """Yield the counterparts of a URL on other hosts, each with its rule.

        Those by NEARDUP_MIRROR_HOSTS come first, with None as the rule.
        """
        names = (site(url), host(url)) if self._hosts and site(url) else ()
        if original := next(filter(None, map(self._hosts.get, names)), None):
            yield urlsplit(url)._replace(netloc=original).geturl(), None
        since = time.time() - self._ttl
        for rule in self._store.hosts.counterparts(url, since) if self._config.learn_hosts else ():
            yield _requestable(url, rule.url), rule

    def _is_sure(self, link: Visit) -> bool:
        return not link.loose and time.time() - link.seen <= self._ttl


def _requestable(url: str, counterpart: str) -> str:
    """Return a counterpart in the spelling of `url`, since canonical URLs are for comparison only."""
    parts, other = urlsplit(url), urlsplit(counterpart)
    path = parts.path if other.path == urlsplit(canonical_url(url)).path else other.path
    return parts._replace(netloc=other.netloc, path=path).geturl()
