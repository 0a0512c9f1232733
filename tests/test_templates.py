"""Template text: pages of one site that share it are told apart, and copies on that site are still found."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from helpers import edited, signature, text
from hypothesis import given, settings
from hypothesis import strategies as st
from site_server import Page as Served
from site_server import article
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.templates import CLUSTERS, DOCUMENTS, LINES, SITES, Page, Site, Templates, split_lines

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


def test_copies_beside_other_teasers_are_found_where_the_site_is_known() -> None:
    teasers = [text(100 + n, 30) for n in range(8)]
    other = Document("http://a.example/0", f"{text(2, 120)}\n{teasers[0]}\n{teasers[1]}")
    copies = [
        Document(f"http://a.example/{n}", f"{text(1, 120)}\n{teasers[2 * n]}\n{teasers[2 * n + 1]}") for n in (1, 2, 3)
    ]
    assert verdicts(other, *copies) == ["unique", "unique", "duplicate", "duplicate"]


def test_a_front_page_with_whole_articles_makes_none_of_them_a_copy() -> None:
    articles = [text(n, 80) for n in range(12)]
    front = page(99, "\n".join(articles))
    assert verdicts(front, *(page(n, body) for n, body in enumerate(articles))) == ["unique"] * 13


@pytest.mark.parametrize("own", [25, 40])
def test_little_text_of_their_own_is_enough(own: int) -> None:
    assert verdicts(*(page(n, text(n, own)) for n in range(8))) == ["unique"] * 8


def test_sentences_count_where_there_are_no_lines() -> None:
    notices = " ".join(f"{text(900 + n, 40)}." for n in range(5))
    pages = [Document(f"http://a.example/{n}", f"Home News. {text(n, 80)}. {notices}") for n in range(6)]
    assert verdicts(*pages) == ["unique"] * 6


def test_a_page_that_was_withdrawn_does_not_count_against_its_twin() -> None:
    with Deduplicator.open() as dedup:
        for n in (1, 2):
            dedup.claim(page(n, text(n, 80))).commit()
        dedup.claim(page(3, text(3, 80))).withdraw()
        assert dedup.claim(page(4, text(3, 80))).verdict.status == "unique"
        assert dedup.claim(page(3, text(3, 80))).verdict.status == "duplicate"


def test_other_sites_revisits_and_documents_without_url_are_judged_as_ever() -> None:
    first, second = page(1, text(1, 80)), page(2, text(2, 80))
    assert verdicts(first, page(2, text(2, 80), site="b.example")) == ["unique", "duplicate"]
    assert verdicts(first, page(1, text(2, 80))) == ["unique", "revisit"]
    assert verdicts(Document(None, first.text), Document(None, second.text)) == ["unique", "duplicate"]


def lines(first: int, number: int) -> list[str]:
    return [text(first + line, 9) for line in range(number)]


def pages(template: list[str], first: int, number: int, own: int) -> list[Document]:
    """Return pages of one site, each with lines of its own below those of a template."""
    starts = range(first, first + number * own, own)
    return [Document(f"http://a.example/{start}", "\n".join(template + lines(start, own))) for start in starts]


def test_a_template_is_known_after_many_pages_of_another() -> None:
    one, other = lines(1_000_000, 80), lines(2_000_000, 80)
    found = verdicts(*pages(one, 0, 30, 20), *pages(other, 10_000, 100, 20), *pages(one, 20_000, 30, 20))
    assert found[-30:].count("unique") >= 25


@pytest.mark.parametrize("count", [100, *slow(400)])
def test_little_text_beside_much_template_is_not_taken_for_the_earlier_by_chance(count: int) -> None:
    source = random.Random(1)

    def paragraph(words: int = 30) -> str:
        return " ".join(f"w{source.getrandbits(20):x}" for _ in range(words))

    template = [paragraph() for _ in range(16)]
    texts = ("\n".join([*template, *(paragraph() for _ in range(source.choice([3, 6, 9])))]) for _ in range(count))
    found = verdicts(*(Document(f"http://a.example/{n}", each) for n, each in enumerate(texts)))
    assert found.count("unique") >= count - 1


def test_the_template_of_long_pages_is_known() -> None:
    found = verdicts(*pages(lines(1_000_000, 420), 0, 40, 100))
    assert found[-20:].count("unique") >= 10


def test_lines_that_no_page_has_any_more_make_room() -> None:
    site = Site()
    for template in range(4):
        for page in range(20):
            site.learn(page, np.arange(template * LINES, template * LINES + LINES - 1, dtype=np.uint64))
    assert site.stands(np.array([0, 4 * LINES - 2], np.uint64)).keys() == {4 * LINES - 2}


@pytest.mark.parametrize("size", [0, 1, 50, LINES // 2, 3 * LINES])
def test_what_is_remembered_of_a_site_is_bounded(size: int) -> None:
    site = Site()
    for number in range(3 * DOCUMENTS):
        site.learn(number, np.arange(number * size, (number + 1) * size, dtype=np.uint64))
    assert len(site) <= 2 * CLUSTERS * LINES
    assert len(site._documents) <= 2 * DOCUMENTS


def test_sites_that_are_remembered_are_bounded() -> None:
    templates, held = Templates(), signature("a")
    for name in ("a", *range(SITES)):
        templates.learn(Page(Document(f"http://{name}.example/", "one line")), held)
    assert len(templates._sites) == SITES
    assert "a.example" not in templates._sites


def test_a_page_that_is_judged_again_still_has_its_own_lines() -> None:
    with Deduplicator.open() as dedup:
        dedup.claim(page(1, text(1, 80))).commit()
        dedup.claim(page(2, text(2, 80))).withdraw()
        assert dedup.claim(page(2, text(2, 80))).verdict.status == "unique"


def test_a_site_with_much_template_is_crawled_whole(crawl, a) -> None:
    notice = "".join(f"<div>{article(900 + n, 40)}</div>" for n in range(5))
    for n in range(10):
        a.pages[f"/{n}.html"] = Served(f"<html><title>{n}</title><body><p>{article(n, 80)}</p>{notice}</body></html>")
    a.pages["/copy.html"] = a.pages["/3.html"]
    urls = [f"{a.url}/{n}.html" for n in (*range(10), "copy")]
    result = crawl("OneAfterAnother", urls=urls, field="html")
    assert result.count("unique") == 10
    assert result.count("duplicates") == 1


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("ab.!? \n\t\u3000。！？\xa0\x1c\u2028\r\u200b汉") | st.characters()))
def test_lines_end_where_sentences_do(text: str) -> None:
    parts = re.split(r"\n|(?<=[.!?])\s+|(?<=[。！？])", text)
    assert split_lines(text) == [" ".join(part.split()) for part in parts if part.split()]
