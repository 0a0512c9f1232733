"""Recognise addresses of servers, and hide their passwords for display."""

from __future__ import annotations

import re

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
        advice = "needs the extra `redis`: pip install 'scrapy-neardup[redis]'"
        raise StoreError(f"store {named(address)!r} {advice}") from None


def named(address: str) -> str:
    """Return an address or a path for display, with passwords hidden."""
    hidden = re.sub(r"(://[^:@]*:).*@", r"\1***@", address)  # up to the last @, since an invalid password may have one
    return re.sub(r"(password=)[^&]*", r"\1***", hidden) if "://" in address else address
