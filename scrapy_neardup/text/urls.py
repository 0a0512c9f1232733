"""Bring URLs to the canonical form in which they are compared. Pure.

The form is a key, not an address: it is never requested, since it may name a scheme that the host does not serve.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit, urlunsplit

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    import tldextract

_INDEX_PAGES = frozenset(f"{name}.{ending}" for name in ("index", "default") for ending in ("html", "htm", "php"))
# Parameters that tell where a visitor came from, never what the page shows.
_TRACKING = re.compile(
    r"(?:utm_\w+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id|_ga|_gl"
    r"|_hs(?:enc|mi)|mkt_tok|vero_id|oly_(?:anon|enc)_id|spm|scm|bd_vid|qhclickid)",
    re.IGNORECASE,
)
# What stays as it is but for the scheme and an index page, as most URLs do: to see that costs a tenth of the rest.
_PLAIN = re.compile(
    r"https?(://(?:[a-z0-9]+[.-])*[a-z0-9]+)(:(?!(?:80|443)\b)(?:[1-9]\d{0,3}|[1-5]\d{4}))?((?:/[\w~-][\w.~-]*)*/?)"
    rf"(\?(?!(?i:{_TRACKING.pattern})=)[\w.~-]+=[\w.~-]+)?",
    re.ASCII,
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Names that are given out within a network only (RFC 6762, 6761, 8375, 9476 and the usual habit).
_PRIVATE = frozenset(
    ["local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "test", "invalid"]
)
# Addresses of version 4 within version 6: NAT64, SIIT.
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("::ffff:0:0:0/96"))


@lru_cache(maxsize=1024)  # a request's URL is looked up several times on its way
def canonical_url(url: str) -> str:
    """Return the form of `url` that is equal for all spellings of one address; "" for "".

    Query sorted and escapes normalized as w3lib does it; without fragment, tracking parameters and default port;
    https as http; `/index.html` as `/`.
    """
    if not url:
        return ""
    if plain := _PLAIN.fullmatch(url):
        site, colon_port, path, query = plain.groups("")
        return f"http{site}{colon_port}{_without_index(path)}{query}"
    try:
        parts = urlsplit(canonicalize_url(_without_tracking(url)))
        port = parts.port
    except ValueError:  # a port out of range, a broken IPv6 address: nothing that can be fetched
        return url
    if parts.scheme not in _DEFAULT_PORTS:
        return parts.geturl()
    netloc = parts.netloc.rpartition("@")[2]
    if port is not None:
        netloc = netloc.rpartition(":")[0]
    netloc = netloc.rstrip(".")
    if port not in (None, _DEFAULT_PORTS[parts.scheme]):
        netloc = f"{netloc}:{port}"
    return urlunsplit(("http", netloc, _without_index(parts.path), parts.query, ""))


def _without_index(path: str) -> str:
    folder, page = posixpath.split(path)
    return f"{folder.rstrip('/')}/" if page.lower() in _INDEX_PAGES else path or "/"


def _without_tracking(url: str) -> str:
    head, mark, query = url.partition("#")[0].partition("?")
    kept = [p for p in query.split("&") if not _TRACKING.fullmatch(p.partition("=")[0])]
    return f"{head}?{'&'.join(kept)}" if mark and any(kept) else head


def split_url(url: str) -> SplitResult:
    """Part a URL as `urlsplit` does, in a quarter of the time for most. ValueError: brackets that hold no address."""
    if plain := _PLAIN.fullmatch(url):
        site, colon_port, path, query = plain.groups("")
        return SplitResult(url.partition(":")[0], site[3:] + colon_port, path, query[1:], "")
    return urlsplit(url)


def host(url: str) -> str:
    """Return the host name of `url`, lower case and in ASCII as DNS has it, without port; "" where it has none."""
    if plain := _PLAIN.fullmatch(url):
        return plain[1][3:]
    try:
        name = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:  # no name that DNS could hold
        return name


def domain(url: str) -> str:
    """Return the registered domain of `url` (`bbc.co.uk` for `news.bbc.co.uk`), or its host where it has none."""
    name = host(url)
    return _suffixes()(name).top_domain_under_public_suffix or name


def is_private(url: str) -> bool:
    """Return whether the host of `url` is none of the public Internet, as far as its name says; also where it has none.

    Addresses of private, loopback, link-local and reserved networks, in whatever way they are written; names that
    public DNS does not have.
    """
    name = host(url)
    try:
        return not all(address.is_global and not address.is_multicast for address in _addresses(ip_address(name)))
    except ValueError:
        last = name.rpartition(".")[2]
        # Resolvers take `127.1`, `0x7f.1` and the like for addresses.
        return "." not in name or last in _PRIVATE or last[:1].isdigit() or name.endswith((".home.arpa", ".onion"))


def _addresses(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield an address, and those of version 4 that one of version 6 stands for."""
    yield address
    if isinstance(address, IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if not int(address) >> 32 or any(address in network for network in _TRANSLATED):
            yield IPv4Address(int(address) & 0xFFFFFFFF)


@cache
def _suffixes() -> tldextract.TLDExtract:
    import tldextract  # late: it brings a whole HTTP client, and few commands ask for domains

    # The list that ships with the package: a live one would fetch, and would differ between machines.
    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
