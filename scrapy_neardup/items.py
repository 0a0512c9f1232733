"""Make documents from items, without I/O: find the role of each field by its value.

The roles are: own URL, title, text, *fact* (a short value that says what the record is), link (a fact, without most of
its query), and ignored. A value of `ENOUGH` words or more is a text, because a shorter one could never be a
near-duplicate. The names of fields matter only where values do not tell enough: for the title, for short texts, and for
the numbers that are the same on all sites, such as an ISBN.

Nested values are read like fields, with dotted names such as `job.location`. A list of one value is read like the
value. Facts in a list count in any order.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from numbers import Number
from typing import Any, NamedTuple
from urllib.parse import urljoin

from itemadapter import ItemAdapter
from w3lib.encoding import html_to_unicode
from w3lib.html import replace_entities, replace_tags

from .document import Document, Tree
from .facts import Clock, Fact, Kind, brief, fact_of, link_fact, list_fact, nested_fact, pack, plain, string_fact
from .fingerprints.hashes import hash_bytes
from .settings import TAG_FIELD, Config
from .text.html import PageText, is_whole_page, looks_like_html, title_of
from .text.main_text import squeeze
from .text.tokens import folded, has_words
from .text.urls import canonical_url, home

# Names of fields that say something of the crawl, and nothing of the record. They are compared as `plain` returns them.
_OF_THE_CRAWL = re.compile(
    r"(?:.*\.)?(?:spider|referer|scrape(?!rs?$).+|crawl(?!space|er(?!r)).+|(?:fetched|retrieved|downloaded|抓取).*"
    "|(?:date|last|time)(?:scraped|crawled))"
)
# What Scrapy's media pipelines note of a download, which says nothing of the file.
OF_THE_DOWNLOAD = ("path", "status")
DOWNLOADED = ("downloaded", "uptodate", "cached")
ALL = "*"  # in NEARDUP_IGNORE_FIELDS: all facts
ENOUGH = 20  # the minimum words of a text
SHORT = 50  # if an item has no text, a string of so many characters may be it, whatever the name of the field
WHOLE = 500  # if an item has texts of so many characters in all, a field with its whole page is left out
WORDY = 100  # an HTML text of so many words says enough, so its pictures, videos and files do not count
LISTED = 4  # words that the strings of a list have on average if they are paragraphs, and not tags
LEAST = 2  # the minimum facts, the title included, of a record without text
DEEP = 14  # the depth from which nested values are ignored
LABEL = 80  # characters of a label
LONGEST = 5000  # the maximum characters of a URL or a title
SNIFFED = 1445  # bytes at the beginning of a file that show its type

_TEXT = re.compile(
    "text|body|content|articlebody|article|maintext|html|description|summary|abstract|about"
    "|message|comment|post|review|quote|question|answer|正文|内容|文本|描述|简介|摘要|评论|回复|留言"
)
_SHORT_TEXT = re.compile(f"(?:full)?(?:{_TEXT.pattern}|paragraphs?){{1,3}}")  # also "review_text"
_TITLE = (
    *("title", "headline", "heading", "name", "subject", "titel", "titre", "título", "titulo", "titolo", "tytuł"),
    *("başlık", "заголовок", "название", "العنوان", "عنوان", "शीर्षक", "หัวข้อ", "제목"),
    *("标题", "题目", "名称", "タイトル", "題名"),
)
_RANKS = ("position", "rank", "hits")
_URL = ("url", "link", "href", "permalink", "uri", "pageurl", "itemurl", "detailurl", "producturl")
_AS_OBJECT: Any = object.__str__  # gives no value, only its place in memory
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
# The beginnings of links that lead to no page.
_NO_PAGE = re.compile(r"(?:javascript|mailto|tel|sms|skype|whatsapp|magnet|about|data):|https?:(?:///|/*$)", re.I)
# Pictures, videos and links in an HTML text. Of the links, only those to files count.
_MEDIA = re.compile(
    r"""<(img|iframe|video|audio|source|embed|a)\b[^<>]*?\s(?:src|href)\s*=\s*("[^"]+"|'[^']+'|[^"'\s>]+)""", re.I
)
_FILE = re.compile(r"\.(?:pdf|docx?|xlsx?|pptx?|odt|csv|epub|zip|mp3|mp4)\b", re.I)
_LINK = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//\S+|/[^\s/]\S*|(?:mailto|tel|data):\S+|www\.\S+", re.I)


