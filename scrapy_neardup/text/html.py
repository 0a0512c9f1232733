"""Read a page: parse its HTML, and find its title, its text and what its layout is made of. Pure.

The main text is found by main_text.py. Nothing here imports Scrapy, so feeds, archives and tests read a page exactly as
a crawl does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, NamedTuple, cast

from lxml import etree
from w3lib.html import replace_entities, replace_tags

from .main_text import main_text, outermost, squeeze, text_of, weight
from .tokens import has_words

_CLASSES = etree.XPath("descendant-or-self::*/@class", smart_strings=False)
_FRAMING = (
    *("table", "ul", "ol", "dl", "form", "nav", "header", "footer", "main", "article", "section", "aside", "figure"),
    *("font", "center"),
)

_PROLOGUE = r"\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
_DOCUMENT = re.compile(_PROLOGUE + r"<(?:!doctype\s+html|html)\b", re.I | re.S)
_TAG = re.compile(
    r"<(/?)(?:a|b|i|u|em|p|h[1-6]|br|hr|img|ul|ol|li|dl|dt|dd|td|th|tr|div|span|code|font|pre|strong|small|center"
    r"|table|tbody|section|article|blockquote|figure|body|head|title|script|style)(?:\s[^<>]*)?/?>",
    re.I,
)
# The parser may need quadratic time for the attributes of one tag, and stops where elements are nested too deep.
_LONG, _MOST_ATTRIBUTES = 10_000, 1_000  # bytes, and words in a tag
_LONG_TAG = re.compile(rb"<([a-z][^\s/<>]*)[\s/][^<>]{10000,}", re.I)
_ANY_TAG = re.compile(rb"</?([a-z][^\s/<>]*)(?:[\s/][^<>]*)?>", re.I)
_INLINE = frozenset(b"a abbr b big cite code em font i mark q s small span strong sub sup tt u var".split())
_FLAT = frozenset(b"meta script style title".split())
_LITTLE = 500  # letters: a page with less text may have its text in the data of a script, or say too little
_SHELL = 100  # letters: a page with less may be made by its scripts
_DATA = ("application/ld+json", "application/json")
_SENTENCE = 8  # words
_SAMPLE = 20_000
_LETTERS_PER_TAG = 1_000


class PageText(NamedTuple):
    """The text of a page. A missing title or text is ""."""

    title: str
    text: str  # the main text, one line for each block
    elements: frozenset[str] = frozenset()
    """The result of `elements`; empty for a fragment, which has no layout, and for a page read from a parsed tree."""
    thin: bool = False  # true if `text` may not be what the page is about; never with another extractor
    scripted: bool = False  # true if the page has hardly any text, but scripts that may make some


def looks_like_html(text: str) -> bool:
    """Return whether a text is an HTML document or fragment, without parsing it; False for empty text.

    Plain text with comparisons (`a < b`), generics (`List<String>`) or the name of a tag is not HTML.
    """
    if "<" not in text:
        return False
    if _DOCUMENT.match(text):
        return True
    sample = text[:_SAMPLE].lstrip()
    tags = _TAG.findall(sample)
    is_dense = "/" in tags and len(tags) * _LETTERS_PER_TAG >= len(sample)
    return len(tags) > 1 and (is_dense or _TAG.match(sample) is not None)


def is_whole_page(text: str) -> bool:
    """Return whether a text is an HTML document, not a fragment."""
    return _DOCUMENT.match(text) is not None


def html_to_page(html: str, text: str | None = None, root: etree._Element | None = None) -> PageText:
    """Return the title, main text and elements of a page. Never raise an error.

    `text` is the main text if another extractor found it. `root` is the parsed tree of `html`, if there is one. The
    tree is not changed.
    """
    tree = parse(html) if root is None or _is_cut(root) else root
    if tree is None:
        return PageText("", text or "")
    page = extract(tree) if text is None else PageText(title_of(tree), text)
    return page._replace(elements=elements(tree)) if root is None and is_whole_page(html) else page


def parse(html: str) -> etree._Element | None:
    """Return the root of the tree of `html`; None if there is no element. Never raise, however broken the HTML is."""
    data = html.encode("utf-8", "replace").replace(b"\0", b"")
    if has_long_tag(data):
        data = _LONG_TAG.sub(_fewer_attributes, data)
    root = _parsed(data)
    return root if root is None or not _is_cut(root) else _parsed(_ANY_TAG.sub(_flat, data))


def _parsed(data: bytes) -> etree._Element | None:
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, collect_ids=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.LxmlError:
        return None


def _is_cut(root: etree._Element) -> bool:
    """Return whether the parser stopped before the end of the page, since its elements are nested too deep."""
    parser = root.getroottree().parser
    log = parser.error_log if parser is not None else ()
    return len(log) > 0 and log[len(log) - 1].message.startswith("Excessive depth")


def has_long_tag(data: bytes) -> bool:
    """Return quickly whether a tag has over `_LONG` bytes. A tag with less than twice as many may be missed."""
    starts = (data.rfind(b"<", at - _LONG, at) for at in range(_LONG, len(data), _LONG))
    return any(start >= 0 and data.find(b">", start, start + _LONG) < 0 for start in starts)


def _fewer_attributes(tag: re.Match[bytes]) -> bytes:
    return b"<" + tag[1] if len(tag[0].replace(b"/", b" ").split()) > _MOST_ATTRIBUTES else tag[0]


def _flat(tag: re.Match[bytes]) -> bytes:
    """Return the replacement of a tag in a page without nesting: `<p>` for a block, nothing for an inline tag."""
    name = tag[1].lower()
    return tag[0] if name in _FLAT else b"" if name in _INLINE else b"<p>"


def extract(root: etree._Element) -> PageText:
    """Return the title and main text of the page under `root`; in place of a short text, a long one in its data."""
    main, title = main_text(root), title_of(root)
    if main.letters >= _LITTLE:
        return PageText(title, main.text, thin=main.thin)
    data = data_text(root)
    if weight(data) > 2 * main.letters:
        return PageText(title, data, thin=True)
    has_scripts, is_shell = next(root.iter("script"), None) is not None, main.unseen or main.letters < _SHELL
    return PageText(title, main.text, thin=main.thin or has_scripts, scripted=has_scripts and is_shell)


_ANCHORS = " ¶#\uf0c1"  # link signs behind headings
_pieces = cast(
    "Callable[[etree._Element], list[str | etree._Element]]",
    etree.XPath("descendant::node()[self::text() or self::br]", smart_strings=False),
)


def title_of(root: etree._Element) -> str:
    """Return the <h1> that is a large part of <title>: the rest of <title> may be the name of the site.

    Without such an <h1>, return og:title, else <title>, else the first <h1>; "" without any. As og:title and <title>
    may be the same on all pages of a site, put the <h1> before them if there is only one.
    """
    found: dict[str, list[etree._Element]] = {"title": [], "h1": [], "meta": []}
    for element in outermost(root, *found):
        found[element.tag].append(element)
    title = next(map(text_of, found["title"]), "")
    headings = [heading for each in found["h1"] if (heading := _heading(each).rstrip(_ANCHORS))]
    # The last one counts, since the first may be the name of the site.
    repeated = (heading for heading in reversed(headings) if heading in title and 3 * len(heading) >= len(title))
    og_titles = (meta.get("content", "") for meta in found["meta"] if meta.get("property") == "og:title")
    if heading := next(repeated, ""):
        return heading
    named = squeeze(next(og_titles, "")) or title
    only = headings[0] if len(headings) == 1 and headings[0] not in named else ""
    return " | ".join(filter(None, (only, named))) or next(iter(headings), "")


def _heading(element: etree._Element) -> str:
    return squeeze("".join(part if isinstance(part, str) else " " for part in _pieces(element)))


def data_text(root: etree._Element) -> str:
    """Return the sentences in the JSON-LD of a page, or else in the data from which its scripts make the page.

    A sentence is any string of `_SENTENCE` words or more. Each is one line, without tags.
    """
    for kind in _DATA:
        scripts = (each.text or "" for each in root.iter("script") if each.get("type", "").lower().startswith(kind))
        if text := "\n".join(dict.fromkeys(line for script in scripts for line in _sentences(script) if line)):
            return text
    return ""


def _sentences(data: str) -> Iterator[str]:
    try:
        values: list[Any] = [json.loads(data, strict=False)]
    except (ValueError, RecursionError):
        return
    while values:
        value = values.pop()
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            values += reversed(value)
        elif isinstance(value, str) and has_words(value, _SENTENCE):
            yield squeeze(replace_entities(replace_tags(value, " ")) if "<" in value else value)


def elements(root: etree._Element) -> frozenset[str]:
    """Return `html` and a page's `class` values, such as `.lead big`; if it has none, its structural tags instead."""
    classes = [f".{name}".replace("\n", " ") for name in set(cast("list[str]", _CLASSES(root))) if name]
    return frozenset(["html", *(classes or (each.tag for each in root.iter(*_FRAMING)))])


