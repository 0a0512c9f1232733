"""Recognise addresses of servers, and hide their passwords for display."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ..interface import StoreError

SCHEMES = ("redis", "rediss", "valkey", "valkeys")
KINDS = (*SCHEMES, *(f"{scheme}+{kind}" for scheme in SCHEMES for kind in ("sentinel", "cluster")), "unix")


def is_server(address: str) -> bool:
    """Return whether an address is the URL of a server, such as `redis://localhost`."""
    return address.partition("://")[0] in KINDS and "://" in address


def check_client(address: str) -> None:
    """Raise StoreError if the client library of Redis is not installed."""
    try:
        import redis  # noqa: F401
    except ImportError:
        raise StoreError(
            f"store {named(address)!r} needs the extra `redis`: pip install 'scrapy-neardup[redis]'"
        ) from None


def named(address: str) -> str:
    """Return an address or a path for display, with passwords hidden."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
    except ValueError:  # an invalid address may contain a password too
        return f"{address.partition('://')[0]}://…"
    user, at, place = parts.netloc.rpartition("@")
    shown = f"{user.partition(':')[0]}:***@{place}" if at and ":" in user else parts.netloc
    query = urlencode([(key, "***" if "password" in key else value) for key, value in parse_qsl(parts.query)])
    return f"{parts.scheme}://{urlunsplit(('', shown, parts.path, query, parts.fragment)).removeprefix('//')}"