class Fetch(NamedTuple):
    """The response that gave an item, as far as the item needs it; empty for a row of a feed."""

    urls: tuple[str, ...] = ()
    """The URL that answered, then the URLs that redirected to it, last redirect first. Empty if URLs alone do not
    describe the request, such as a POST."""
    loose: frozenset[str] = frozenset()  # the URLs that may return other content at the next fetch
    tree: Tree | None = None  # the parsed response, if it is HTML
    claimed: tuple[str, ...] = ()  # the canonical URLs that the response names
    place: str = ""  # the URL that answered, also to a POST
    base: str = ""  # what relative links of the response start from
    gives_one: bool = False  # true if the response gave exactly one item
    clock: Clock = Clock()  # the start of the run and the present
    body: bytes = b""  # the content of the response
    encoding: str | None = None  # the encoding of the response; None if it is not text

    def decoded(self, data: bytes) -> str:
        """Decode bytes of an item. If they are the body, use the encoding of the response; else detect an encoding."""
        encoding = self.encoding if data == self.body else None
        if encoding is None and not data.isascii():  # bytes in ASCII may be ISO-2022-JP, which their page declares
            with suppress(UnicodeDecodeError):
                data.decode()
                encoding = "utf-8"
        return html_to_unicode(encoding and f"charset={encoding}", data, default_encoding=self.encoding or "utf-8")[1]


