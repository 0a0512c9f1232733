"""Observe the items and verdicts of a crawl: log the roles of fields, warn of what looks wrong, write dropped items.

Warnings suggest a wrong setting or a lost item, and come once for each problem in a crawl. The memory for the counters
is bounded, however long a crawl runs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from copy import copy
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import BaseSettings
from scrapy.signalmanager import SignalManager

from ..facts import name_of
from ..items import Record, roles_in_words
from ..settings import TAG_FIELD, Config, ConfigError
from ..signature import TITLE
from ..stats import Stat
from ..text.tokens import same_title
from ..text.urls import host
from ..verdict import Verdict, named

if TYPE_CHECKING:
    from ..deduplicator import Claim
    from ..document import Document

logger = logging.getLogger(__name__)

MOST_TOLD = 50  # after so many fields of a type of item, the log names no more
ITEMS = 20  # items that must be counted before a warning, or copies of one original
SHARE = 0.05  # a warning follows if more than this share of the documents of a host are copies of one original
COUNTED = 10_000  # the maximum number of hosts and originals that are counted; those seen longest ago are forgotten


class Observer:
    """Observes the items of a crawl: logs the roles of their fields, and warns of each problem once."""

    def __init__(self, config: Config) -> None:
        # By type of item: the fields that were logged, with their roles.
        self._told: dict[type, set[tuple[str, str]]] = {}
        self._items = self._textless = self._located = self._homeless = 0
        self._documents = self._compared = self._others = 0
        # By fact: the number of documents that repeat an earlier text, and differ from it in this fact alone.
        self._lone: Counter[int] = Counter()
        # By host and original: the number of the next copy; by host and "": that of the next document.
        self.numbers = lru_cache(COUNTED)(lambda name, original: count(1))
        # The fields that the settings name and no item had so far.
        self._missing = dict.fromkeys(config.fields or (), "NEARDUP_FIELDS")
        if config.url_field != Config().url_field:
            self._missing[config.url_field] = "NEARDUP_URL_FIELD"
        self._checks: list[Callable[[Document | None, Claim | None], str]] = [
            *(self._of_textless, self._of_missing, self._of_homeless),
            *(self._of_one_original, self._of_titles, self._of_lone_facts),
        ]

    def note(self, kind: type, record: Record | None, document: Document | None, claim: Claim | None) -> None:
        """Count an item of the class `kind`, also one without a verdict. Log new roles of its fields, and warn."""
        if record:
            self._tell_roles(kind, record.roles)
            self._missing = {name: by for name, by in self._missing.items() if name not in record.roles}
        elif document is None:
            if kind not in self._told:
                self._told[kind] = set()
                logger.warning("Items of %s pass without a verdict, since itemadapter does not know them", kind)
            return
        self._items += 1
        self._documents += claim is not None
        for check in [*self._checks]:
            if warning := check(document, claim):
                self._checks.remove(check)
                logger.warning("%s", warning)

    def end(self) -> None:
        """Warn if a crawl with few items ends, and none of them had text."""
        if 0 < self._textless == self._items < ITEMS:
            logger.warning("%s", self._without_text("All"))

    def _tell_roles(self, kind: type, roles: dict[str, str]) -> None:
        """Log the fields that are new for this type of item, or have a new role. After `MOST_TOLD` fields, log none."""
        told = self._told.setdefault(kind, set())
        new = {name: role for name, role in roles.items() if (name, role) not in told}
        if new and len(told) < MOST_TOLD:
            told.update(new.items())
            logger.info("Items of type %s: %s", kind.__name__, roles_in_words(new))

    def _of_textless(self, document: Document | None, claim: Claim | None) -> str:
        self._textless += not (document and document.has_tokens)
        return self._without_text("Most") if _is_most(self._textless, self._items) else ""

    def _without_text(self, share: str) -> str:
        return (
            f"{share} items have no text: {self._textless} of {self._items}. They pass, unless all their fields repeat"
            " an item of the same page, or one with the same number, such as an ISBN. Check which fields the spider"
            " fills, and whether NEARDUP_FIELDS names the fields with the text"
        )

    def _of_missing(self, document: Document | None, claim: Claim | None) -> str:
        if self._items != ITEMS or not self._missing:
            return ""
        fields = ", ".join(f"{name!r} ({by})" for name, by in self._missing.items())
        return f"None of {ITEMS} items has the field {fields}. Check the name in the setting"

    def _of_homeless(self, document: Document | None, claim: Claim | None) -> str:
        self._located += document is not None
        if document is None or document.has_own_url:
            return ""
        self._homeless += 1
        if not _is_most(self._homeless, self._located):
            return ""
        return (
            f"Most items have no URL of their own: {self._homeless} of {self._located}, such as one of {document.url}."
            " So no request is skipped because of them, and `changes` lists only new and gone ones. If a field has"
            " their URL, name it in NEARDUP_URL_FIELD"
        )

    def _of_lone_facts(self, document: Document | None, claim: Claim | None) -> str:
        if not document or not claim or claim.apart is None:
            return ""
        other, fact = claim.apart
        self._lone[fact] += 1
        if not _is_most(self._lone[fact], self._documents):
            return ""
        field = next((name for name in document.fact_names if name_of(name) == fact), "a field")
        return (
            f"{self._lone[fact]} of {self._documents} documents repeat an earlier text, and only the field"
            f" {field!r} keeps them apart, such as {named(document.url, document.label)} and"
            f" {named(other.url, other.label)}. If this field says nothing of the item, name it in"
            " NEARDUP_IGNORE_FIELDS"
        )

    def _of_titles(self, document: Document | None, claim: Claim | None) -> str:
        original = claim.match.signature if claim and claim.match and claim.verdict.status == "duplicate" else None
        if not document or not original or not (document.title and original.title):
            return ""
        self._compared += 1
        is_same = same_title(original.title, document.title[:TITLE])
        self._others += not is_same
        if is_same or not _is_most(self._others, self._compared):
            return ""
        return (
            f"The titles of most duplicates differ from their original's: {self._others} of {self._compared}. For"
            f" example, {document.title[:TITLE]!r} ({document.url}) was judged a copy of {original.title!r}"
            f" ({original.url}). Check whether these two pages have the same content. If not, raise NEARDUP_RESEMBLANCE"
        )

    def _of_one_original(self, document: Document | None, claim: Claim | None) -> str:
        name = host(document.url) if document and document.url else ""
        if not claim or not name:
            return ""
        documents, original = next(self.numbers(name, "")), claim.verdict.duplicate_of
        if claim.verdict.status != "duplicate" or not original:
            return ""
        copies = next(self.numbers(name, original))
        if copies < ITEMS or copies <= SHARE * documents:
            return ""
        return (
            f"{copies} of {documents} documents of {name} are copies of {original}. Check whether they have"
            f" the same content: `scrapy neardup explain {original}` lists them. The repeated text may be a login page,"
            " an error page or a template"
        )


def _is_most(part: int, count: int) -> bool:
    return count >= ITEMS and 2 * part > count


class DroppedFeed:
    """Writes each item that NEARDUP_ACTION = "drop" drops, or would drop, with its verdict to NEARDUP_DROPPED."""

    def __init__(self, crawler: Crawler, uri: str, count: Callable[[Stat], object]) -> None:
        """Open the feed. Raise ConfigError if Scrapy has no storage or format for its URI."""
        assert crawler.spider
        self._spider, self._count = crawler.spider, count
        self._is_failing = False
        try:
            self._exporter = FeedExporter(_with_one_feed(crawler, uri))
            self._exporter.open_spider(self._spider)
        except Exception as error:  # a storage may raise anything for an invalid URI
            why = f": {error!r}" if error.args else ""  # Scrapy has logged the reason for an empty NotConfigured
            allowed = "a feed URI with a scheme in FEED_STORAGES and a file extension in FEED_EXPORTERS"
            raise ConfigError(f"NEARDUP_DROPPED = {uri!r} is not allowed{why}; allowed is {allowed}") from error
        crawler.signals.connect(self._exporter.close_spider, signal=signals.spider_closed)

    def write(self, item: Any, url: str | None, verdict: Verdict) -> None:
        """Write a dropped item. Items that can't be written are counted, and the first error is logged."""
        try:
            self._exporter.item_scraped(self._row(item, url, verdict), self._spider)
        except Exception as error:  # neither a full disk nor a value in the item may harm the crawl
            self._count("errors")
            if not self._is_failing:
                self._is_failing = True
                logger.error("Dropped items can't be written to NEARDUP_DROPPED: %r", error)

    def _row(self, item: Any, url: str | None, verdict: Verdict) -> dict[str, Any]:
        """Return the fields of an item as the crawl's feed would have them, and its tag, to which the URL is added."""
        adapter = ItemAdapter(item)
        row = {
            name: adapter.get_field_meta(name).get("serializer", lambda each: each)(adapter[name]) for name in adapter
        }
        return {**row, TAG_FIELD: {"url": url, **verdict.tag()}}


def _with_one_feed(crawler: Crawler, uri: str) -> Crawler:
    """Return a copy of a crawler with the feed of dropped items as its only feed.

    The copy has signals of its own, so that handlers for the crawl's feeds do not see this feed.
    """
    format_ = Path(uri).suffix.removeprefix(".") or "jsonlines"
    feed = {"format": format_, "fields": None, "batch_item_count": 0}  # all fields, one file
    made: Any = copy(crawler)
    made.settings = BaseSettings({**crawler.settings, "FEEDS": {uri: feed}, "FEED_URI": None})
    made.signals = SignalManager(made)
    return cast("Crawler", made)
