"""Decide by NEARDUP_PREFERRED_HOSTS whether one host outranks another. `matching/matcher.py` uses this."""

from __future__ import annotations

from collections.abc import Collection

from ..text.urls import host


class Preference:
    """The hosts in NEARDUP_PREFERRED_HOSTS. Their pages are never dropped or skipped for another host's page."""

    def __init__(self, hosts: Collection[str] = ()) -> None:
        self._hosts = frozenset(host(f"//{name}") for name in hosts)

    def __contains__(self, url: str | None) -> bool:
        return bool(self._hosts) and host(url or "") in self._hosts

    def outranks(self, url: str | None, other: str | None) -> bool:
        """Return whether `url` is on a preferred host, and `other` on another host."""
        return url in self and host(url or "") != host(other or "")