class Record:
    """An item with its fields by role."""

    def __init__(self, fields: Iterable[tuple[str, Any]], config: Config, fetch: Fetch | None) -> None:
        """Find the roles of the fields, given as names and values. `fetch` is None for a row of a feed."""
        self.roles: dict[str, str] = {}  # the role of each field by its name
        self.texts: dict[str, list[str]] = {}
        self.title = ""
        self.facts: dict[str, Fact] = {}
        self.url = ""  # the own URL, if a field has it
        self._config = config
        self._fetch = fetch or Fetch()
        self._is_row = fetch is None
        self._binary: set[str] = set()  # the fields with binary values
        self._phrases: dict[str, Fact] = {}  # the facts of lists of phrases; the lists are also texts
        self._values: dict[str, Any] = {}
        """The values of facts, by name of field. They make the label, and a string may become the title or a text."""
        top = {str(name): value for name, value in fields if name != TAG_FIELD}
        self._take_url(top)
        self._take_title(top)
        for name, value in top.items():
            self._read(name, value, self.facts, 0)
        self._choose_texts()
        self._ignore_beside_text()
        if ALL in config.ignore_fields:
            self.roles.update(dict.fromkeys(self.facts.keys() - self.texts.keys(), "ignored"))
            self.facts.clear()
        if not self.title and any("." in path for path in self.facts):
            self._find_title()

    @classmethod
    def of(cls, item: Any, config: Config, fetch: Fetch | None = None) -> Record | None:
        """Return an item's record; None if itemadapter does not know its type. `fetch` is None for a row of a feed."""
        if type(item) is dict:  # the most frequent type, without an adapter
            return cls(item.items(), config, fetch)
        return cls(ItemAdapter(item).items(), config, fetch) if ItemAdapter.is_item(item) else None

    # The document

    def pages(self) -> list[str]:
        return [text for texts in self.texts.values() for text in texts if looks_like_html(text)]

    def document(self, pages: Mapping[str, PageText] | None = None) -> Document | None:
        """Return the document; None if the item has neither text nor enough facts for a record.

        `pages` maps HTML to the page already extracted from it.
        """
        fetch, read = self._fetch, (pages or {}).get
        texts = dict.fromkeys(text for texts in self.texts.values() for text in texts)
        options: Any = {"extractor": self._config.extractor, "tree": fetch.tree}
        parts = [Document.from_field(text, page=read(text), **options) for text in texts]
        text = "\n".join([part.text for part in parts if part.text])
        is_of_page = canonical_url(self.url) in map(canonical_url, fetch.urls)
        is_elsewhere = self._is_row or (bool(self.url) and not is_of_page)
        url, aliases, loose = self._urls(is_elsewhere=is_elsewhere)
        if not text.strip() and not (url and self._is_record()):
            return None
        is_alone = is_elsewhere or (fetch.gives_one and bool(fetch.urls))
        page = fetch.tree if fetch.tree and not is_elsewhere else None  # the layout of a list page is not the item's
        title = self.title or next((part.title for part in parts if part.title), "")
        layouts = (page.layout if page else 0, *(part.layout for part in parts))
        return Document(
            url=url,
            text=text,
            title=title or (title_of(page.root) if page and is_alone and not self.facts else ""),
            aliases=aliases,
            loose=loose,
            size=len(fetch.body),
            layout=next(filter(None, layouts), 0),
            claimed=() if is_elsewhere else fetch.claimed,
            facts=pack(self.facts),
            fact_names=tuple(self.facts),
            thin=any(part.thin for part in parts),
            scripted=any(part.scripted for part in parts),
            has_own_url=bool(self.url) or is_alone,
            is_one_of_several=not is_alone,
            page="" if fetch.gives_one or not fetch.urls else fetch.place,
            label="" if is_alone else self.label(),
        )

    def _is_record(self) -> bool:
        """Return whether the facts are enough for a record without text."""
        is_strong = any(kind is Kind.STRONG for kind, _ in self.facts.values())
        return is_strong or (bool(self.facts) and len(self.facts) + bool(self.title) >= LEAST)

    def label(self) -> str:
        """Return words that name the record among others of its page: its first facts, else its title or text."""
        facts = ", ".join(
            f"{name} {brief(value[0] if isinstance(value, list) else value)}"
            for name, value in self._values.items()
            if name in self.facts and name not in self.texts
        )
        texts = next(iter(self.texts.values()), [])
        return squeeze(facts or self.title or next(iter(texts), ""))[:LABEL].strip() or "an item"

    def _urls(self, *, is_elsewhere: bool) -> tuple[str | None, tuple[str, ...], frozenset[str]]:
        """Return the URL, aliases and loose URLs. `is_elsewhere`: a row, or an item whose own URL was not fetched."""
        own, fetch = self.url, self._fetch
        if not own:
            urls = fetch.urls or ((fetch.place,) if fetch.place else ())
            return next(iter(urls), None), urls[1:], fetch.loose if fetch.gives_one and fetch.urls else frozenset(urls)
        if is_elsewhere:
            return own, (), frozenset() if self._is_row else frozenset({own})
        return own, tuple(url for url in fetch.urls if url != own), fetch.loose

    # The own URL and the title

    def _take_url(self, top: dict[str, Any]) -> None:
        """Find the item's own URL among the fields `top`, keep it in `url`, and remove its field from `top`."""
        if name := self._url_field(top):
            self.url = self._joined(_only_string(top.pop(name)))
            self.roles.setdefault(name, "own URL")

    def _url_field(self, top: Mapping[str, Any]) -> str | None:
        named = self._config.url_field
        if (url := _only_string(top.get(named))) and (self._is_row or not _NO_PAGE.match(url)):
            return named
        if self._is_row and named != _URL[0]:
            return None
        links = {name: text for name, value in top.items() if _is_link(text := _only_string(value))}
        pages = {canonical_url(url) for url in (*self._fetch.urls, self._fetch.place) if url and links}
        for name in links if pages else ():
            if canonical_url(self._joined(links[name])) in pages:
                return name
        if self._fetch.gives_one:
            return None
        by_name = {plain(name): name for name in links}
        for each in filter(by_name.__contains__, _URL):
            site = home(self._joined(links[by_name[each]]))
            if site and (self._is_row or site == home(self._fetch.place)):
                return by_name[each]
        return None

    def _joined(self, link: str) -> str:
        if self._fetch.place and not link.startswith(("http://", "https://")):
            with suppress(ValueError):  # the value need not be a URL
                return urljoin(self._fetch.base or self._fetch.place, link)
        return link

    def _take_title(self, top: dict[str, Any]) -> None:
        """Find the title in `top`. Remove its field, unless the field is `name` (also a fact) or in NEARDUP_FIELDS."""
        for name in _title_fields(tuple(top), self._config.title_field):
            title = next(_strings(top[name], self._fetch), "")
            if title and not _is_link(title):
                self.title = title
                self.roles.setdefault(name, "title")
                is_name = plain(name) == "name" and name != self._config.title_field
                if not is_name and name not in (self._config.fields or ()) and _only_string(top[name]):
                    del top[name]
                return

    def _shorts(self) -> dict[str, str]:
        """Return the strings among the values of facts, by name of field."""
        return {path: value for path, value in self._values.items() if path in self.facts and isinstance(value, str)}

    def _find_title(self) -> None:
        """Find the title among nested values: beside a text, as `job.title` beside `job.description`, or a level above.

        `title.rendered` counts as `title`. The nearest title counts. If it is beside the text, it is no fact any more.
        """
        shorts = {path: text for path, text in self._shorts().items() if "." in path} if self.texts else {}
        beside = {path.rpartition(".")[0] for path in self.texts}
        above = {"", *beside, *(parent[: dot.start()] for parent in beside for dot in re.finditer(r"\.", parent))}
        number, found = Counter(path.rpartition(".")[0] for path in shorts), []
        for path in shorts:
            parent, _, last = path.rpartition(".")
            if plain(last) not in _TITLE and number[parent] == 1:
                parent, _, last = parent.rpartition(".")
            if parent in above and plain(last) in _TITLE:
                found.append((-len(parent), _TITLE.index(plain(last)), path))
        if found:
            *_, path = min(found)
            self.title, self.roles[path] = shorts[path], "title"
            parent, _, last = path.rpartition(".")
            if parent in beside and plain(last) != "name":
                del self.facts[path]

    # The other fields

    def _read(self, path: str, value: Any, facts: dict[str, Fact], depth: int = 0) -> None:
        """Add a value to the texts, or to `facts`. Values nested deeper than `DEEP` are left out."""
        if value is None or depth > DEEP:
            return
        if self._is_ignored(path, value):
            self.roles.setdefault(path, "ignored")
        elif isinstance(value, bytes) and _is_binary(value):
            facts[path] = Kind.OTHER, hash_bytes(value)
            self._binary.add(path)
            self.roles.setdefault(path, "fact")
        elif isinstance(value, (str, bytes)):
            for text in _strings(value, self._fetch):
                self._read_string(path, text, facts)
        elif isinstance(value, (list, tuple, set, frozenset)):
            values = value if isinstance(value, (list, tuple)) else sorted(value, key=str)
            self._read_list(path, [each for each in values if each is not None], facts, depth)
        elif fact := fact_of(path, value, self._fetch.clock):
            facts[path] = fact
            self._say_fact(path, value)
        elif isinstance(value, Mapping) or ItemAdapter.is_item(value):
            nested = value if isinstance(value, Mapping) else ItemAdapter(value)
            is_download = "path" in nested and nested.get("status") in DOWNLOADED
            for name, each in nested.items():
                if is_download and name in OF_THE_DOWNLOAD:
                    self.roles.setdefault(f"{path}.{name}", "ignored")
                else:
                    self._read(f"{path}.{name}", each, facts, depth + 1)
        elif not isinstance(value, Number) and type(value).__str__ is not _AS_OBJECT:  # such as a URL of pydantic
            self._read_string(path, str(value), facts)

    def _is_ignored(self, path: str, value: Any) -> bool:
        if path in (self._config.fields or ()):
            return False
        of_crawl = not path or _OF_THE_CRAWL.fullmatch(plain(path)) is not None  # "": row numbers
        is_short = of_crawl and not (isinstance(value, str) and _is_long(value))
        return is_short or is_ignored(path, self._config.ignore_fields)

    def _read_string(self, path: str, text: str, facts: dict[str, Fact]) -> None:
        fields = self._config.fields
        if fields and path in fields:
            self._add_text(path, [text])
        elif _is_link(text):
            # A link to the page of the item says nothing of it, nor does the canonical URL that the page names.
            claimed = self._fetch.claimed if self._fetch.gives_one else ()
            if self._joined(text) not in (self.url, self._fetch.place, *claimed):
                facts[path] = link_fact(text)
                self.roles.setdefault(path, "link")
        elif ("<" in text and _TEXT.fullmatch(plain(path)) and looks_like_html(text)) or _is_long(text):
            self._add_text(path, [text])
            if path in self.texts and "<" in text and not is_whole_page(text) and (media := _media(text)):
                facts[f"{path} media"] = list_fact(media)
        else:
            facts[path] = string_fact(path, text, self._fetch.clock)
            self._say_fact(path, text)

    def _add_text(self, path: str, texts: list[str]) -> None:
        if self._config.fields is None or path in self._config.fields:
            self.texts.setdefault(path, []).extend(texts)
        self.roles.setdefault(path, "text" if path in self.texts else "ignored")

    def _say_fact(self, path: str, value: object) -> None:
        self._values.setdefault(path, value)
        self.roles.setdefault(path, "fact")

    def _read_list(self, path: str, values: list[Any], facts: dict[str, Fact], depth: int) -> None:
        """Add a list: a single value as if it were alone, paragraphs as a text, and all other values as one fact."""
        if len(values) == 1 or path in (self._config.fields or ()):
            for value in values:
                self._read(path, value, facts, depth + 1)
        elif all(isinstance(value, str) for value in values) and _are_paragraphs(values):
            self._add_text(path, [text for text in values if text.strip()])
            if not (any(map(_is_long, values)) or _TEXT.fullmatch(plain(path.rpartition(".")[2]))):
                self._phrases[path] = list_fact([string_fact(path, text, self._fetch.clock) for text in values])
        elif elements := [fact for value in values if (fact := self._element(path, value, depth))]:
            facts[path] = list_fact(elements)
            if path in self._values and all(isinstance(value, (str, bytes)) for value in values):
                self._values[path] = "\n".join(_strings(values, self._fetch))
            elif isinstance(self._values.get(path), str):  # a list becomes no text: another value says more
                self._values[path] = [self._values[path]]

    def _element(self, path: str, value: Any, depth: int) -> Fact | None:
        """Return one fact for a value of a list; None if the value gives no fact."""
        facts: dict[str, Fact] = {}
        self._read(path, value, facts, depth + 1)
        return facts[path] if facts.keys() == {path} else nested_fact(facts) if facts else None

    # The choice of texts

    def _choose_texts(self) -> None:
        """Keep the texts in NEARDUP_FIELDS. If that is unset, find a missing text; drop pages beside enough text."""
        if self._config.fields is not None:
            self.texts = {name: self.texts[name] for name in self._config.fields if name in self.texts}
            return
        if not self.texts and (path := self._short_text()):
            del self.facts[path], self.roles[path]
            self._add_text(path, [self._values[path]])
            if self.facts:  # in a fact, signs count too: "C#" is not "C"
                _, said = string_fact(path, folded(self._values[path]).strip(" ."), Clock())
                self.facts[path] = Kind.WORDS, said
        pages = [path for path, texts in self.texts.items() if all(map(is_whole_page, texts))]
        others = sum(len(text) for path, texts in self.texts.items() if path not in pages for text in texts)
        for path in pages if others >= WHOLE else ():
            del self.texts[path]
            self.roles[path] = "ignored"
        if self.texts.keys() > self._phrases.keys():  # phrases beside a text are facts too: the steps of a recipe
            self.facts |= self._phrases

    def _ignore_beside_text(self) -> None:
        """If the item has a long text, leave out numbers of views, ranks, and binary values such as screenshots."""
        codes = [(path, kind) for path, (kind, _) in self.facts.items() if kind in (Kind.COUNT, Kind.CODE)]
        counts = [path for path, kind in codes if kind is Kind.COUNT or plain(path) in _RANKS]
        ignored = [*counts, *self._binary.intersection(self.facts)]
        if ignored and any(_is_long(text) for texts in self.texts.values() for text in texts):
            for path in ignored:
                del self.facts[path]
                self.roles[path] = "ignored"

    def _short_text(self) -> str | None:
        """Return the field with a short text, by its name, else by a value like a sentence; None without either."""
        shorts = self._shorts()
        named = [path for path in shorts if _SHORT_TEXT.fullmatch(plain(path.rpartition(".")[2]))]
        said = [path for path, text in shorts.items() if _is_sentence(text) or (len(text) >= SHORT and " " in text)]
        return max(named or said, key=lambda path: len(shorts[path]), default=None)


