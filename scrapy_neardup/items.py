"""Make documents from items: choose the text to compare, the URLs and the identity. No I/O."""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import urljoin

from itemadapter import ItemAdapter
from w3lib.encoding import html_to_unicode

from .document import Document, Tree
from .fingerprints.hashes import hash_text
from .settings import Config
from .text.html import Page, looks_like_html
from .text.urls import canonical_url


class Fetch(NamedTuple):
    """The fetch that items come from."""

    urls: tuple[str, ...] = ()
    """The URL that answered, then the URLs that redirected to it, last redirect first."""
    loose: frozenset[str] = frozenset()
    """The URLs that may return other content at the next fetch."""
    size: int = 0
    """Bytes of the response."""
    tree: Tree | None = None
    """The parsed response, if it is HTML."""
    claimed: tuple[str, ...] = ()
    """The canonical URLs that the response names."""


USUAL_FIELDS = ("text", "body", "content", "articleBody", "article_body", "article", "main_text", "html", "description")
SNIFFED = 1445  # bytes at the beginning of a file that show its type
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
LONG = 50  # the minimum characters of a string that counts as text, if no field has a usual name


def item_document(
    item: Any, config: Config, fetch: Fetch | None = None, pages: Mapping[str, Page] | None = None
) -> Document | None:
    """Return the document of an item; None if the item has no text, or itemadapter does not know its type.

    `pages` has extracted pages by their HTML. `fetch` is None for a row of a feed.

    An item without a URL gets the fetched URL. That URL is never skipped because this item is held. If an item has
    another URL than its page, as on a list page, the layout and the canonical URLs of the page are ignored.
    """
    if not ItemAdapter.is_item(item):
        return None
    adapter = ItemAdapter(item)
    own = next(_strings(adapter.get(config.url_field)), "")
    url, aliases, loose = _urls(own, fetch)
    fetch = fetch or Fetch()
    title = next(_strings(adapter.get(config.title_field)), "")
    made = partial(Document.from_field, title=title, extractor=config.extractor, tree=fetch.tree)
    texts = chain.from_iterable(_texts(adapter, config).values())
    parts = [Document.from_page(pages[text], title=title) if pages and text in pages else made(text) for text in texts]
    text = "\n".join(part.text for part in parts if part.text)
    thin = any(part.thin for part in parts)
    if not text.strip():
        return None
    title = title or next((part.title for part in parts if part.title), "")
    # The layout of a list page is not that of the item's own page.
    is_elsewhere = url not in (None, *fetch.urls) and canonical_url(url) not in map(canonical_url, fetch.urls)
    layouts = (fetch.tree.layout if fetch.tree and not is_elsewhere else 0, *(part.layout for part in parts))
    claimed = () if is_elsewhere else fetch.claimed
    layout, identity = next(filter(None, layouts), 0), _identity(adapter, config)
    return Document(url, text, title, aliases, loose, fetch.size, layout, claimed, identity, thin, not own)


def item_pages(item: Any, config: Config) -> list[str]:
    """Return the texts of an item that are HTML."""
    texts = _texts(ItemAdapter(item), config) if ItemAdapter.is_item(item) else {}
    return [text for text in chain.from_iterable(texts.values()) if looks_like_html(text)]


class Roles(NamedTuple):
    """The names of an item's fields by their use."""

    text: tuple[str, ...]
    """The fields with the compared text."""
    identity: tuple[str, ...]
    """The fields that identify the item."""


def item_roles(item: Any, config: Config) -> Roles:
    """Return the names of the fields of an item that are compared. The item must have text."""
    adapter = ItemAdapter(item)
    return Roles(tuple(_texts(adapter, config)), tuple(_identifying(adapter, config)))


def has_text_in(item: Any, name: str) -> bool:
    """Return whether an item has a field of this name with text."""
    return ItemAdapter.is_item(item) and any(_strings(ItemAdapter(item).get(name)))


def _urls(own: str, fetch: Fetch | None) -> tuple[str | None, tuple[str, ...], frozenset[str]]:
    """Return the URL of an item, its aliases, and those of these URLs that are loose."""
    if fetch is None:
        return own or None, (), frozenset()
    if not own:
        return next(iter(fetch.urls), None), fetch.urls[1:], frozenset(fetch.urls)
    if own == next(iter(fetch.urls), None):
        return own, fetch.urls[1:], fetch.loose
    with suppress(ValueError):  # the item's value need not be a URL
        own = urljoin(fetch.urls[0], own) if fetch.urls else own
    if canonical_url(own) not in map(canonical_url, fetch.urls):
        return own, (), frozenset({own})
    return own, tuple(url for url in fetch.urls if url != own), fetch.loose


def _texts(adapter: ItemAdapter, config: Config) -> dict[str, list[str]]:
    """Return the texts of an item by field."""
    if config.fields is not None:
        return {name: texts for name in config.fields if (texts := list(_strings(adapter.get(name))))}
    for name in USUAL_FIELDS:
        if texts := list(_strings(adapter.get(name))):
            return {name: texts}
    others = (name for name in adapter if name not in (config.title_field, config.url_field, config.tag_field))
    by_field = ((name, [text for text in _strings(adapter.get(name)) if len(text) >= LONG]) for name in others)
    return {name: texts for name, texts in by_field if texts}


def _identity(adapter: ItemAdapter, config: Config) -> int:
    """Return the hash of the identifying fields; 0 without any."""
    told = [f"{name}\n{value}" for name, values in _identifying(adapter, config).items() for value in values]
    return hash_text("\n".join(told)) if told else 0


def _identifying(adapter: ItemAdapter, config: Config) -> dict[str, list[str]]:
    """Return the values of the identifying fields by name."""
    names = {*config.identity_fields}.intersection(adapter) - {config.url_field, config.title_field, config.tag_field}
    return {name: values for name in sorted(names) if (values := list(_values(adapter[name])))}


def _values(value: Any) -> Iterator[str]:
    """Yield the strings and numbers of a value, normalized in case, white space and trailing zeros."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if (number := Decimal(str(value))).is_finite():
            written = f"{number:f}"
            yield written.rstrip("0").rstrip(".") if "." in written else written
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _values(part)
    else:
        yield from (" ".join(normalize("NFKC", text).casefold().split()) for text in _strings(value))


def _is_binary(data: bytes) -> bool:
    """Return whether bytes are something other than text, such as a PDF or an image.

    Follows the MIME Sniffing Standard, sections 5 and 7.1, except that a page may have stray control characters.
    """
    if data.startswith((BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)) or data.lstrip()[:1] == b"<":
        return False
    return data.startswith(b"%PDF-") or _BINARY_BYTE.search(data, 0, SNIFFED) is not None


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
