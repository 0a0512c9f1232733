"""Extract the title and the main text from HTML. Pure.

This module only reads a page. Fetching, tokenization and comparison are elsewhere, and nothing here imports Scrapy, so
feeds, archives and tests read a page exactly as a crawl does.

Block elements split a page into lines. Boilerplate is recognised by tag, class, id and role, and left out
(boilerplate.py). The score of a line is its length, less a fee for its link text, less a flat fee that makes the scores
of short lines negative. The main text is the element with the highest sum of scores (lines.py). A sidebar or a row of
links lowers the sum, and another paragraph raises it. So an article gives the same text in every template.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree

from .. import native
from .boilerplate import main_text
from .lines import squeeze

_ANCHORS = " ¶#\uf0c1"  # link signs behind headings

_CLASS = re.compile(
    rb"""[ \t\n\f\r]class[ \t\n\f\r]*=[ \t\n\f\r]*(?:"([^"]+)"|'([^']+)'|([^"'\\> \t\n\f\r][^> \t\n\f\r]*))""", re.I
)
_FRAMING = re.compile(
    r"<(table|ul|ol|dl|form|nav|header|footer|main|article|section|aside|figure|font|center)(?=[\s/>])", re.I
)

_PROLOGUE = r"\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
_DOCUMENT = re.compile(_PROLOGUE + r"<(?:!doctype\s+html|html)\b", re.I | re.S)
_TAG = re.compile(
    r"<(/?)(?:a|b|i|u|em|p|h[1-6]|br|hr|img|ul|ol|li|dl|dt|dd|td|th|tr|div|span|code|font|pre|strong|small|center"
    r"|table|tbody|section|article|blockquote|figure|body|head|title|script|style)(?:\s[^<>]*)?/?>",
    re.I,
)
_SAMPLE = 20_000
_LETTERS_PER_TAG = 1_000


class Page(NamedTuple):
    """The title, text and elements of a page. A missing title or text is ""."""

    title: str
    text: str
    """The main text, one line for each block."""
    elements: frozenset[str] = frozenset()
    """The names of the page's elements, as the function `elements` returns them.

    Empty for a fragment, which has no layout, and if the page was read from a parsed tree.
    """
    thin: bool = False
    """True if `text` is less than half of the page's text outside links; False if another extractor gave `text`."""


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
    if len(tags) < 2:
        return False
    is_dense = len(tags) * _LETTERS_PER_TAG >= len(sample)
    return _TAG.match(sample) is not None or ("/" in tags and is_dense)


def is_whole_page(text: str) -> bool:
    """Return whether a text is an HTML document, not a fragment."""
    return _DOCUMENT.match(text) is not None


def html_to_page(html: str | bytes, text: str | None = None, root: etree._Element | None = None) -> Page:
    """Return the title, main text and elements of a page. Never raise an error.

    `text` is the main text if another extractor found it. `root` is the parsed tree of `html`, if there is one. The
    tree is not changed.
    """
    tree = parse(html) if root is None else root
    if tree is None:
        return Page("", text or "")
    page = extract(tree) if text is None else Page(title_of(tree), text)
    is_whole = root is None and isinstance(html, str) and _DOCUMENT.match(html)
    return page._replace(elements=elements(html)) if is_whole else page  # type: ignore[arg-type]


def parse(html: str | bytes) -> etree._Element | None:
    """Return the root of the tree of `html`; None if there is no element. Never raise, however broken the HTML is.

    For a str, encoding declarations are ignored. Bytes are decoded as UTF-8 if they are valid UTF-8. Otherwise their
    declared encoding is used.
    """
    data, encoding = _encoded(html)
    parser = etree.HTMLParser(
        encoding=encoding, huge_tree=True, remove_comments=True, remove_pis=True, collect_ids=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.LxmlError:
        return None


def extract(root: etree._Element) -> Page:
    """Return the title and main text of the page under `root`. The tree is not changed.

    If nothing stands out as main text, all visible text is returned.
    """
    text, thin = main_text(root)
    return Page(title_of(root), text, thin=thin)


def elements(html: str) -> frozenset[str]:
    """Return the classes of a page's elements, such as `.lead big`; for a page without classes, its structural tags.

    The names are read from the markup, since reading them from the tree would take four times as long.
    """
    classes = set(_class_lines(html.encode(errors="replace")).split(b"\n")) - {b""}
    names = (
        (f".{name.decode(errors='replace')}" for name in classes) if classes else map(str.lower, _FRAMING.findall(html))
    )
    return frozenset(["html", *names])


def _class_lines(html: bytes) -> bytes:
    """Return the values of all `class` attributes of a page that are not empty, one on each line."""
    if native.compiled:
        return native.compiled.class_lines(html)
    values = (match[match.lastindex or 0].replace(b"\n", b" ") for match in _CLASS.finditer(html))
    return b"".join(value + b"\n" for value in values)


def canonical_links(root: etree._Element) -> list[str]:
    """Return the canonical URLs that a page names, as written in it. Most pages name none or one."""
    links = root.iter("link")
    return [url for link in links if "canonical" in link.get("rel", "").lower().split() and (url := link.get("href"))]


def _encoded(html: str | bytes) -> tuple[bytes, str | None]:
    if isinstance(html, str):
        html = html.encode("utf-8", "replace")
    else:
        try:
            html.decode("utf-8")
        except UnicodeDecodeError:
            return html, None
    return html.replace(b"\0", b""), "utf-8"


def title_of(root: etree._Element) -> str:
    """Return the heading that <title> repeats. Unlike <title>, this heading lacks the name of the site.

    Without such a heading, return og:title, else <title>, else the first heading.
    """
    found: dict[str, list[etree._Element]] = {"title": [], "h1": [], "meta": []}
    for element in root.iter(*found):
        found[element.tag].append(element)
    title = next(map(_text, found["title"]), "")
    headings = [heading for each in found["h1"] if (heading := _text(each).rstrip(_ANCHORS))]
    # The last such heading, since the first may be the name of the site.
    shared = next(
        (heading for heading in reversed(headings) if heading in title and 3 * len(heading) >= len(title)), ""
    )
    og_titles = (meta.get("content", "") for meta in found["meta"] if meta.get("property") == "og:title")
    return shared or squeeze(next(og_titles, "")) or title or next(iter(headings), "")


def _text(element: etree._Element) -> str:
    return squeeze("".join(map(str, element.itertext())))
