"""Find and apply correspondences between the URLs of two hosts, such as a common path under a prefix. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult

import mmh3

from .urls import canonical_url, split_url

MAX_URL = 2000  # longer URLs are not pages, and take time to parse
MAX_PREFIX = 200

_ENDING = re.compile(r"(?:/|\.[A-Za-z][A-Za-z0-9]{0,4})$")  # ".2" in "/v1.2" is not an extension


class Place(NamedTuple):
    """The place of a page under the prefix of its host. Corresponding URLs have equal places."""

    path: int
    """The hash of the common path and query."""
    branch: int
    """The hash of the first directory under the prefix; equal for all pages without a directory."""


class Shape(NamedTuple):
    """The differences between corresponding URLs of two hosts, each as a pair in the order of the hosts.

    Two empty prefixes and two empty endings mean equal paths.
    """

    prefixes: tuple[str, str] = ("", "")
    """The prefixes of the paths, such as `("", "/mirror")`, never with a final slash."""
    endings: tuple[str, str] = ("", "")
    """The endings of the paths, such as `(".html", ".htm")` or `("", "/")`; empty if both are equal."""

    def flip(self) -> Shape:
        """Return the shape with the hosts in the other order."""
        return Shape(self.prefixes[::-1], self.endings[::-1])


def site(url: str) -> str:
    """Return the host of a URL, with the port unless it is the default; "" for a URL that is not HTTP."""
    name, slash, _ = canonical_url(url).removeprefix("http://").partition("/")
    if not slash or "[" in name or len(url) > MAX_URL or not url.startswith(("http://", "https://")):
        parts = parts_of(url)
        return parts.netloc if parts else ""
    return name  # of most URLs, without parsing them


def named_site(host: str) -> str:
    """Return a host, with or without port, in the form that `site` returns. Return an invalid host unchanged."""
    return site(f"{'https' if host.endswith(':443') else 'http'}://{host}") or host


def shape(a: str, b: str) -> Shape | None:
    """Return the correspondence of two URLs by the longest common end of their paths; None if there is none.

    The paths must share at least one whole segment, not counting the extension of the file, and the queries must be
    equal, as must the routes. The hosts do not matter. Bharat, Broder, Dean, Henzinger 2000, section 2: mirrors have
    corresponding paths.
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


def counterpart(url: str, shape: Shape, site: str) -> str | None:
    """Return the canonical URL on the host `site` that corresponds to `url`; None if `url` does not fit the shape.

    `url` is on the first host of the shape, `site` is the second. Use the returned URL for lookups only, not for
    requests, since its scheme is always `http`.
    """
    parts = parts_of(url)
    rest = _rest(parts, shape) if parts else None
    if parts is None or rest is None:
        return None
    path = f"{shape.prefixes[1]}{rest}{shape.endings[1]}"
    return parts._replace(netloc=site, path=path).geturl()


def place(url: str, shape: Shape) -> Place | None:
    """Return the place of a URL on the first host of the shape; None if the URL does not fit the shape."""
    parts = parts_of(url)
    rest = _rest(parts, shape) if parts else None
    if parts is None or rest is None:
        return None
    branch = rest.split("/", 2)[1] if rest.count("/") > 1 else ""
    return Place(hash_place(f"{rest}?{parts.query}{parts.fragment}"), hash_place(branch))


@lru_cache(maxsize=1024)  # as for `canonical_url`
def parts_of(url: str) -> SplitResult | None:
    """Return the parts of a page's canonical URL; None if the URL is invalid, too long, or not HTTP."""
    if len(url) > MAX_URL or not url.startswith(("http://", "https://")):
        return None
    try:
        parts = split_url(canonical_url(url))
    except ValueError:  # an invalid address in brackets
        return None
    return parts if parts.netloc and parts.path.startswith("/") else None


def _rest(parts: SplitResult, shape: Shape) -> str | None:
    """Return the path of a URL on the first host, without its prefix, and without its ending if the endings differ."""
    prefix, ending = shape.prefixes[0], shape.endings[0]
    if not parts.path.startswith(f"{prefix}/"):
        return None
    rest = parts.path[len(prefix) :]
    if shape.endings == ("", ""):
        return rest
    stem, found = _stem(rest)
    return stem if stem and found == ending else None


def _stem(path: str) -> tuple[str, str]:
    """Split a path into its stem and its ending: an extension, a final slash, or nothing."""
    found = _ENDING.search(path)
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


def hash_place(text: str) -> int:
    """Return a hash of 64 bits that is equal in every process."""
    return int(mmh3.hash64(text.encode(errors="replace"), signed=False)[0])
