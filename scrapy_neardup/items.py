"""Make documents from items: find the role of each field by its value. No I/O.

Roles: the item's own URL, the title, texts, *facts* (short values that say what the record is), links (facts without
their query), and ignored fields. A value of `ENOUGH` words or more is a text, because a shorter one could never be a
near-duplicate. The names of fields matter only where values do not tell: for the title, for short texts, and for the
numbers that are the same on all sites, such as an ISBN.

Nested values are read like fields, with dotted names such as `job.location`. A list of one value is read like the
value. Facts in a list count in any order.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize
from urllib.parse import urljoin
from uuid import UUID

from itemadapter import ItemAdapter
from w3lib.encoding import html_to_unicode

from .document import Document, Tree
from .facts import Kind, has_strong, pack
from .fingerprints.hashes import hash_text
from .settings import Config
from .text.html import Page, is_whole_page, looks_like_html, title_of
from .text.lines import squeeze
from .text.tokens import has_words
from .text.urls import canonical_url, host

Fact: TypeAlias = tuple[Kind, int]

ENOUGH = 20  # the words of a text
SHORT = 50  # the characters of a short text without a usual name, in an item without texts
WHOLE = 500  # an item with texts of so many characters is not compared by a whole page too
LISTED = 4  # words that the strings of a list have on average if they are paragraphs, and not tags
LEAST = 2  # facts, the title included, of a record without text
DEEP = 8  # the depth from which nested values are ignored
NEAR = 600.0  # seconds: a time from so long before the run until so long from now is the time of the crawl
FAR = 1e13  # numbers above are no times, in seconds or milliseconds since the epoch
LABEL = 80  # characters of a label
SNIFFED = 1445  # bytes at the beginning of a file that show its type

_TEXT = re.compile(
    "text|body|content|articlebody|article|maintext|html|description|summary|abstract|about"
    "|message|comment|post|review|quote|question|answer|正文|内容|文本|描述|简介|摘要|评论|回复|留言"
)
_TITLE = ("title", "headline", "heading", "name", "subject", "标题", "题目", "名称")
_URL = ("url", "link", "href", "permalink", "uri", "pageurl", "itemurl", "detailurl", "producturl")
_STRONG = re.compile(r"sku|gtin(?:8|12|13|14)?|ean(?:8|13)?|upc|asin|mpn|isbn(?:10|13)?|doi|productid")
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_LINK = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//\S+|/[^\s/]\S*|(?:mailto|tel|data):\S+|www\.\S+", re.I)
_DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?(?!\d)|(?<!\d)\d\d?[-/.]\d\d?[-/.](?:\d{4}|\d\d)(?!\d)")
_DECIMAL = re.compile(r"\d[.,]\d")
_FIGURE = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]{3}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_MONEY = re.compile("price|cost|amount|salary|fee|stock|quantity|rate")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?", re.I)
_SIMPLE = (date, time, timedelta, UUID, PurePath)


class Fetch(NamedTuple):
    """The fetch that items come from."""

    urls: tuple[str, ...] = ()
    """The URL that answered, then the URLs that redirected to it, last redirect first. Empty if these URLs alone do not
    describe the request."""
    loose: frozenset[str] = frozenset()
    """The URLs that may return other content at the next fetch."""
    size: int = 0
    """Bytes of the response."""
    tree: Tree | None = None
    """The parsed response, if it is HTML."""
    claimed: tuple[str, ...] = ()
    """The canonical URLs that the response names."""
    place: str = ""
    """The URL that answered, whatever the request was."""
    gives_one: bool = False
    """True if the response gave exactly one item."""
    times: tuple[float, float] = (0.0, 0.0)
    """The start of the run and the present, in seconds since the epoch; zeros if unknown."""


class Record:
    """An item with its fields by role."""

    def __init__(self, fields: Iterable[tuple[str, Any]], config: Config, fetch: Fetch | None) -> None:
        """`fetch` is None for a row of a feed."""
        self.roles: dict[str, str] = {}
        """The role of each field by its name."""
        self.texts: dict[str, list[str]] = {}
        self.title = ""
        self.facts: dict[str, Fact] = {}
        self.url = ""
        """The URL in the item's own URL field; "" without one."""
        self._config = config
        self._fetch = fetch or Fetch()
        self._is_row = fetch is None
        self._shorts: dict[str, str] = {}
        top = {name: value for name, value in fields if name != config.tag_field}
        self._take_url(top)
        self._take_title(top)
        for name, value in top.items():
            self._read(name, value, self.facts, 0)
        self._choose_texts()
        if not self.title:
            self._find_title()

    @classmethod
    def of(cls, item: Any, config: Config, fetch: Fetch | None = None) -> Record | None:
        """Read an item; None if itemadapter does not know its type. `fetch` is None for a row of a feed."""
        return cls(ItemAdapter(item).items(), config, fetch) if ItemAdapter.is_item(item) else None

    def roles_in_words(self) -> str:
        """Return the fields of each role: "text from body; facts date, place"."""
        said = {role: [name for name, each in self.roles.items() if each == role] for role in _SAID}
        return "; ".join(_SAID[role] % ", ".join(names) for role, names in said.items() if names)

    # The document

    def pages(self) -> list[str]:
        """Return the texts that are HTML."""
        return [text for texts in self.texts.values() for text in texts if looks_like_html(text)]

    def document(self, pages: Mapping[str, Page] | None = None) -> Document | None:
        """Return the document; None if the item has no text, and too few facts for a record.

        `pages` has extracted pages by their HTML.
        """
        parts = [self._part(text, pages or {}) for text in dict.fromkeys(t for ts in self.texts.values() for t in ts)]
        text = "\n".join(part.text for part in parts if part.text)
        fetch, (url, aliases, loose) = self._fetch, self._urls()
        if not text.strip() and not (url and self._is_record()):
            return None
        is_elsewhere = bool(self.url) and canonical_url(self.url) not in map(canonical_url, fetch.urls)
        is_alone = self._is_row or is_elsewhere or (fetch.gives_one and bool(fetch.urls))
        page = fetch.tree if fetch.tree and not is_elsewhere else None  # the layout of a list page is not the item's
        title = self.title or next((part.title for part in parts if part.title), "")
        layouts = (page.layout if page else 0, *(part.layout for part in parts))
        return Document(
            url=url,
            text=text,
            title=title or (title_of(page.root) if page and is_alone else ""),
            aliases=aliases,
            loose=loose,
            size=fetch.size,
            layout=next(filter(None, layouts), 0),
            claimed=() if is_elsewhere else fetch.claimed,
            facts=pack(self.facts),
            fact_names=tuple(self.facts),
            thin=any(part.thin for part in parts),
            has_own_url=bool(self.url) or is_alone,
            is_one_of_several=not is_alone,
            label="" if is_alone else self.label(),
        )

    def _is_record(self) -> bool:
        """Return whether the item says enough without text."""
        return has_strong(pack(self.facts)) or (bool(self.facts) and len(self.facts) + bool(self.title) >= LEAST)

    def _part(self, text: str, pages: Mapping[str, Page]) -> Document:
        if text in pages:
            return Document.from_page(pages[text], title=self.title)
        return Document.from_field(text, title=self.title, extractor=self._config.extractor, tree=self._fetch.tree)

    def _page_title(self, is_several: bool, is_elsewhere: bool) -> str:
        tree = self._fetch.tree
        return title_of(tree.root) if tree and not is_several and not is_elsewhere else ""

    def label(self) -> str:
        """Return words that name the record among others of its page: its first facts, else its title or text."""
        facts = ", ".join(f"{name} {value}" for name, value in self._shorts.items() if name in self.facts)
        texts = next(iter(self.texts.values()), [])
        return squeeze(facts or self.title or next(iter(texts), ""))[:LABEL].strip() or "an item"

    def _urls(self) -> tuple[str | None, tuple[str, ...], frozenset[str]]:
        """Return the URL of the document, its aliases, and those of these URLs that are loose."""
        own, fetch = self.url, self._fetch
        if self._is_row:
            return own or None, (), frozenset()
        if not own:
            urls = fetch.urls or ((fetch.place,) if fetch.place else ())
            return next(iter(urls), None), urls[1:], fetch.loose if fetch.gives_one and fetch.urls else frozenset(urls)
        if own == next(iter(fetch.urls), None):
            return own, fetch.urls[1:], fetch.loose
        if canonical_url(own) not in map(canonical_url, fetch.urls):
            return own, (), frozenset({own})
        return own, tuple(url for url in fetch.urls if url != own), fetch.loose

    # The own URL and the title

    def _take_url(self, top: dict[str, Any]) -> None:
        """Find the field with the item's own URL, and remove it from the fields."""
        strings = {name: text for name, value in top.items() if (text := _only_string(value))}
        links = {
            name: text for name, text in strings.items() if name == self._config.url_field or _LINK.fullmatch(text)
        }
        if name := self._url_field(links):
            self.url = self._joined(links[name])
            self._say(name, "own URL")
            del top[name]

    def _url_field(self, links: Mapping[str, str]) -> str | None:
        pages = {canonical_url(url) for url in (*self._fetch.urls, self._fetch.place) if url}
        for name in sorted(links, key=lambda name: name != self._config.url_field):
            if name == self._config.url_field or canonical_url(self._joined(links[name])) in pages:
                return name
        if self._fetch.gives_one:
            return None
        by_name = {plain(name): name for name in links}
        for each in filter(by_name.__contains__, _URL):
            site = host(self._joined(links[by_name[each]]))
            if site and (self._is_row or site.removeprefix("www.") == host(self._fetch.place).removeprefix("www.")):
                return by_name[each]
        return None

    def _joined(self, link: str) -> str:
        with suppress(ValueError):  # the value need not be a URL
            return urljoin(self._fetch.place, link) if self._fetch.place else link
        return link

    def _take_title(self, top: dict[str, Any]) -> None:
        """Find the field with the title, and remove it from the fields, unless it is a name, which is a fact too."""
        names = {plain(name): name for name in reversed(top)}
        ending = [each for each in names if each.endswith(("title", "headline"))]
        for each in (plain(self._config.title_field), *_TITLE, *ending):
            if each in names and (title := next(_strings(top[names[each]]), "")) and not _LINK.fullmatch(title):
                self.title = title
                self._say(names[each], "title")
                if each != "name" or names[each] == self._config.title_field:
                    del top[names[each]]
                return

    def _find_title(self) -> None:
        """Find the title among nested values."""
        for each in _TITLE:
            for path in sorted(self._shorts, key=lambda path: path.count(".")):
                if plain(path.rpartition(".")[2]) == each and path in self.facts:
                    self.title = self._shorts[path]
                    self._say(path, "title")
                    if each != "name":
                        del self.facts[path]
                    return

    # The other fields

    def _read(self, path: str, value: Any, facts: dict[str, Fact], depth: int) -> None:
        """Add a value to the texts, or to these facts."""
        if value is None or depth > DEEP or is_ignored(path, self._config.ignore_fields):
            if value is not None:
                self._say(path, "ignored")
        elif isinstance(value, (str, bytes)):
            for text in _strings(value):
                self._read_string(path, text, facts)
        elif isinstance(value, (list, tuple, set, frozenset)):
            self._read_list(path, list(value), facts, depth)
        elif (fact := self._simple(path, value)) is not None:
            self._add(path, str(value), fact, facts)
        elif isinstance(value, Mapping) or ItemAdapter.is_item(value):
            for name, each in value.items() if isinstance(value, Mapping) else ItemAdapter(value).items():
                self._read(f"{path}.{name}", each, facts, depth + 1)

    def _read_string(self, path: str, text: str, facts: dict[str, Fact]) -> None:
        if path in (self._config.fields or ()):
            self._add_text(path, [text])
        elif _LINK.fullmatch(text):
            self._add_link(path, text, facts)
        elif has_words(text, ENOUGH) or ("<" in text and looks_like_html(text) and _TEXT.fullmatch(plain(path))):
            if self._config.fields is None:
                self._add_text(path, [text])
            else:
                self._say(path, "ignored")
        else:
            self._add(path, text, self._string_fact(path, text), facts)

    def _add_text(self, path: str, texts: list[str]) -> None:
        self.texts.setdefault(path, []).extend(texts)
        self._say(path, "text")

    def _add_link(self, path: str, link: str, facts: dict[str, Fact]) -> None:
        """Add a link, without its query and scheme, unless it leads to the item's page."""
        if link in (self.url, self._fetch.place):
            self._say(path, "ignored")
            return
        facts[path] = Kind.OTHER, hash_text(re.sub(r"^[a-z]+:(?=//)|[?#].*", "", link, flags=re.I | re.S))
        self._say(path, "link")

    def _add(self, path: str, text: str, fact: Fact, facts: dict[str, Fact]) -> None:
        facts[path] = fact
        self._shorts.setdefault(path, text)
        self._say(path, "fact")

    def _read_list(self, path: str, values: list[Any], facts: dict[str, Fact], depth: int) -> None:
        values = [value for value in values if value not in (None, "", b"")]
        if len(values) == 1 or path in (self._config.fields or ()):
            for value in values:
                self._read(path, value, facts, depth + 1)
        elif values and all(isinstance(value, (str, bytes)) for value in values):
            self._read_strings(path, list(_strings(values)), facts)
        elif values:
            self._add_list(path, [self._element(path, value, depth) for value in values], facts)

    def _element(self, path: str, value: Any, depth: int) -> dict[str, Fact]:
        """Return the facts of a value in a list."""
        facts: dict[str, Fact] = {}
        self._read(path, value, facts, depth + 1)
        return facts

    def _read_strings(self, path: str, texts: list[str], facts: dict[str, Fact]) -> None:
        joined = "\n".join(texts)
        if any(has_words(text, ENOUGH) for text in texts) or has_words(joined, max(ENOUGH, LISTED * len(texts))):
            if self._config.fields is None:
                self._add_text(path, texts)
        else:
            self._add_list(path, [self._element(path, text, 0) for text in texts], facts)
            if path in facts and facts[path][0] is not Kind.OTHER:
                self._shorts[path] = joined

    def _add_list(self, path: str, elements: list[dict[str, Fact]], facts: dict[str, Fact]) -> None:
        """Add a list as one fact, in which the order of the elements does not count."""
        told = (sorted((name, value) for name, (_, value) in each.items()) for each in elements if each)
        values = sorted(hash_text(repr(each)) for each in told)
        kinds = {kind for each in elements for kind, _ in each.values()}
        if values:
            facts[path] = next(k for k in (Kind.WORDS, *Kind) if k in kinds), hash_text(repr(values))

    # Facts

    def _simple(self, path: str, value: Any) -> Fact | None:
        """Return a number, a date or another value of one part as a fact; None for any other value."""
        if isinstance(value, Enum):
            value = value.value if isinstance(value.value, str) else value.name
        if isinstance(value, (bool, str)):
            return Kind.WORDS, hash_text(str(value).casefold())
        if isinstance(value, (int, float, Decimal)):
            return self._number(path, value)
        if isinstance(value, datetime) and self._is_now(value):
            return _NOW
        if isinstance(value, _SIMPLE):
            return Kind.WORDS, hash_text(str(value))
        return None

    def _number(self, path: str, value: int | float | Decimal) -> Fact | None:
        if isinstance(value, int):
            written = str(value) if abs(value) < 10**18 else hex(value)
        elif not (number := Decimal(str(value))).is_finite():
            return None
        else:
            written = f"{number:f}" if abs(number.adjusted()) < 30 else str(number)
            written = written.rstrip("0").rstrip(".") if "." in written else written
        if isinstance(value, (int, float)) and abs(value) < FAR and self._is_now(float(value)):
            return _NOW
        return self._kind(path, written), hash_text(written)

    def _string_fact(self, path: str, text: str) -> Fact:
        if text[:1].isalnum() and len(text) < 50 and self._is_now(_moment(text)):
            return _NOW
        written = " ".join((text if text.isascii() else normalize("NFKC", text)).casefold().split())
        kind = self._kind(path, written)
        return kind, hash_text(re.sub(r"\W+", "", written) if kind is Kind.STRONG else written)

    def _kind(self, path: str, written: str) -> Kind:
        name = plain(path.rpartition(".")[2])
        if _STRONG.fullmatch(name):
            return Kind.STRONG
        if _DATE.search(written):
            return Kind.WORDS
        if _DECIMAL.search(written) or _MONEY.search(name):
            return Kind.OTHER
        if _FIGURE.search(written):
            return Kind.FIGURE if _LETTERS.search(written) else Kind.CODE
        return Kind.WORDS if any(map(str.isalpha, written)) else Kind.CODE

    def _is_now(self, moment: datetime | float | None) -> bool:
        """Return whether a time is that of the crawl."""
        since, now = self._fetch.times
        if not now or moment is None:
            return False
        return any(since - NEAR <= each <= now + NEAR for each in _seconds(moment))

    # The choice of texts

    def _choose_texts(self) -> None:
        """Leave out whole pages if there is enough other text. Without any text, take a short one."""
        if self._config.fields is not None:
            self.texts = {name: self.texts[name] for name in self._config.fields if name in self.texts}
            return
        if not self.texts and (path := self._short_text()):
            del self.facts[path]
            self._add_text(path, [self._shorts[path]])
        if len(self.texts) > 1:
            pages = [path for path, texts in self.texts.items() if all(map(is_whole_page, texts))]
            others = sum(len(text) for path, texts in self.texts.items() if path not in pages for text in texts)
            for path in pages if others >= WHOLE else pages[1:]:
                del self.texts[path]
                self._say(path, "ignored")

    def _short_text(self) -> str | None:
        """Return the name of the field with a short text: by its usual name, as a sentence, or by its length."""
        shorts = {path: text for path, text in self._shorts.items() if path in self.facts}
        named = [path for path in shorts if _TEXT.fullmatch(plain(path.rpartition(".")[2]))]
        said = [path for path, text in shorts.items() if _is_sentence(text) or (len(text) >= SHORT and " " in text)]
        return max(named or said, key=lambda path: len(shorts[path]), default=None)

    def _say(self, path: str, role: str) -> None:
        self.roles.setdefault(path, role)


