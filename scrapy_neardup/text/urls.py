"""Convert URLs to the canonical form in which they are compared, and find how URLs of two hosts correspond.

A canonical URL is only a key. It is never requested, since the host may not serve its scheme. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

import mmh3
from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    import tldextract

_INDEX_PAGES = frozenset(f"{name}.{ending}" for name in ("index", "default") for ending in ("html", "htm", "php"))
# Parameters that record the source of a visitor and do not change the page.
_TRACKING = re.compile(
    r"(?:utm_\w+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id|_ga|_gl"
    r"|_hs(?:enc|mi)|mkt_tok|vero_id|oly_(?:anon|enc)_id|spm|scm|bd_vid|qhclickid)",
    re.IGNORECASE,
)
# Most URLs: only the scheme and the index page must change. This shortcut takes a tenth of the time.
_PLAIN = re.compile(
    r"https?(://(?:[a-z0-9]+[.-])*[a-z0-9]+)(:(?!(?:80|443)\b)(?:[1-9]\d{0,3}|[1-5]\d{4}))?((?:/[\w~-][\w.~-]*)*/?)"
    rf"(\?(?!(?i:{_TRACKING.pattern})=)[\w.~-]+=[\w.~-]+)?",
    re.ASCII,
)
_NUMBER = r"(?:page|paged|pg|page_?(?:no|num|number)|offset)=\d+|cursor=[^&]*"
# What names one page of a list.
_PAGE = re.compile(rf"(?<=\?)(?:{_NUMBER})(?:&|$)|&(?:{_NUMBER})(?=&|$)|/page/\d+(?=[/?]|$)", re.I)
# The fragment of an app that shows one page for each fragment, as in `#/a/1` and `#!x`. `#/` is its first page.
_ROUTE = re.compile(r"[/!]+[^/!]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Names that exist only within a network (RFC 6762, 6761, 8375, 9476 and common practice).
_PRIVATE = frozenset(
    ["local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "test", "invalid"]
)
# IPv4 addresses within IPv6: NAT64, SIIT.
_TRANSLATED = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))


@lru_cache(maxsize=1024)  # a request's URL is looked up several times
def canonical_url(url: str) -> str:
    """Return one URL for all spellings of an address; "" for "".

    The query is sorted, and escapes are normalized as by w3lib. Tracking parameters and the default port are removed.
    The fragment is removed too, unless it is a route such as `#/a/1`. https becomes http, and `/index.html` becomes
    `/`. An invalid URL is returned as it is.
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
    """Return a URL without tracking parameters, and without a fragment unless it is a route."""
    page, _, fragment = url.partition("#")
    head, _, query = page.partition("?")
    kept = "&".join(p for p in query.split("&") if not _TRACKING.fullmatch(p.partition("=")[0]))
    route = f"#{fragment}" if _ROUTE.match(fragment) else ""
    return f"{head}?{kept}{route}" if kept.strip("&") else head + route


def listing(url: str) -> str:
    """Return the canonical URL of a list without what names one page of it, such as `page=2` or `/page/2`."""
    return _PAGE.sub("", canonical_url(url)).rstrip("?/")


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


def home(url: str) -> str:
    """Return the host name of `url` without "www."; "" if there is none. Files without host have the name "file:"."""
    return host(url).removeprefix("www.") or ("file:" if url.startswith("file:") else "")


def domain(url: str) -> str:
    """Return the registered domain of `url` (`bbc.co.uk` for `news.bbc.co.uk`), or its host if there is none."""
    name = host(url)
    return _suffixes()(name).top_domain_under_public_suffix or name


def is_private(url: str) -> bool:
    """Return whether the host of `url` is missing or outside the public Internet.

    Outside are private, loopback, link-local and reserved addresses in any notation, and names that public DNS lacks.
    """
    name = host(url)
    try:
        return not all(address.is_global and not address.is_multicast for address in _addresses(ip_address(name)))
    except ValueError:
        last = name.rpartition(".")[2]
        # Resolvers accept names such as `127.1` and `0x7f.1` as addresses.
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


MAX_URL = 2000  # longer URLs are rarely those of pages, and take time to parse
MAX_PREFIX = 200

_ENDING = re.compile(r"(?:/|\.[A-Za-z][A-Za-z0-9]{0,4})$")  # ".2" in "/v1.2" is not an extension
_LONGEST = 7  # characters at the end of a path where an ending may begin


class Place(NamedTuple):
    """The place of a page on its host, under the prefix of a shape. Corresponding URLs have equal places."""

    path: int  # the hash of the common path and query
    branch: int  # the hash of the first directory under the prefix; equal for all pages without a directory