_ROLES = ("text", "title", "own URL", "fact", "link", "ignored")
_SAID = {"text": "text from", "fact": "facts", "link": "links"}


def roles_in_words(roles: Mapping[str, str]) -> str:
    """Return the fields of each role: "text from body; facts date, place"."""
    said = {role: [name for name, each in roles.items() if each == role] for role in _ROLES}
    return "; ".join(f"{_SAID.get(role, role)} {', '.join(names)}" for role, names in said.items() if names)


def item_document(item: Any, config: Config | None = None, fetch: Fetch | None = None) -> Document | None:
    """Return the document of an item: a dictionary, or anything else that itemadapter knows.

    Return None if the item has neither text nor enough facts for a record. `config` is None for the defaults.
    `fetch` is None for a row of a feed.
    """
    record = Record.of(item, config or Config(), fetch)
    return record.document() if record else None


@lru_cache(maxsize=256)
def _title_fields(names: tuple[str, ...], named: str) -> list[str]:
    """Return the names of the fields that may have the title, best first. `named`: NEARDUP_TITLE_FIELD."""
    by_name = {plain(name): name for name in reversed(names)}
    ending = [each for each in by_name if each.endswith(("title", "headline"))]
    found = [by_name[each] for each in (*_TITLE, *ending) if each in by_name]
    return [named, *found] if named in names else found


