"""Name the stats of a crawl, and format its summary line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

PREFIX = "neardup/"
BY_DETECTOR = "duplicates/"  # followed by the name of a detector
CHANGES = "changes/"  # followed by a kind of change

Stat = Literal[
    "documents",
    "unique",
    "duplicates",
    "revisits",
    "no_text",
    "thin",
    "scripted",
    "withdrawn",
    "changed",
    "requests/skipped",
    "requests/sent_after_all",
    "requests/rechecked",
    "requests/wrongly_skipped",
    "requests/redirected",
    "requests/stopped",
    "mirror_hosts/learned",
    "mirror_hosts/dropped",
    "dead_links/redirected",
    "dead_links/rescued",
    "bytes_saved",
    "changes/new",
    "changes/changed",
    "changes/moved",
    "changes/gone",
    "store/documents",
    "store/errors",
    "store/unjudged",
    "errors",
]
"""The names of stats, without the prefix. Each detector that found a duplicate has one more, see `BY_DETECTOR`."""

_SUMMED: tuple[tuple[Stat, str], ...] = (
    ("no_text", "items without text"),
    ("withdrawn", "withdrawn"),
    ("changed", "stored since the content of their URLs changed"),
    ("requests/sent_after_all", "sent after all"),
    ("requests/redirected", "redirected to the original host"),
    ("dead_links/rescued", "dead links rescued"),
    ("requests/wrongly_skipped", "wrong skips found by rechecks"),
    ("store/unjudged", "items passed unjudged"),
    ("store/errors", "errors of the store"),
    ("errors", "errors"),
)
"""Parts of the summary line that are left out if their count is 0."""


def summary(stats: Mapping[str, Any]) -> str:
    """Return the summary line of a crawl, given Scrapy's stats."""
    return f"{plural(_number(stats, 'documents'), 'document')}: {', '.join(_parts(stats))}"


def _parts(stats: Mapping[str, Any]) -> Iterator[str]:
    share = 100 * _number(stats, "duplicates") / (_number(stats, "documents") or 1)
    yield f"{_number(stats, 'unique')} unique"
    yield f"{plural(_number(stats, 'duplicates'), 'duplicate')} ({share:.1f} %)"
    yield plural(_number(stats, "revisits"), "revisit")
    size = f" ({sized(saved)})" if (saved := _number(stats, "bytes_saved")) else ""
    yield f"{plural(_number(stats, 'requests/skipped'), 'request')} saved{size}"
    for name, text in _SUMMED:
        if number := _number(stats, name):
            yield f"{number} {text}"
    if PREFIX + "store/documents" in stats:
        yield f"{_number(stats, 'store/documents')} held in the store"


def plural(count: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless the number is 1."""
    plurals = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count} {noun if count == 1 else plurals}"


def _number(stats: Mapping[str, Any], name: Stat) -> int:
    return int(stats.get(PREFIX + name, 0))


def sized(count: float) -> str:
    """Return a number of bytes with a readable unit, such as 1.5 kB."""
    units = ["B", "kB", "MB", "GB"]
    while count >= 1000 and len(units) > 1:
        count, units = count / 1000, units[1:]
    return f"{count:.{int(units[0] != 'B')}f} {units[0]}"
