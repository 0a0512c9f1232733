"""Requests for another URL than the one that was asked for: which may be made, and what they may carry along.

All that keeps a detour from harm stands here: another host gets no secret of the first one's, and no page of the public
web leads into a private network.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from .text.urls import is_private

SECRETS = ("Cookie", "Authorization", "Proxy-Authorization")
_OF_ITS_HOST = ("proxy", "cookiejar", "bindaddress", "download_slot")  # meta that another host has no use for
_OF_THE_FETCH = ("redirect_urls", "redirect_reasons", "retry_times", "neardup_recheck", "dont_redirect_mirror")


def is_ours(request: Request) -> bool:
    """Say whether a request is one that a URL alone describes, and that nobody asked us to leave alone."""
    return request.method == "GET" and request.callback is not NO_CALLBACK and not request.meta.get("dont_neardup")


def is_open(request: Request) -> bool:
    """Say whether anybody would get the same answer: the request has no secrets, and no way of its own."""
    return not request.cookies and not any(name in request.headers for name in SECRETS) and not _ways(request)


def _ways(request: Request) -> list[str]:
    return [name for name in _OF_ITS_HOST if name in request.meta]


def is_safe(url: str, origin: str) -> bool:
    """Say whether a page that leads from `origin` to `url` stays on the web, and out of private networks."""
    return urlsplit(url).scheme in ("http", "https") and (not is_private(url) or is_private(origin))


def detour(request: Request, url: str, **meta: object) -> Request:
    """Return the request for another URL in place of this one."""
    made = request.replace(url=url, cookies=None)
    made.meta.update(meta)
    for name in _OF_THE_FETCH:
        made.meta.pop(name, None)
    if _origin(url) != _origin(request.url):
        for name in SECRETS:
            made.headers.pop(name, None)
        for name in _OF_ITS_HOST:
            made.meta.pop(name, None)
    return made


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
