"""Reference pages of one form on one host, copies of one of them on another: in a crawl, and in `dedupe`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import ids, succeeded, write
from helpers import words
from site_server import Page, html
from tiers import slow

PAGES, COPIED = 30, 17
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


def test_dedupe_keeps_pages_of_a_form_and_drops_copies(tmp_path: Path) -> None:
    pages = [{"url": f"http://a.example/{number}.html", "html": reference(number)} for number in range(PAGES)]
    copies = [{"url": f"http://b.example/copy{number}.html", "html": COPY} for number in range(3)]
    write(tmp_path / "in.jsonl", [*pages, *copies])
    succeeded(tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "dups.jsonl")
    assert ids(tmp_path / "out.jsonl", "url") == [page["url"] for page in pages]
    assert ids(tmp_path / "dups.jsonl", "duplicate_of") == [pages[COPIED]["url"]] * 3
