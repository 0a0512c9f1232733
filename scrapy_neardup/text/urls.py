"""Convert URLs to the canonical form in which they are compared. Pure.

A canonical URL is only a key. It is never requested, since the host may not serve its scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit, urlunsplit

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    import tldextract

SCHEME = "neardup:"  # of made-up URLs in the store, which are never requested
_INDEX_PAGES = frozenset(f"{name}.{ending}" for name in ("index", "default") for ending in ("html", "htm", "php"))
# Parameters that record the source of a visitor and do not change the page.
_TRACKING = re.compile(
    r"(?:utm_\w+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id|_ga|_gl"
    r"|_hs(?:enc|mi)|mkt_tok|vero_id|oly_(?:anon|enc)_id|spm|scm|bd_vid|qhclickid)",
    re.IGNORECASE,
)
# URLs in which only the scheme and the index page must change: most URLs. This shortcut takes a tenth of the time.
_PLAIN = re.compile(
    r"https?(://(?:[a-z0-9]+[.-])*[a-z0-9]+)(:(?!(?:80|443)\b)(?:[1-9]\d{0,3}|[1-5]\d{4}))?((?:/[\w~-][\w.~-]*)*/?)"
    rf"(\?(?!(?i:{_TRACKING.pattern})=)[\w.~-]+=[\w.~-]+)?",
    re.ASCII,
)
# The fragment of an app that shows one page for each fragment, as in `#/a/1` and `#!x`. `#/` is its first page.
_ROUTE = re.compile(r"[/!]+[^/!]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Names that exist only within a network (RFC 6762, 6761, 8375, 9476 and common practice).
_PRIVATE = frozenset(
    ["local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "test", "invalid"]
)
# IPv4 addresses within IPv6: NAT64, SIIT.
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("::ffff:0:0:0/96"))


@lru_cache(maxsize=1024)  # a request's URL is looked up several times
def canonical_url(url: str) -> str:
    """Return the form of `url` that is equal for all spellings of an address; "" for "".

    The query is sorted, and escapes are normalized as by w3lib. The fragment, unless it is a route, tracking parameters
    and the default port are removed. https becomes http, and `/index.html` becomes `/`.
    """
    if not url:
        return ""
    if plain := _PLAIN.fullmatch(url):
        site, colon_port, path, query = plain.groups("")
        return f"http{site}{colon_port}{_without_index(path)}{query}"
    try:
        parts = urlsplit(canonicalize_url(_without_tracking(url), keep_fragments=True))
        port = parts.port
    except ValueError:  # an invalid port or IPv6 address: the URL can't be fetched
        return url
    if parts.scheme not in _DEFAULT_PORTS:
        return parts.geturl()
    netloc = parts.netloc.rpartition("@")[2]
    if port is not None:
        netloc = netloc.rpartition(":")[0]
    netloc = netloc.rstrip(".")
    if port not in (None, _DEFAULT_PORTS[parts.scheme]):
        netloc = f"{netloc}:{port}"
    return urlunsplit(("http", netloc, _without_index(parts.path), parts.query, parts.fragment))


def _without_index(path: str) -> str:
    folder, _, page = path.rpartition("/")
    return f"{folder.rstrip('/')}/" if page.lower() in _INDEX_PAGES else path or "/"


def _without_tracking(url: str) -> str:
    """Return a URL without tracking parameters, and without a fragment that is no route."""
    page, _, fragment = url.partition("#")
    head, _, query = page.partition("?")
    kept = "&".join(p for p in query.split("&") if not _TRACKING.fullmatch(p.partition("=")[0]))
    route = f"#{fragment}" if _ROUTE.match(fragment) else ""
    return f"{head}?{kept}{route}" if kept.strip("&") else head + route


def split_url(url: str) -> SplitResult:
    """Split a URL as `urlsplit` does. For most URLs, this takes a quarter of the time of `urlsplit`.

    Raise ValueError for an invalid address in brackets.
    """
    if plain := _PLAIN.fullmatch(url):
        site, colon_port, path, query = plain.groups("")
        return SplitResult(url.partition(":")[0], site[3:] + colon_port, path, query[1:], "")
    return urlsplit(url)


@lru_cache(maxsize=1024)  # as above
def host(url: str) -> str:
    """Return the host name of `url` in lower case and ASCII (IDNA), without port; "" if there is none."""
    if plain := _PLAIN.fullmatch(url):
        return plain[1][3:]
    try:
        name = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:  # not a valid DNS name
        return name


def domain(url: str) -> str:
    """Return the registered domain of `url` (`bbc.co.uk` for `news.bbc.co.uk`), or its host if there is none."""
    name = host(url)
    return _suffixes()(name).top_domain_under_public_suffix or name


def is_private(url: str) -> bool:
    """Return whether the host of `url` is missing, or is outside the public Internet.

    These are private, loopback, link-local and reserved addresses in any notation, and names that public DNS lacks.
    """
    name = host(url)
    try:
        return not all(address.is_global and not address.is_multicast for address in _addresses(ip_address(name)))
    except ValueError:
        last = name.rpartition(".")[2]
        # Resolvers accept `127.1`, `0x7f.1` and the like as addresses.
        return "." not in name or last in _PRIVATE or last[:1].isdigit() or name.endswith((".home.arpa", ".onion"))


def _addresses(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield an address, and the IPv4 addresses that an IPv6 address contains."""
    yield address
    if isinstance(address, IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if not int(address) >> 32 or any(address in network for network in _TRANSLATED):
            yield IPv4Address(int(address) & 0xFFFFFFFF)


@cache
def _suffixes() -> tldextract.TLDExtract:
    import tldextract  # imported late, since it loads an HTTP client, and few crawls need it

    # Use the list in the package. A live list must be fetched, and differs between machines.
    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