class Shape(NamedTuple):
    """The differences between corresponding URLs of two hosts, each as a pair in the order of the hosts.

    If all four strings are empty, corresponding paths are equal.
    """

    prefixes: tuple[str, str] = ("", "")  # of the paths, such as `("", "/mirror")`, never with a final slash
    endings: tuple[str, str] = ("", "")  # such as `(".html", ".htm")` or `("", "/")`; empty if both are equal

    def flip(self) -> Shape:
        return Shape(self.prefixes[::-1], self.endings[::-1])


@lru_cache(maxsize=1024)  # as for `canonical_url`
def site(url: str) -> str:
    """Return the host of a URL, with the port unless it is the default; "" for a URL that is not HTTP."""
    name, slash, _ = canonical_url(url).removeprefix("http://").partition("/")
    if not slash or "[" in name or len(url) > MAX_URL or not url.startswith(("http://", "https://")):
        parts = parts_of(url)
        return parts.netloc if parts else ""
    return name  # most URLs end here, without being parsed


def named_site(host: str) -> str:
    """Return a host, with or without port, as `site` returns it; an invalid host unchanged."""
    return site(f"{'https' if host.endswith(':443') else 'http'}://{host}") or host


def shape(a: str, b: str) -> Shape | None:
    """Return the shape of two URLs whose paths end alike, such as `/x/1.html` and `/mirror/x/1.htm`; None for others.

    At least one whole segment must be equal, the ending of a file aside, and so must queries and routes. The hosts do
    not matter. Bharat, Broder, Dean, Henzinger 2000, section 2: mirrors have corresponding paths.
    """
    ours, theirs = parts_of(a), parts_of(b)
    if not ours or not theirs or ours[3:] != theirs[3:]:
        return None
    if ours.path == theirs.path:
        return Shape()
    (stem_a, ending_a), (stem_b, ending_b) = _stem(ours.path), _stem(theirs.path)
    prefixes = _prefixes(stem_a.split("/")[1:], stem_b.split("/")[1:])
    if prefixes is None or max(map(len, prefixes)) > MAX_PREFIX:
        return None
    return Shape(prefixes, ("", "") if ending_a == ending_b else (ending_a, ending_b))


def counterpart(url: str, shape: Shape, site: str) -> tuple[str, Place] | None:
    """Return the canonical URL on the host `site` that corresponds to `url`, and the place of both; None if none does.

    `url` is on the first host of the shape, `site` is the second. Use the returned URL for lookups only, not for
    requests, since its scheme is always `http`.
    """
    parts, prefix, ending = parts_of(url), shape.prefixes[0], ""
    if not parts or not parts.path.startswith(f"{prefix}/"):
        return None
    rest = parts.path[len(prefix) :]
    if shape.endings != ("", ""):
        rest, ending = _stem(rest)
    if not rest or ending != shape.endings[0]:
        return None
    branch = rest.split("/", 2)[1] if rest.count("/") > 1 else ""
    place = Place(_hash(f"{rest}?{parts.query}{parts.fragment}"), _hash(branch))
    return parts._replace(netloc=site, path=f"{shape.prefixes[1]}{rest}{shape.endings[1]}").geturl(), place


@lru_cache(maxsize=1024)  # as for `canonical_url`
def parts_of(url: str) -> SplitResult | None:
    """Return the parts of the canonical form of `url`; None if it is invalid, too long, or not HTTP."""
    if len(url) > MAX_URL or not url.startswith(("http://", "https://")):
        return None
    canonical = canonical_url(url)
    if plain := _PLAIN.fullmatch(canonical):  # split in half of the time
        site, colon_port, path, query = plain.groups("")
        return SplitResult("http", site[3:] + colon_port, path, query[1:], "")
    try:
        parts = urlsplit(canonical)
    except ValueError:  # an invalid address in brackets
        return None
    return parts if parts.netloc and parts.path.startswith("/") else None


def _stem(path: str) -> tuple[str, str]:
    """Split a path into its stem and its ending: an extension, a final slash, or nothing."""
    found = _ENDING.search(path, max(0, len(path) - _LONGEST))
    start = found.start() if found else len(path)
    return path[:start], path[start:]


def _prefixes(a: list[str], b: list[str]) -> tuple[str, str] | None:
    shared = 0
    while shared < min(len(a), len(b)) and a[-1 - shared] == b[-1 - shared]:
        shared += 1
    if not shared:
        return None
    first, second = ("".join(f"/{part}" for part in parts[: len(parts) - shared]) for parts in (a, b))
    return first, second


def _hash(text: str) -> int:
    """Return a hash of 64 bits that is equal in every process."""
    return int(mmh3.hash64(text.encode(errors="replace"), signed=False)[0])
