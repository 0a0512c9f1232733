"""A crawl of reference pages of one form on one host, with copies of one of them on another host."""

from __future__ import annotations

import pytest
from helpers import words
from site_server import Page, html
from tiers import slow

PAGES, COPIED = 12, 7
NAMES = [" ".join(words(4, 300 + number)) for number in range(PAGES)]


def filled(name: str) -> str:
    """Return a form of 300 words with the words of a name in thirty places."""
    parts, given = words(300, 11), name.split()
    for place in range(30):
        parts[5 + 10 * place] = given[place % 4]
    return " ".join(parts)


def reference(number: int) -> str:
    return html(filled(NAMES[number]), "a", f"{NAMES[number]} - Reference")


COPY = html(filled(NAMES[COPIED]), "b", f"{NAMES[COPIED]} - Reference")


@pytest.mark.parametrize("field", ["html", *slow("text")])
def test_a_crawl_keeps_pages_of_a_form_and_drops_copies(crawl, a, b, field):
    a.pages.update({f"/{number}.html": Page(reference(number)) for number in range(PAGES)})
    b.pages.update({f"/copy{number}.html": Page(COPY) for number in range(3)})
    urls = [f"{site.url}{path}" for site in (a, b) for path in site.pages]
    result = crawl("OneAfterAnother", urls=urls, field=field)
    assert result.urls == urls[:PAGES]
    assert result.count("duplicates") == 3
    again = crawl("OneAfterAnother", urls=urls, field=field)
    assert (again.count("duplicates"), again.count("requests/skipped"), again.count("revisits")) == (0, 3, PAGES)
