"""Pack what a conditional request for a page needs: the page's validators, and the requests made from the page.

The packed form is MessagePack, compressed by zlib. It holds data only: a callback is the name of a spider's method.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import mmh3
import msgpack
from scrapy import Request

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response

CONDITIONS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
"""The header of a condition by the header of its validator (RFC 9110, sections 8.8 and 13.1)."""
MOST = 1000  # the maximum number of requests of a page
MAX_SIZE = 1 << 22  # the maximum size of an unpacked page, in bytes
_METHODS = ("callback", "errback")
# Meta keys that Scrapy sets during a fetch.
_OF_THE_FETCH = {
    *("depth", "is_start_request", "retry_times", "download_latency", "download_slot", "download_timeout"),
    *("cached_response", "_dont_cache", "_auth_proxy"),
    *("redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons"),
}


class Page(NamedTuple):
    """A page that can be requested on a condition."""

    conditions: dict[str, bytes]
    """The headers to send."""
    carried: bytes
    """The digest of the data that the request carried for its callback. With other data, the item may be another."""
    requests: list[dict[str, Any]]
    """The arguments of the requests that the spider made from the page."""


def pack(response: Response, requests: Sequence[Request], spider: Spider) -> bytes | None:
    """Return the packed page of a response. Return None if it has no validators, or a request can't be packed.

    A request can be packed if it is no subclass of Request, its callbacks are methods of the spider, and its other
    arguments are strings, bytes, numbers, lists and dictionaries.
    """
    conditions = {name: value for validator, name in CONDITIONS.items() if (value := response.headers.get(validator))}
    if not conditions or len(requests) > MOST or response.request is None:
        return None
    try:
        made = [_arguments(request, spider) for request in requests]
        packed = _packed(Page(conditions, carried(response.request, spider), made)._asdict())
    except (TypeError, ValueError, OverflowError):
        return None
    return zlib.compress(packed) if len(packed) <= MAX_SIZE else None


def unpack(packed: bytes) -> Page:
    """Return a page that `pack` returned. Raise ValueError if it is damaged."""
    try:
        return Page(**msgpack.unpackb(zlib.decompressobj().decompress(packed, MAX_SIZE)))
    except (zlib.error, TypeError, ValueError, msgpack.UnpackException) as error:
        raise ValueError(f"a packed page is damaged: {error}") from error


def rebuilt(page: Page, spider: Spider) -> list[Request]:
    """Return the requests of a page. Raise ValueError if one of them has no valid arguments for this spider."""
    try:
        return [
            Request(**arguments | {each: arguments[each] and getattr(spider, arguments[each]) for each in _METHODS})
            for arguments in page.requests
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"a packed request does not fit the spider: {error}") from error


def carried(request: Request, spider: Spider) -> bytes:
    """Return the digest of the data that a request carries for its callback.

    Raise TypeError, ValueError or OverflowError if the data can't be packed.
    """
    meta = {name: value for name, value in _own_meta(request).items() if name not in _OF_THE_FETCH}
    return mmh3.hash_bytes(_packed([_name(request.callback, spider), request.cb_kwargs, meta]))


def _arguments(request: Request, spider: Spider) -> dict[str, Any]:
    if type(request) is not Request:
        raise ValueError(f"a request of the class {type(request).__name__}")
    arguments = {name: getattr(request, name) for name in Request.attributes}
    arguments |= {each: _name(arguments[each], spider) for each in _METHODS}
    arguments["headers"] = dict(request.headers)
    arguments["meta"] = _own_meta(request)
    return arguments


def _own_meta(request: Request) -> dict[str, Any]:
    return {name: value for name, value in sorted(request.meta.items()) if not str(name).startswith("neardup_")}


def _name(method: Any, spider: Spider) -> str | None:
    """Return the name of a method of the spider; None for None. Raise ValueError for another function."""
    name = getattr(method, "__name__", None)
    if method is not None and (name is None or getattr(spider, name, None) != method):
        raise ValueError(f"{method!r} is no method of the spider")
    return name


def _packed(data: Any) -> bytes:
    packed: bytes = msgpack.packb(data, strict_types=True, default=_plain)
    return packed


def _plain(value: object) -> str:
    """Return the result of a selector as a plain string. Raise TypeError for any other value."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be packed")
