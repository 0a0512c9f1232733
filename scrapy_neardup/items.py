"""Items to documents: which text of an item is compared, and which URLs it is known by. Pure; any kind of item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urljoin

from itemadapter import ItemAdapter
from w3lib.encoding import html_to_unicode

from .config import Config
from .document import Document
from .text.urls import canonical_url

USUAL_FIELDS = ("text", "body", "content", "articleBody", "article_body", "article", "main_text", "html", "description")
LONG = 50  # characters from which a string counts as text where no field has a usual name


def item_document(item: Any, config: Config, *, fetched: Sequence[str] = (), size: int = 0) -> Document | None:
    """Make the document of an item; None where it has no text.

    `fetched`: the URLs of the fetch, the last one first. Without a URL of its own the item gets that; with one that is
    not among them (a list page gives many items) the fetch says nothing of where the item's content lies.
    """
    adapter = ItemAdapter(item)
    title = next(_strings(adapter.get(config.title_field)), "")
    parts = [Document.from_field(value, title=title) for value in _texts(adapter, config)]
    text = "\n".join(part.text for part in parts if part.text)
    if not text.strip():
        return None
    own = next(_strings(adapter.get(config.url_field)), "")
    urls = [urljoin(fetched[0], own) if fetched else own] if own else []
    if not urls or canonical_url(urls[0]) in map(canonical_url, fetched):
        urls += [url for url in fetched if url not in urls]
    title = title or next((part.title for part in parts if part.title), "")
    return Document(urls[0] if urls else None, text, title, tuple(urls[1:]), size)


def _texts(adapter: ItemAdapter, config: Config) -> list[str]:
    if config.fields is not None:
        return [text for name in config.fields for text in _strings(adapter.get(name))]
    for name in USUAL_FIELDS:
        if texts := list(_strings(adapter.get(name))):
            return texts
    others = (name for name in adapter if name not in (config.title_field, config.url_field, config.tag_field))
    return [text for name in others for text in _strings(adapter.get(name)) if len(text) >= LONG]


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings with anything in them, of a string, of bytes, or of a list such as item loaders make."""
    if isinstance(value, bytes):
        value = html_to_unicode(None, value)[1]
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _strings(part)