def canonical_links(root: etree._Element) -> list[str]:
    """Return the canonical URLs that a page names, as written in it. Most pages name none or one."""
    links = root.iter("link")
    return [url for link in links if "canonical" in link.get("rel", "").lower().split() and (url := link.get("href"))]


Extract = Callable[[str], str | None]
"""A function that takes the HTML of a page, and returns its main text; None or "" if there is none."""
BUILTIN = "builtin"
TRAFILATURA = "trafilatura"
ALLOWED = f"{BUILTIN!r}, {TRAFILATURA!r}, or (the import path of) a function that takes HTML and returns its main text"


class ExtractorError(Exception):
    """A user's extractor failed on a page. The message names the function and its error."""


def read_page(html: str, extractor: str | Extract = BUILTIN, root: etree._Element | None = None) -> PageText:
    """Return what `html_to_page` does, with the text that an extractor finds. Raise ExtractorError if that fails."""
    extract = extract_function(extractor)
    return html_to_page(html, None if extract is None else _text_by(extract, html), root)


def is_heavy(extractor: str | Extract) -> bool:
    """Return whether an extractor is too slow for the reactor: trafilatura, or a function whose `heavy` is true."""
    return extractor == TRAFILATURA or bool(getattr(extract_function(extractor), "heavy", False))


