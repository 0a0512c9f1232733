"""Change requests safely: send them to another URL, hold them back, send them after all.

A *ticket* is the record of one changed request: plain values under one key of its meta, so that it survives a disk
queue. Spiders copy meta into requests of their own, so a ticket is void unless it names the URL of its request, or the
URL that redirected to it.

A request in another's place is a *detour*. Three rules keep detours safe. A detour to another host carries no secrets
of the requested host. A detour from a public URL does not lead into a private network. A request that a spider makes
with the meta of a detour loses what belongs to the detour.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir

from ..fingerprints.hashes import hash_text
from ..mirrors import SKIP, Advice
from ..signature import Signature
from ..text.urls import canonical_url, host, is_private

if TYPE_CHECKING:
    from .extension import NearDup

KEY = "neardup"  # the meta key of tickets
MIRROR, DEAD_LINK, STAND_IN = "mirror", "dead link", "stand-in"  # why a request is in another's place
RECHECK, AFTER_ALL = "recheck", "sent after all"  # why it is sent although a skip was advised
MOST = 10_000  # the maximum number of held requests; if there are more, the oldest are sent
MOST_FAILED = 100_000  # the maximum number of remembered URLs, hosts and reasons that failed; the oldest are forgotten
HARMLESS = frozenset(b"Accept Accept-Charset Accept-Encoding Accept-Language Cache-Control User-Agent".split())
# Meta keys that are secret, or useless on another host.
_OF_ITS_HOST = (
    *("proxy", "cookiejar", "bindaddress", "download_slot", "dont_obey_robotstxt"),
    *("http_user", "http_pass", "http_auth_domain"),
)
_OF_THE_FETCH = ("redirect_urls", "redirect_reasons", "redirect_times", "redirect_ttl", "retry_times", KEY)


class Ticket(NamedTuple):
    """The record of a changed request."""

    url: str
    """The URL of the request to which the ticket belongs."""
    reason: str = ""
    instead_of: str | None = None
    """The URL that was requested first, for a detour."""
    tried: Sequence[str] = ()
    """The URLs that failed so far; empty unless the detour replaces a dead link."""
    tested: str = ""
    """For a recheck: the reason for the skip, which fails if the page is no copy."""
    inherited: int = 0
    """The number of redirects in the meta that belong to another request, from which a spider copied the meta."""

    @classmethod
    def of(cls, request: Request) -> Ticket:
        """Return the ticket of a request; a blank one if it has none that counts."""
        kept = _kept(request)
        is_own = kept.url in (request.url, *redirects(request)[0][:1])
        return kept if is_own else cls(request.url, inherited=kept.inherited)

    def is_final(self, request: Request) -> bool:
        """Return whether no advice counts on a request with this ticket."""
        is_recheck = self.reason == RECHECK and self.url == request.url
        return is_recheck or self.reason == AFTER_ALL or self.dead_link is not None

    @property
    def mirror_of(self) -> str | None:
        """The URL on a mirror whose original is requested in its place."""
        return None if self.tried else self.instead_of

    @property
    def dead_link(self) -> str | None:
        """The dead URL in whose place a copy is requested."""
        return self.instead_of if self.tried else None

    def put(self, request: Request) -> None:
        """Put the ticket into the meta of a request."""
        request.meta[KEY] = {
            name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name)
        }


def _kept(request: Request) -> Ticket:
    """Return the ticket in the meta of a request, whether it counts or not."""
    kept = request.meta.get(KEY)
    if isinstance(kept, dict) and "url" in kept and kept.keys() <= {*Ticket._fields}:
        return Ticket(**kept)
    return Ticket("")


def redirects(request: Request) -> tuple[list[str], list[object]]:
    """Return the URLs that redirected to a request, and the reasons, without those in meta that a spider copied."""
    meta, before = request.meta, _kept(request).inherited
    return list(meta.get("redirect_urls", ()))[before:], list(meta.get("redirect_reasons", ()))[before:]


def disown(request: Request) -> None:
    """Remove from a request that a spider made what it may have copied from the meta of a changed request."""
    ticket, inherited = _kept(request), len(request.meta.get("redirect_urls", ()))
    if ticket.url:
        del request.meta[KEY]
    if ticket.url != request.url:  # else the spider retries the changed request
        if ticket.mirror_of:
            request.meta.pop("dont_retry", None)
        ticket = Ticket(request.url)
    if inherited or ticket.reason:
        ticket._replace(inherited=inherited).put(request)


# What a request is


def is_of_spider(request: Request) -> bool:
    """Return whether a spider made a request, and did not set `dont_neardup`."""
    return request.callback is not NO_CALLBACK and not request.meta.get("dont_neardup")


def is_plain(request: Request) -> bool:
    """Return whether the URL alone describes a request: it is a GET request without a body."""
    return request.method == "GET" and not request.body


def is_open(request: Request) -> bool:
    """Return whether any client would get the same response: the request has no secrets and no proxy."""
    if request.cookies or "@" in urlsplit(request.url).netloc:
        return False
    is_harmless = {*HARMLESS, b"Referer"}.issuperset(request.headers)
    return is_harmless and request.meta.keys().isdisjoint(_OF_ITS_HOST)


def referer(request: Request) -> str:
    """Return the URL of the page with the link to a request; "" if unknown."""
    return (request.headers.get("Referer") or b"").decode(errors="replace")


def is_start(request: Request) -> bool:
    """Return whether a request is a start request, or a redirect or retry of one."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get("depth")


