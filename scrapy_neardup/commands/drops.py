"""Collect drops to review from feeds, each copy with its original."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..document import Document
from ..feeds import Feeds
from ..items import item_document
from ..matching.evidence import Comparison, Rule, compare
from ..matching.reviews import Reviews
from ..settings import Config, literal
from ..text.urls import canonical_url
from .feed_options import with_fields


class Drop(NamedTuple):
    """A dropped document and its original."""

    copy: Document
    original: Document
    found: Comparison
    needed: float
    """The required resemblance for texts of this length."""
    detector: str

    @classmethod
    def of(cls, copy: Document, original: Document, detector: str, rule: Rule) -> Drop:
        found = compare(original.sketch, copy.sketch)
        return cls(copy, original, found, rule.required_resemblance(found.tokens), detector)


class _Tag(NamedTuple):
    """The tag of a dropped item."""

    url: str
    duplicate_of: str
    detector: str


class Drops:
    """Collects drops in two passes over the feeds. Only texts of drops and originals stay in memory."""

    def __init__(self, opts: argparse.Namespace, config: Config, reviews: Reviews) -> None:
        self.missing: list[str] = []
        """For each drop that can't be shown, the reason."""
        self.without_url = self.judged = 0
        self._opts, self._config, self._reviews = opts, config, reviews
        self._tags: dict[frozenset[str], _Tag] = {}
        self._copies: dict[str, Document] = {}
        self._kept: dict[str, Document] = {}

    def read(self) -> list[Drop]:
        """Return the drops that are not judged yet, least certain first."""
        self._read_tags()
        self._read_kept()
        return sorted(self._drops(), key=lambda drop: (drop.found.resemblance - drop.needed, drop.copy.url or ""))

    def _read_tags(self) -> None:
        for data, config, tag in self._rows():
            if tag is None or tag.get("status") != "duplicate":
                continue
            url = _name(tag.get("url") or tag.get("id") or data.get(config.url_field))
            original = _name(tag["duplicate_of"])
            if not url or not original or canonical_url(url) == canonical_url(original):
                self.without_url += 1
            else:
                pair = frozenset(map(canonical_url, (url, original)))
                self._tags.setdefault(pair, _Tag(url, original, str(tag.get("detector"))))
                if data is not tag:
                    _add(self._copies, url, data, config, url)

    def _read_kept(self) -> None:
        wanted = {canonical_url(name) for tag in self._tags.values() for name in (tag.url, tag.duplicate_of)}
        for data, config, tag in self._rows():
            if tag is None or (data is not tag and tag.get("status") != "duplicate"):
                for name in map(_name, (data.get(self._opts.id_field or ""), data.get(config.url_field))):
                    if canonical_url(name) in wanted:
                        _add(self._kept, name, data, config)

    def _rows(self) -> Iterator[tuple[Mapping[str, Any], Config, Mapping[str, Any] | None]]:
        """Yield each row, its configuration and its tag or None. A row of `dedupe --duplicates` is its own tag."""
        for path in self._opts.feeds:
            feeds = Feeds([path])
            config = with_fields(self._config, self._opts, feeds.kind)
            for row in feeds.rows():
                tag = literal(row.data.get(config.tag_field))
                if not isinstance(tag, Mapping) and {"id", "status", "duplicate_of"} <= row.data.keys():
                    tag = row.data
                yield row.data, config, tag if isinstance(tag, Mapping) and "duplicate_of" in tag else None

    def _drops(self) -> Iterator[Drop]:
        rule = Rule.from_config(self._config)
        for tag in self._tags.values():
            url, original_url = canonical_url(tag.url), canonical_url(tag.duplicate_of)
            copy, original = self._copies.get(url) or self._kept.get(url), self._kept.get(original_url)
            if copy is None:
                self.missing.append(f"{tag.url}: its text is in none of the feeds")
            elif original is None:
                self.missing.append(f"{tag.url}: its original {tag.duplicate_of} is in none of the feeds")
            elif not copy.url or not original.url:
                self.without_url += 1
            elif self._reviews.label(copy.url, original.url):
                self.judged += 1
            else:
                yield Drop.of(copy, original, tag.detector, rule)


def _name(value: Any) -> str:
    """Return a URL or id as text. Of a list, which item loaders make, use the first element."""
    if isinstance(value, (list, tuple)):
        value = next(iter(value), None)
    return "" if value is None else str(value)


def _add(
    documents: dict[str, Document], name: str, data: Mapping[str, Any], config: Config, url: str | None = None
) -> None:
    """Add the document of a row under a name, unless the name is taken or the document has no words.

    `url` replaces the row's own URL.
    """
    document = None if canonical_url(name) in documents else item_document(data, config)
    if document and document.lines:
        documents[canonical_url(name)] = replace(document, url=url or document.url)