def _is_link(text: str) -> bool:
    return ("/" in text or ":" in text or text.startswith("www.")) and _LINK.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_ignored(path: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a field's name matches a pattern, such as `tracking_*`. `ALL` matches none: it is for facts."""
    return any(fnmatchcase(path, pattern) for pattern in patterns if pattern != ALL)


def _is_long(text: str) -> bool:
    """Return whether a string has enough words to be a text."""
    return len(text) >= 2 * ENOUGH - 1 and has_words(text, ENOUGH)


def _media(html: str) -> list[Fact]:
    """Return the facts of the pictures, videos and files of an HTML text; [] if it has `WORDY` words or more."""
    links = [link.strip("\"'") for tag, link in _MEDIA.findall(html) if tag not in "aA" or _FILE.search(link)]
    is_long = bool(links) and has_words(replace_tags(html, " "), WORDY)
    return [] if is_long else [link_fact(replace_entities(link)) for link in links]


def _are_paragraphs(texts: list[str]) -> bool:
    return any(map(_is_long, texts)) or has_words("\n".join(texts), max(ENOUGH, LISTED * len(texts)))


def _is_sentence(text: str) -> bool:
    return text.rstrip().endswith((".", "!", "?", "…", "。", "！", "？")) and has_words(text, 2)


def _is_binary(data: bytes) -> bool:
    """Return whether bytes are something other than text, such as a PDF or an image.

    The rules are those of the MIME Sniffing Standard, sections 5 and 7.1, except that HTML may have control characters.
    """
    if data.startswith((BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)) or data.lstrip()[:1] == b"<":
        return False
    return data.startswith(b"%PDF-") or _BINARY_BYTE.search(data, 0, SNIFFED) is not None


def _only_string(value: Any) -> str:
    """Return a string, or the only one of a list, stripped; "" for a long string or any other value."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return value.strip() if isinstance(value, str) and len(value) < LONGEST else ""


def _strings(value: Any, fetch: Fetch, deep: int = DEEP) -> Iterator[str]:
    """Yield the non-blank strings of a value: a string, bytes, or a list of these, nested up to `deep` times."""
    if isinstance(value, bytes):
        value = "" if _is_binary(value) else fetch.decoded(value)
    if isinstance(value, str):
        if value.strip():
            yield value
    elif deep and isinstance(value, (list, tuple)):
        for part in value:
            yield from _strings(part, fetch, deep - 1)