# Detours


def is_safe(url: str, origin: str) -> bool:
    """Return whether a detour from `origin` may lead to `url`: not into a private network, unless it begins in one."""
    return urlsplit(url).scheme in ("http", "https") and (not is_private(url) or is_private(origin))


def drop_conditions(request: Request) -> None:
    """Remove the conditions that Scrapy's HTTP cache set for another URL, which may have the same validator."""
    for name in (b"If-None-Match", b"If-Modified-Since"):
        request.headers.pop(name, None)


def detour(
    request: Request, url: str, reason: str = "", instead_of: str | None = None, tried: Sequence[str] = ()
) -> Request:
    """Return a copy of a request for another URL, with a ticket if it has a reason. The dupefilter does not filter it.

    It has no cookies and, for another scheme or host, no other headers or meta keys that may be secret.
    """
    made = request.replace(url=url, cookies=None, dont_filter=True)
    drop_conditions(made)
    is_elsewhere = urlsplit(url)[:2] != urlsplit(request.url)[:2]
    for name in (*_OF_THE_FETCH, *(_OF_ITS_HOST if is_elsewhere else ())):
        made.meta.pop(name, None)
    for header in set(made.headers) - HARMLESS if is_elsewhere else ():
        del made.headers[header]
    if reason:
        Ticket(made.url, reason, instead_of, list(tried) or ()).put(made)
    return made


