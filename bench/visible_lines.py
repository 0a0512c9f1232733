"""The lines of a page that a reader sees, found without the package: for benches that judge it."""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree

BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br center dd details dialog dir div dl dt fieldset figcaption figure"
        " footer form frameset h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section summary"
        " table tbody td tfoot th thead title tr ul",
    )
)
UNSEEN = frozenset(("head", "math", "noscript", "script", "style", "svg", "template"))
WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|\w+")
OFTEN = 0.3  # share of the pages of a site from which a line is part of its template


class Line(NamedTuple):
    text: str
    unlinked: int
    """The number of its letters outside of links."""


def visible_lines(html: str) -> list[Line]:
    """Return the visible lines of a page in order."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(f"<html>{html}".encode("utf-8", "replace"), parser)  # never without an element
    lines: list[Line] = []
    parts: list[str] = []
    links: list[str] = []
    depth = 0  # of links

    def end() -> None:
        if line := " ".join("".join(parts).split()):
            lines.append(Line(line, max(0, len(line) - len(" ".join("".join(links).split())))))
        parts.clear()
        links.clear()

    def add(text: str | None) -> None:
        if text:
            parts.append(text)
            links.extend([text] if depth else [])

    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if element.tag in BLOCKS:
            end()
        if event == "start":
            depth += element.tag == "a"
            if element.tag in UNSEEN:
                walker.skip_subtree()
            else:
                add(element.text)
        else:
            depth -= element.tag == "a"
            add(element.tail)
    end()
    return lines
