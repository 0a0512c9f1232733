"""Template text: pages of one site that share it are told apart, and copies on that site are still found."""

from __future__ import annotations

import pytest
from helpers import edited, text
from site_server import Page, article

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.templates import LINES, SITES, Templates

TEMPLATE = "\n".join(text(900 + line, 40) for line in range(5))


def page(number: int, body: str, site: str = "a.example") -> Document:
    """Return a page whose text has the site's template around it, which is more than its own."""
    head, foot = TEMPLATE[: len(TEMPLATE) // 2], TEMPLATE[len(TEMPLATE) // 2 :]
    return Document(f"http://{site}/{number}", f"{head}\n{body}\n{foot}")


def verdicts(*documents: Document) -> list[str]:
    with Deduplicator.open() as dedup:
        made = []
        for document in documents:
            claim = dedup.claim(document)
            claim.commit()
            made.append(claim.verdict.status)
        return made


def test_pages_that_share_only_the_template_are_told_apart() -> None:
    assert verdicts(*(page(n, text(n, 80)) for n in range(10))) == ["unique"] * 10


def test_without_lines_of_its_own_a_page_repeats_the_other() -> None:
    same = text(1, 80)
    assert verdicts(page(1, same), page(2, same), page(3, edited(same, 40))) == ["unique", "duplicate", "duplicate"]


@pytest.mark.parametrize("share", [5, 10])
def test_an_edited_copy_on_the_same_site_is_found(share: int) -> None:
    lines = [text(n, 30) for n in range(8)]
    copy = [edited(line, *range(n % share, 30, share * 2)) for n, line in enumerate(lines)]
    assert verdicts(page(1, "\n".join(lines)), page(2, "\n".join(copy))) == ["unique", "duplicate"]


def test_a_cut_copy_and_one_with_more_are_found_on_the_same_site() -> None:
    body = "\n".join(text(n, 30) for n in range(10))
    cut, more = "\n".join(body.split("\n")[:6]), f"{body}\n{text(50, 60)}"
    assert verdicts(page(1, body), page(2, cut), page(3, more)) == ["unique", "duplicate", "duplicate"]


def test_lines_that_other_pages_had_are_nothing_of_its_own() -> None:
    # The same article twice, beside teasers that change from page to page but that the site has shown before.
    teasers = [text(100 + n, 30) for n in range(4)]
    body = text(1, 120)
    list_page = Document("http://a.example/", "\n".join(teasers))
    first = Document("http://a.example/1", f"{body}\n{teasers[0]}\n{teasers[1]}")
    second = Document("http://a.example/2", f"{body}\n{teasers[2]}\n{teasers[3]}")
    assert verdicts(list_page, first, second) == ["unique", "unique", "duplicate"]


def test_other_sites_are_judged_as_ever() -> None:
    assert verdicts(page(1, text(1, 80)), page(2, text(2, 80), site="b.example"))[1] == "duplicate"


def test_a_page_that_changed_is_a_revisit_as_ever() -> None:
    before, after = page(1, text(1, 80)), page(1, text(2, 80))
    assert verdicts(before, after) == ["unique", "revisit"]


def test_documents_without_url_are_judged_as_ever() -> None:
    assert verdicts(*(Document(None, page(n, text(n, 80)).text) for n in range(2))) == ["unique", "duplicate"]


def test_what_is_remembered_is_bounded() -> None:
    templates = Templates()
    templates.learn(page(0, "an old line"))
    for n in range(3):
        templates.learn(Document("http://a.example/", "\n".join(f"line {n} {m}" for m in range(LINES // 2))))
    assert templates.own_text(page(0, "an old line")).count("\n") == TEMPLATE.count("\n") + 2
    assert templates.own_text(Document("http://a.example/", "line 2 3\nline 2 x")) == "line 2 x"
    for n in range(SITES):
        templates.learn(Document(f"http://{n}.example/", "one line"))
    assert templates.own_text(Document("http://a.example/", "line 2 3")) == "line 2 3"
    assert templates.own_text(Document("http://1.example/", " ONE  line")) == ""


def test_a_site_with_much_template_is_crawled_whole(crawl, a) -> None:
    notice = "".join(f"<div>{article(900 + n, 40)}</div>" for n in range(5))
    for n in range(10):
        a.pages[f"/{n}.html"] = Page(f"<html><title>{n}</title><body><p>{article(n, 80)}</p>{notice}</body></html>")
    a.pages["/copy.html"] = a.pages["/3.html"]
    urls = [f"{a.url}/{n}.html" for n in (*range(10), "copy")]
    result = crawl("OneAfterAnother", urls=urls, field="html")
    assert result.count("unique") == 10
    assert result.count("duplicates") == 1