class Tickets:
    """Holds skipped requests, and sends them if no URL returns their content in this run. Remembers what failed.

    A request is dropped once a URL has returned its content. When the spider is idle, one request is sent for each
    document that is still missing. When the spider is idle again, the other requests are sent.
    """

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        # The requests that were skipped for a document, with the size of each URL's last response in bytes.
        self._waiting: OrderedDict[Signature, list[tuple[Request, int]]] = OrderedDict()
        # Documents for which a request was sent after all, and may not have returned them.
        self._tried: WeakSet[Signature] = WeakSet()
        self._count = 0
        self._is_asking = False
        self._failed: LocalCache[str, bool] = LocalCache(MOST_FAILED)  # canonical URLs, hosts, reasons for skips
        neardup.crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)

    # Held requests

    def hold(self, request: Request, document: Signature, size: int) -> None:
        """Hold a request that was skipped for a document. `size` is the number of bytes saved."""
        self._waiting.setdefault(document, []).append((request, size))
        self._count += 1
        while self._count > MOST:
            self._send(next(iter(self._waiting)))

    def let_go(self, document: Signature) -> None:
        """Drop the requests that were skipped for a document, after the document was delivered."""
        self._count -= len(self._waiting.pop(document, ()))

    def put_back(self) -> None:
        """Put all requests back into the queue of a paused job, which holds them again; without JOBDIR, drop them."""
        if job_dir(self._neardup.crawler.settings):
            for request, size in chain.from_iterable(self._waiting.values()):
                self._crawl(request, size)
        self._waiting.clear()
        self._count = 0

    def _spider_idle(self) -> None:
        if self._waiting and not self._is_asking:
            self._is_asking = True
            deferred_from_coro(self._release())
        if self._is_asking:
            raise DontCloseSpider

    async def _release(self) -> None:
        """Send a request for each missing document, unless another process has delivered the document meanwhile."""
        asked = list(self._waiting)
        with self._neardup.handled(self, "skipped requests, which are sent after all"):
            for document in await self._neardup.ask(self._delivered, asked) or ():
                self.let_go(document)
        self._is_asking = False
        for document in filter(self._waiting.__contains__, asked):
            self._send(document, None if document in self._tried else 1)
            self._tried.add(document)

    def _delivered(self, documents: Iterable[Signature]) -> list[Signature]:
        dedup = self._neardup.dedup
        while dedup.store.refresh():
            pass
        return list(filter(dedup.deliveries.is_delivered, documents))

    def _send(self, document: Signature, most: int | None = None) -> None:
        """Send the requests that were skipped for a document; no more than `most` of them."""
        requests = self._waiting.pop(document)
        if later := requests[len(requests) if most is None else most :]:
            self._waiting[document] = later
        for request, size in requests[:most]:
            self._count -= 1
            self._neardup.count("requests/sent_after_all")
            _ticket_for(request, AFTER_ALL).put(request)
            self._crawl(request, size)

    def _crawl(self, request: Request, size: int) -> None:
        self._neardup.count("requests/skipped", -1)
        self._neardup.count("bytes_saved", -size)
        assert self._neardup.crawler.engine
        self._neardup.crawler.engine.crawl(request.replace(dont_filter=True))

    # Rechecks

    def is_doubted(self, request: Request, advice: Advice) -> bool:
        """Return whether a request is sent against advice: a recheck proved it wrong, or this request is a recheck.

        The share of rechecks is the larger of NEARDUP_RECHECK and that of the advice; 0 if NEARDUP_RECHECK is 0.
        """
        relation = advice.rule and advice.rule.relation
        reason = repr((relation.sites, relation.shape) if relation else advice.url)  # the rule, or the original
        if reason in self._failed:
            return True
        least = self._neardup.config.recheck if advice.action == SKIP else 0.0
        share = max(least, advice.recheck) if least else 0.0
        if not is_in_share(request.url, self._neardup.dedup.store.run, share):
            return False
        self._neardup.count("requests/rechecked")
        _ticket_for(request, RECHECK)._replace(tested=reason if advice.url else "").put(request)
        return True

    def fail(self, ticket: Ticket) -> None:
        """Note that a recheck returned content that is not held. Its reason causes no more skips in this run."""
        self._neardup.count("requests/wrongly_skipped")
        if ticket.tested:
            self._failed[ticket.tested] = True

    # Dead links

    def note_gone(self, url: str, *, with_host: bool = False) -> None:
        """Note that a URL, or its whole host, failed."""
        self._failed[host(url) if with_host else canonical_url(url)] = True

    def is_gone(self, url: str) -> bool:
        """Return whether a URL or its host failed in this crawl."""
        return canonical_url(url) in self._failed or host(url) in self._failed


def is_in_share(url: str, run: str, share: float) -> bool:
    """Return whether a URL is in a share of all URLs, from 0 to 1. The share has other URLs in each run."""
    return share > 0 and hash_text(canonical_url(url) + run) / 2**64 < share


def _ticket_for(request: Request, reason: str) -> Ticket:
    """Return a ticket with which a request is sent to its own URL; it stays a detour if it is one."""
    ticket = Ticket.of(request)
    if ticket.url != request.url:
        ticket = Ticket(request.url, inherited=ticket.inherited)
    return ticket._replace(reason=reason)
