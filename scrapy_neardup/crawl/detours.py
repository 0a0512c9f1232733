"""Tickets of changed requests, and detours: requests that are sent instead of others. No I/O.

A request is *changed* if it is a detour, a recheck, or sent after it was skipped. Its *ticket* records this: plain
values under one key of its meta, which survive a disk queue. A spider may copy meta into another request. So a ticket
counts only for a request to the URL that it names, or for a redirect from this URL.

A *detour* is a request that is sent instead of another one. Three rules keep detours safe. A detour to another host
carries no secrets of the first host. A detour from a public URL does not lead into a private network. A request that a
spider makes with the meta of a detour loses what belongs to the detour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from ..text.urls import is_private

KEY = "neardup"  # the meta key of tickets
MIRROR, DEAD_LINK, STAND_IN = "mirror", "dead link", "stand-in"  # why a request is in another's place
RECHECK, AFTER_ALL = "recheck", "sent after all"  # why a request is sent although a skip was advised
HARMLESS = frozenset(b"Accept Accept-Charset Accept-Encoding Accept-Language Cache-Control User-Agent".split())
# Meta keys that are secret, or useless on another host.
_OF_ITS_HOST = (
    *("cookiejar", "bindaddress", "download_slot", "dont_obey_robotstxt"),
    *("http_user", "http_pass", "http_auth_domain"),
)
_OF_THE_FETCH = ("redirect_urls", "redirect_reasons", "redirect_times", "redirect_ttl", "retry_times", KEY)


class Ticket(NamedTuple):
    """The record of one changed request. A blank ticket has no reason, and belongs to an unchanged request."""

    url: str  # of the request to which the ticket belongs
    reason: str = ""
    instead_of: str | None = None  # for a detour: the URL that was requested first
    tried: Sequence[str] = ()  # for a detour from a dead link: the URLs that failed so far
    tested: str = ""  # for a recheck: the rule or the original because of which a skip was advised
    inherited: int = 0  # how many redirects in the meta are those of another request, from which a spider copied them

    @classmethod
    def of(cls, request: Request) -> Ticket:
        """Return the ticket of a request, if it counts for this request; else a blank one."""
        kept = _kept(request)
        return kept if kept.is_of(request) else cls(request.url, inherited=kept.inherited)

    def is_of(self, request: Request) -> bool:
        return self.url in (request.url, *self.redirects(request)[:1])

    @classmethod
    def again(cls, request: Request, reason: str) -> Ticket:
        """Return the ticket to send a request again to the same URL, for another reason. A detour stays a detour."""
        return cls.of(request)._replace(url=request.url, reason=reason)

    def redirects(self, request: Request, key: str = "redirect_urls") -> list[Any]:
        """Return the URLs that redirected to a request, without those that a spider copied from another request.

        With the key `redirect_reasons`, return the reasons.
        """
        return list(request.meta.get(key, ()))[self.inherited :]

    @property
    def is_final(self) -> bool:
        """True if a request with this ticket is sent whatever is advised."""
        return self.reason in (RECHECK, AFTER_ALL) or self.dead_link is not None

    @property
    def mirror_of(self) -> str | None:
        """The URL on a mirror that this request to the original host replaces; None for other requests."""
        return None if self.tried else self.instead_of

    @property
    def dead_link(self) -> str | None:
        """The dead URL that this request replaces; None for other requests."""
        return self.instead_of if self.tried else None

    def put(self, request: Request) -> None:
        request.meta[KEY] = {name: value for name, value in self._asdict().items() if value}


def _kept(request: Request) -> Ticket:
    """Return the ticket in the meta of a request, whether it counts or not; if there is none, one without URL."""
    kept = request.meta.get(KEY)
    if isinstance(kept, dict) and "url" in kept and kept.keys() <= {*Ticket._fields}:
        return Ticket(**kept)
    return Ticket("")


def disown(request: Request) -> None:
    """Remove from a spider's request what the spider may have copied from the meta of a changed request."""
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


def note_queued(request: Request) -> None:
    """Mark a request that enters the queue by a ticket. One without a mark may be awaited by code, so it is sent."""
    Ticket.of(request).put(request)


def is_queued(request: Request) -> bool:
    return _kept(request).is_of(request)


def is_plain(request: Request) -> bool:
    """Return whether a request is described by its URL alone: a GET request without a body."""
    return request.method == "GET" and not request.body


def is_open(request: Request) -> bool:
    """Return whether any client would get the same response: the request has no secrets and no proxy."""
    if request.cookies or "@" in urlsplit(request.url).netloc:
        return False
    is_harmless = {*HARMLESS, b"Referer"}.issuperset(request.headers)
    return is_harmless and request.meta.keys().isdisjoint({"proxy", *_OF_ITS_HOST})


def referer(request: Request) -> str:
    """Return the URL of the page with the link to a request; "" if unknown."""
    return (request.headers.get("Referer") or b"").decode(errors="replace")


def is_start(request: Request) -> bool:
    """Return whether a request is a start request, or a redirect or retry of one."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get("depth")


# Detours


def is_safe(url: str, origin: str) -> bool:
    """Return whether a detour may lead from `origin` to `url`: only to the web, and never from public to private."""
    return urlsplit(url).scheme in ("http", "https") and (not is_private(url) or is_private(origin))


def drop_conditions(request: Request) -> None:
    """Remove the headers by which Scrapy's HTTP cache asks whether a page has changed. They belong to another URL."""
    for name in (b"If-None-Match", b"If-Modified-Since"):
        request.headers.pop(name, None)


def detour(
    request: Request, url: str, reason: str = "", instead_of: str | None = None, tried: Sequence[str] = ()
) -> Request:
    """Return a copy of a request for another URL, with a ticket if `reason` is not empty. No dupefilter stops the copy.

    The copy has no cookies. For another scheme or host, it also lacks headers and meta keys that may be secret.
    """
    made = request.replace(url=url, cookies=None, dont_filter=True)
    drop_conditions(made)
    is_elsewhere = urlsplit(url)[:2] != urlsplit(request.url)[:2]
    for name in (*_OF_THE_FETCH, *(_OF_ITS_HOST if is_elsewhere else ())):
        made.meta.pop(name, None)
    kept = {*HARMLESS, b"Proxy-Authorization"} if made.meta.get("proxy") else HARMLESS
    for header in set(made.headers) - kept if is_elsewhere else ():
        del made.headers[header]
    if reason:
        Ticket(made.url, reason, instead_of, list(tried) or ()).put(made)
    return made