def extract_function(extractor: str | Extract) -> Extract | None:
    """Return the function for a name, an import path or a function; None for the built-in extractor.

    Raise ValueError for any other value. The message states the allowed values.
    """
    if extractor == BUILTIN:
        return None
    if extractor == TRAFILATURA:
        try:
            import_module(TRAFILATURA)
        except ImportError as error:
            command = "pip install 'scrapy-neardup[trafilatura]'"
            raise ValueError(f"{TRAFILATURA!r} if it is installed ({error}); {command}") from error
        return _by_trafilatura
    try:
        found = resolve_name(extractor) if isinstance(extractor, str) else extractor
    except Exception as error:  # the user's module may raise anything on import
        raise ValueError(f"{ALLOWED}; {extractor!r} can't be imported: {error}") from error
    if isinstance(found, type) or not callable(found):
        raise ValueError(ALLOWED)
    return found


def _by_trafilatura(html: str) -> str | None:
    # Comments differ from fetch to fetch. Remains of a template make copies look different.
    options = {"include_comments": False, "include_tables": True, "favor_precision": True}
    text: str | None = import_module(TRAFILATURA).extract(html, **options)
    return text


def _text_by(extract: Extract, html: str) -> str | None:
    name = getattr(extract, "__qualname__", repr(extract))
    try:
        text = extract(html)
    except Exception as error:
        raise ExtractorError(f"NEARDUP_EXTRACTOR: {name} failed on a page: {error!r}") from error
    if not isinstance(text, (str, type(None))):
        raise ExtractorError(f"NEARDUP_EXTRACTOR: {name} returned {type(text).__name__}; allowed is str or None")
    # If a user's function finds no text, the page has none: what the function leaves out must not come back. But
    # trafilatura returns None for many short pages and lists, so the built-in extractor reads these.
    return text or (None if extract is _by_trafilatura else "")