_SAID = {
    "text": "text from %s",
    "title": "title %s",
    "own URL": "own URL %s",
    "fact": "facts %s",
    "link": "links %s",
    "ignored": "ignored %s",
}
_NOW: Fact = (Kind.WORDS, hash_text("now"))


def item_document(item: Any, config: Config, fetch: Fetch | None = None) -> Document | None:
    """Return the document of an item, as `Record.document` does. `fetch` is None for a row of a feed."""
    record = Record.of(item, config, fetch)
    return record.document() if record else None


def has_text_in(item: Any, name: str) -> bool:
    """Return whether an item has a field of this name with text."""
    return ItemAdapter.is_item(item) and any(_strings(ItemAdapter(item).get(name)))


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """Return a field's name in lower case, without separators: `productid` for `Product-Id`."""
    return re.sub(r"[_\-\s]+", "", name).lower()


@lru_cache(maxsize=4096)
def is_ignored(path: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a field is ignored. Patterns are as for files: `scraped*`, or `*` for all."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _is_sentence(text: str) -> bool:
    return text.rstrip().endswith((".", "!", "?", "…", "。", "！", "？")) and has_words(text, 2)


def _moment(text: str) -> datetime | float | None:
    """Return the time that a text gives, with date and time of day; None if it gives none."""
    text = text.strip()
    if text.isdecimal():
        return float(text) if len(text) in (10, 13) else None
    if found := _MOMENT.fullmatch(text):
        day, clock, zone = found.groups()
        with suppress(ValueError):
            made = datetime.fromisoformat(f"{day}T{clock}")
            return made if zone is None else made.replace(tzinfo=_zone(zone))
    elif text[3:4] == "," and ":" in text:
        with suppress(ValueError, TypeError, IndexError):
            return parsedate_to_datetime(text)
    return None


def _zone(zone: str) -> timezone:
    if zone[0] not in "+-":
        return timezone.utc
    minutes = 60 * int(zone[1:3]) + int(zone[-2:])
    return timezone(timedelta(minutes=minutes if zone[0] == "+" else -minutes))


def _seconds(moment: datetime | float) -> Iterator[float]:
    """Yield what a time may be in seconds since the epoch: a time without zone is of here, or in UTC."""
    if isinstance(moment, datetime):
        with suppress(OverflowError, OSError, ValueError):
            yield moment.timestamp()
            if moment.tzinfo is None:
                yield moment.replace(tzinfo=timezone.utc).timestamp()
    else:
        yield from (moment, moment / 1000)


def _is_binary(data: bytes) -> bool:
    """Return whether bytes are something other than text, such as a PDF or an image.

    Follows the MIME Sniffing Standard, sections 5 and 7.1, except that a page may have stray control characters.
    """
    if data.startswith((BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)) or data.lstrip()[:1] == b"<":
        return False
    return data.startswith(b"%PDF-") or _BINARY_BYTE.search(data, 0, SNIFFED) is not None


def _only_string(value: Any) -> str:
    """Return a string, alone or in a list, without white space around it; "" for any other value."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return value.strip() if isinstance(value, str) and len(value) < 5000 else ""


def _strings(value: Any) -> Iterator[str]:
    """Yield the non-blank strings of a value: a string, bytes, or a list of these, as item loaders make it."""
    if isinstance(value, bytes):
        value = "" if _is_binary(value) else html_to_unicode(None, value)[1]
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _strings(part)
