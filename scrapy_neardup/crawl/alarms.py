"""Warn of results that suggest a wrong setting, once for each problem in a crawl.

No Scrapy, no I/O. The memory for the counters is bounded, however long a crawl runs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from heapq import nlargest
from typing import Any, TypeVar

from ..items import has_text_in
from ..matching.claim import Claim
from ..settings import Config
from ..text.lines import squeeze
from ..text.urls import host

logger = logging.getLogger(__name__)

T = TypeVar("T")

ITEMS = 50  # items that must be counted before a warning
PAGES = 200  # documents of a host that must be counted before a warning on one of its originals
SHARE = 0.05  # a warning follows if more than this share of a host's documents are copies of one original
# The maximum number of counted originals of a host. When it is reached, the larger half is kept. This is enough, since
# fewer than 20 originals can have more than SHARE of the documents.
ORIGINALS = 40
HOSTS = 256  # the maximum number of counted hosts
_SHOWN = 80  # the maximum number of characters of a title in a message
_SEPARATOR = re.compile(r"\s+[|–—·»:_-]+\s+|:\s+|(?<=[^\x00-\x7f])[|_-]+|[|_-]+(?=[^\x00-\x7f])|｜")


class Alarms:
    """Watches the outcomes of a crawl's items, and warns of each problem once."""

    def __init__(self, config: Config) -> None:
        self._textless = Textless()
        self._of_items: list[Callable[[Any, bool], str]] = [self._textless.warning, MissingFields(config).warning]
        self._of_claims: list[Callable[[Claim], str]] = [Crowds().warning, OtherTitles().warning]

    def see(self, item: Any, *, has_text: bool) -> None:
        """Count an item. Items without a verdict count too."""
        self._of_items = [check for check in self._of_items if not _warn(check(item, has_text))]

    def end(self) -> None:
        """Warn if a crawl with few items ends, and none of them had text."""
        _warn(self._textless.final_warning())

    def judge(self, claim: Claim) -> None:
        """Count the verdict of a claim."""
        self._of_claims = [check for check in self._of_claims if not _warn(check(claim))]


def _warn(warning: str) -> bool:
    if warning:
        logger.warning("%s", warning)
    return bool(warning)


class Textless:
    """Counts items without text."""

    def __init__(self) -> None:
        self._items = self._textless = 0

    def warning(self, item: Any, has_text: bool) -> str:
        self._items += 1
        self._textless += not has_text
        return "" if self._items < ITEMS or 2 * self._textless <= self._items else self._message("Most")

    def final_warning(self) -> str:
        return self._message("All") if 0 < self._textless == self._items < ITEMS else ""

    def _message(self, share: str) -> str:
        return (
            f"{share} items have no text: {self._textless} of {self._items}. They pass without a verdict. Check which"
            " fields the spider fills, and whether NEARDUP_FIELDS names the fields with the text"
        )


class MissingFields:
    """Looks for fields that the settings name and no item has."""

    def __init__(self, config: Config) -> None:
        self._items = 0
        self._missing = dict.fromkeys(config.fields or (), "NEARDUP_FIELDS")
        if config.url_field != Config().url_field:
            self._missing[config.url_field] = "NEARDUP_URL_FIELD"

    def warning(self, item: Any, has_text: bool) -> str:
        self._missing = {name: by for name, by in self._missing.items() if not has_text_in(item, name)}
        self._items += 1
        if self._items != ITEMS or not self._missing:
            return ""
        named = ", ".join(f"{name!r} ({by})" for name, by in self._missing.items())
        return f"None of {ITEMS} items has the field {named}. Check the name in the setting"


class _Original:
    """The number of copies of an original on one host."""

    __slots__ = ("copies", "urls")

    def __init__(self) -> None:
        self.copies = 0
        self.urls: list[str] = []
        """The URLs of the first two copies."""

    def add(self, url: str) -> None:
        self.copies += 1
        if len(self.urls) < 2:
            self.urls.append(url)


class _Host:
    """The number of documents of a host, and the originals of its copies by URL."""

    __slots__ = ("documents", "originals")

    def __init__(self) -> None:
        self.documents = 0
        self.originals: dict[str, _Original] = {}


class Crowds:
    """Counts, for each host, the documents that are copies of one original."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    def warning(self, claim: Claim) -> str:
        url, verdict = claim.document.url, claim.verdict
        if not url or not (name := host(url)):
            return ""
        self._hosts = _largest(self._hosts, HOSTS, lambda each: each.documents)
        known = self._hosts.setdefault(name, _Host())
        known.documents += 1
        if verdict.status == "duplicate" and verdict.duplicate_of:
            known.originals = _largest(known.originals, ORIGINALS, lambda each: each.copies)
            known.originals.setdefault(verdict.duplicate_of, _Original()).add(url)
        elif known.documents != PAGES:  # no original has more copies than before
            return ""
        return _crowded(name, known) if known.documents >= PAGES and known.originals else ""


def _crowded(name: str, known: _Host) -> str:
    url, original = max(known.originals.items(), key=lambda pair: pair[1].copies)
    if original.copies <= SHARE * known.documents:
        return ""
    return (
        f"{original.copies} of {known.documents} documents of {name} are copies of {url}. Check whether"
        f" {' and '.join(original.urls)} have the same content. The repeated text may be a login page, an error page or"
        " a template"
    )


def _largest(counted: dict[str, T], most: int, size: Callable[[T], int]) -> dict[str, T]:
    """Return the counts. If there are `most` or more, return only the half with the largest counts."""
    if len(counted) < most:
        return counted
    return dict(nlargest(most // 2, counted.items(), key=lambda pair: size(pair[1])))


class OtherTitles:
    """Counts the duplicates with a title that differs from the title of their original."""

    def __init__(self) -> None:
        self._compared = self._others = 0

    def warning(self, claim: Claim) -> str:
        document, original = claim.document, claim.match.signature if claim.match else None
        if original is None or claim.verdict.status != "duplicate" or not (document.title and original.title):
            return ""
        self._compared += 1
        if same_title(original.title, document.title):
            return ""
        self._others += 1
        if self._compared < ITEMS or 2 * self._others <= self._compared:
            return ""
        return (
            f"The titles of most duplicates differ from their original's: {self._others} of {self._compared}. For"
            f" example, {_shown(document.title)} ({document.url}) was judged a copy of {_shown(original.title)}"
            f" ({original.url}). Check whether these two pages have the same content. If not, set"
            " NEARDUP_IDENTITY_FIELDS or raise NEARDUP_RESEMBLANCE"
        )


def same_title(first: str, second: str) -> bool:
    """Return whether two titles are equal apart from the names of their sites."""
    first, second = (squeeze(title).casefold() for title in (first, second))
    return first in second or second in first or _longest_part(first) == _longest_part(second)


def _longest_part(title: str) -> str:
    return max(_SEPARATOR.split(title), key=len)


def _shown(title: str) -> str:
    title = squeeze(title)
    return repr(title[:_SHOWN] + "…" * (len(title) > _SHOWN))
