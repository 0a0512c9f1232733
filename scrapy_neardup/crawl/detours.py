"""Build and check detours, requests to another URL in place of the requested one.

Three rules keep detours safe. A detour to another host carries no secrets of the requested host. A detour from a public
URL does not lead into a private network. The marks of a detour are removed from requests that a spider makes from its
response.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from ..text.urls import is_private

DETOUR = "neardup_detour"  # the meta key with the URL of the detour. The other marks count only for this URL
FOR_DETOUR = ("dont_redirect", "dont_retry")  # meta keys that are set in a detour from a mirror to the original host
_DEPTH, _INHERITED = "neardup_depth", "neardup_inherited"
HARMLESS = frozenset(b"Accept Accept-Charset Accept-Encoding Accept-Language Cache-Control Referer User-Agent".split())
_CONDITIONS = (b"If-None-Match", b"If-Modified-Since")
# Meta keys that are secret, or useless on another host.
_OF_ITS_HOST = ("proxy", "cookiejar", "bindaddress", "download_slot", "http_user", "http_pass", "http_auth_domain")
_OF_THE_FETCH = ("redirect_urls", "redirect_reasons", "retry_times", "neardup_recheck", _INHERITED)
_MARKS = (DETOUR, "neardup_mirror_of", "neardup_dead_link", "neardup_mirror_times", "neardup_tried", "neardup_stand_in")


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
    return HARMLESS.issuperset(request.headers) and not any(name in request.meta for name in _OF_ITS_HOST)


def is_safe(url: str, origin: str) -> bool:
    """Return whether a detour from `origin` may lead to `url`.

    Only HTTP URLs are allowed. A URL in a private network is allowed only if `origin` is in one too.
    """
    return urlsplit(url).scheme in ("http", "https") and (not is_private(url) or is_private(origin))


def disown(request: Request) -> None:
    """Remove the marks of a detour from a request that the spider made with the meta of a response.

    Such a request is recognised by its depth: Scrapy adds one to it, while redirects and retries keep the depth.
    """
    depth = request.meta.get("depth", 0)
    if request.meta.setdefault(_DEPTH, depth) == depth:
        return
    request.meta.update({_DEPTH: depth, _INHERITED: len(request.meta.get("redirect_urls", ()))})
    request.meta.pop("neardup_rescued", None)
    if request.meta.get(DETOUR, request.url) != request.url:  # if the URLs are equal, the spider retries the detour
        names = (*_MARKS, *FOR_DETOUR) if "neardup_mirror_of" in request.meta else _MARKS
        for name in names:
            request.meta.pop(name, None)


def drop_conditions(request: Request) -> None:
    """Remove the conditions that Scrapy's HTTP cache set for another URL.

    Redirects copy them, and the new URL may have the same validator. Then it would answer 304 with no page to show.
    """
    for name in _CONDITIONS:
        request.headers.pop(name, None)


def is_start(request: Request) -> bool:
    """Return whether a request is a start request, or a redirect or retry of one."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get("depth")


def redirects(request: Request) -> tuple[list[str], list[object]]:
    """Return the URLs that redirected to a request, in the order of the redirects, and the reasons.

    Redirects in meta that the spider copied from a response are left out.
    """
    meta, before = request.meta, request.meta.get(_INHERITED, 0)
    return list(meta.get("redirect_urls", ()))[before:], list(meta.get("redirect_reasons", ()))[before:]


def mark(request: Request, name: str) -> Any:
    """Return the mark `name` of a detour; None for any other request.

    Spiders may copy `response.meta` into their own requests. So a mark counts only on the detour itself.
    """
    if request.meta.get(DETOUR) not in (request.url, *redirects(request)[0][:1]):
        return None
    return request.meta.get(name)


def is_stand_in(request: Request) -> bool:
    """Return whether an adviser named a request in place of a dead link, so that it is no visit of any URL."""
    return bool(mark(request, "neardup_stand_in"))


def detour(request: Request, url: str, marks: Mapping[str, object]) -> Request:
    """Return a copy of a request for another URL, with these marks. The dupefilter does not filter the copy.

    Cookies are removed. For another scheme or host, other headers and meta keys that may be secret are removed too.
    """
    made = request.replace(url=url, cookies=None, dont_filter=True)
    drop_conditions(made)
    for name in (*_OF_THE_FETCH, *_MARKS):
        made.meta.pop(name, None)
    made.meta.update({DETOUR: made.url, **marks} if marks else {})
    if _origin(url) != _origin(request.url):
        for header in set(made.headers) - HARMLESS:
            del made.headers[header]
        for name in _OF_ITS_HOST:
            made.meta.pop(name, None)
    return made


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
