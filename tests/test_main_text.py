"""The main text of pages: a page for each rule of text/main_text.py and text/html.py."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from helpers import claimed
from scrapy import Selector
from tiers import slow, some

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.document import Tree
from scrapy_neardup.text.html import PageText, html_to_page, parse

_WORDS = (
    "anchor barge chart dock eddy ferry gull harbour inlet jetty keel lantern mast north oar pilot quay rope sail tide"
    " under vessel wharf yard bright calm deep early far grey high idle late narrow old quiet rough slow tall wide"
)


def prose(seed: int | str, letters: int = 250) -> str:
    """Return a paragraph of about so many letters; those of two seeds differ."""
    chosen, words = random.Random(seed), [f"Text {seed}"]
    while len(" ".join(words)) < letters:
        words.append(chosen.choice(_WORDS.split()))
    return " ".join(words) + "."


def several(count: int, start: int = 0, letters: int = 250) -> list[str]:
    return [prose(seed, letters) for seed in range(start, start + count)]


def blocks(lines: Sequence[str], around: str = "<p>{}</p>") -> str:
    return "".join(around.format(line) for line in lines)


def whole(body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>T</title></head><body>{body}</body></html>"


def page_of(body: str) -> PageText:
    return html_to_page(whole(body))


def lines_of(body: str) -> list[str]:
    return page_of(body).text.split("\n")


def statuses(*documents: Document) -> list[str]:
    """Claim documents, one after another; return the verdicts."""
    with Deduplicator.open(None) as dedup:
        return claimed(dedup, *documents)


def documents(*pages: tuple[str, Tree | None]) -> list[Document]:
    """Return the documents of pages of one site."""
    urls = (f"http://coast.example/{number}" for number in range(len(pages)))
    return [Document.from_field(html, url=url, tree=tree) for url, (html, tree) in zip(urls, pages, strict=True)]


ARTICLE = several(4)
LONG = several(12)
SMALL = prose("small", 80)
TITLES = [prose(f"title {number}", 50) for number in range(40)]
LINK = '<li><a href="/story">{}</a></li>'
LIST = blocks(TITLES, LINK)

# Each reason for leaving out, by its trust
NAMES = ['<div class="related">', '<div id="siteSidebar">', '<p class="x promo-box">', '<span class="sr-only">']
NAMES += ['<div class="hidden">', '<div class="x_header header">', '<div class="cookies-used">']
TAGS = ["<aside>", "<form>", "<figure><figcaption>", "<table><caption>", "<header>"]
TAGS += [f'<div role="{role}">' for role in ("banner", "complementary", "search")]
REPLIES = ['<div class="comments">', '<div id="disqus_thread">', '<ol class="commentlist">', '<p class="user-review">']
MARGIN_NAMES = ['<div class="site-footer">', '<div class="footer-wrap">', '<div id="navContainer">', "<p class=popup>"]
HIDDEN = ["<div hidden>", '<div aria-hidden="true">', '<p style="color: red; DISPLAY : none">', "<template>"]
HIDDEN += ['<p style="visibility:hidden">', '<span aria-hidden="true">']
CONTROLS = ["<button>", "<select><option>", "<noscript>", "<object>", "<video>", "<canvas>", "<svg><text>"]
MARGINS = ["<footer>", "<nav>", '<div role="navigation">', '<p role="contentinfo">']
CONSENTS = ["<dialog>", '<div role="alertdialog">', '<p class="cookie-banner">', '<p id="onetrust-sdk">']
CONSENTS += ['<p class="gdpr-cookies">']
TRUSTED_ALIKE = (NAMES, TAGS, REPLIES, MARGIN_NAMES, HIDDEN, CONTROLS, MARGINS, CONSENTS)
REASONS = [reason for alike in TRUSTED_ALIKE for reason in alike]
ONE_OF_EACH = some(REASONS, *(alike[0] for alike in TRUSTED_ALIKE))

SCRIPT = '<script src="app.js"></script>'


def inside(opening: str, content: str) -> str:
    """Return an element, or one within another."""
    tags = opening.strip("<>").split("><")
    return opening + content + "".join(f"</{tag.split()[0]}>" for tag in reversed(tags))


def amid_article(opening: str) -> list[str]:
    """Return the lines of an article with a small part inside."""
    return lines_of(f"<div>{blocks(ARTICLE[:2])}{inside(opening, SMALL)}{blocks(ARTICLE[2:])}</div>")


@pytest.mark.parametrize("opening", REASONS)
def test_a_small_part_is_left_out_of_an_article(opening: str) -> None:
    assert amid_article(opening) == ARTICLE


@pytest.mark.parametrize(
    "opening",
    [
        *('<p class="overflow-hidden">', '<p class="quick-add-hidden">', '<p class="trustees">', '<p class="adrift">'),
        *('<p class="has-sidebar">', '<p class="no-footer">', '<p class="with-nav">', '<p class="sidebar-closed">'),
        *('<p class="tag-comments">', '<p class="category-cookies">', '<p class="product_cat-promo">'),
        *('<p id="how-to-share-a-sidebar-with-others">', '<p class="footer-story">', '<p class="nav-lamp">'),
        *('<p aria-hidden="false">', '<p role="note">', '<p style="display: block">', '<p title="sidebar">'),
        *('<main class="related">', '<article class="promo">'),
    ],
)
def test_what_is_no_reason_leaves_nothing_out(opening: str) -> None:
    assert amid_article(opening) == [*ARTICLE[:2], SMALL, *ARTICLE[2:]]


def test_a_name_of_the_body_describes_the_page() -> None:
    page = html_to_page(f"<body class='left-sidebar'>{blocks(ARTICLE)}<div class='sidebar'>{SMALL}</div></body>")
    assert page.text.split("\n") == ARTICLE


@pytest.mark.parametrize("opening", [*ONE_OF_EACH, '<div id="topicBodyAndFooter">', '<div class="cookie-recipes">'])
def test_a_reason_that_holds_the_page_is_given_up(opening: str) -> None:
    page = page_of(f"<p>Open on Sundays.</p>{inside(opening, blocks(LONG, '<br>{}'))}")
    assert page.text.split("\n")[-12:] == LONG


@pytest.mark.parametrize("opening", ONE_OF_EACH)
def test_what_is_left_out_is_read_where_there_is_nothing_else(opening: str) -> None:
    assert lines_of(inside(opening, SMALL)) == [SMALL]


@pytest.mark.parametrize(
    ("opening", "out", "read"),
    [
        *(("<aside>", 1, 3), ('<div class="comments">', 3, 6), ('<div class="footer">', 2, 5), ("<div hidden>", 2, 4)),
        *(("<button>", 2, 5), ("<footer>", 15, 25), ("<dialog>", 25, 40)),
    ],
)
def test_a_reason_may_remove_so_many_times_what_is_left(opening: str, out: int, read: int) -> None:
    for count, expected in ((out, []), (read, several(read, 50))):
        page = page_of(f"<p>{ARTICLE[0]}</p>{inside(opening, blocks(several(count, 50)))}")
        assert page.text.split("\n") == [ARTICLE[0], *expected]


@pytest.mark.parametrize("tag", ["button", "object", "video", "select", "noscript", "canvas"])
def test_an_element_that_is_not_closed_swallows_nothing(tag: str) -> None:
    assert lines_of(f"<div><p>Menu</p><{tag}>Play<div>{blocks(ARTICLE)}</div></div>")[-4:] == ARTICLE


def test_all_blocks_of_one_name_are_read_if_they_are_most_of_the_page() -> None:
    lines = several(8)
    mixed = blocks(lines[:3]) + blocks(lines[3:], '<div class="widget"><p>{}</p></div>')
    assert lines_of(mixed) == lines


def test_blocks_of_ever_other_names_are_all_read() -> None:
    names = "ad ads advert author banner caption carousel close credit filter gallery login logo menu modal"
    short = {name: [f"{name} {number}" for number in range(20)] for name in names.split()}
    named = (f'<div class="{name}">{blocks(lines)}</div>' for name, lines in short.items())
    assert lines_of("".join(named)) == [line for lines in short.values() for line in lines]


def test_scripts_within_links_do_not_weigh() -> None:
    script, lines = f"<script>{prose('code', 5000)}</script>", several(6)
    named = f'<div class="sidebar"><a href="/">More{script}</a>{blocks(lines)}</div><p>{SMALL}</p>'
    assert lines_of(named) == [*lines, SMALL]


def test_only_the_reason_that_removes_most_is_given_up() -> None:
    named = f'<div class="widget">{blocks(LONG)}</div><div class="promo">{SMALL}</div>'
    assert lines_of(f"<div>{blocks(ARTICLE[:1])}{named}</div>") == [ARTICLE[0], *LONG]


def test_the_least_trusted_reason_is_given_up_first() -> None:
    bodies = blocks(LONG), blocks(several(12, 50))
    assert lines_of(f'<p>{SMALL}</p><div class="widget">{bodies[0]}</div><div hidden>{bodies[1]}</div>')[-12:] == LONG


@pytest.mark.parametrize(
    ("opening", "letters", "text"),
    [
        *(('<p class="footer">', 400, 100), ("<footer>", 550, 10), ('<p class="related">', 80, 20)),
        *(('<p class="cookie-banner">', 1900, 40), ('<p class="gdpr-cookies">', 1900, 40)),
    ],
)
def test_a_few_letters_may_be_left_out_of_a_page_with_fewer(opening: str, letters: int, text: int) -> None:
    alone = prose("alone", text)
    assert lines_of(f"<p>{alone}</p>{inside(opening, prose('left out', letters))}") == [alone]


@pytest.mark.parametrize(
    ("opening", "lines", "count"),
    [('<div class="sidebar">', 6, 12), ("<aside>", 5, 12), ('<div class="comments">', 2, 40)],
)
def test_an_article_keeps_out_what_is_much_longer(opening: str, lines: int, count: int) -> None:
    article = several(lines)
    other = inside(opening, blocks(several(count, 50)))
    later = "<div class='menu'><h1>Boats</h1></div>"
    assert lines_of(f"<div><h1>Ropes</h1>{blocks(article)}</div>{other}{later}") == ["Ropes", *article]


def test_a_note_above_the_heading_is_no_article() -> None:
    note = blocks(several(7, 50))
    body = f"<div>{note}</div><h1>Ropes</h1><div class='widget'>{blocks(LONG)}</div>"
    assert lines_of(body)[-12:] == LONG


# Lines


@pytest.mark.parametrize(
    "attributes", ["hidden", "aria-hidden=true", "style=display:none", "class=sr-only", "role=dialog"]
)
def test_a_short_hidden_span_breaks_no_line(attributes: str) -> None:
    line = f"<p>{ARTICLE[0]} <span {attributes}>(new window)</span> {ARTICLE[1]}</p>"
    assert lines_of(line) == [f"{ARTICLE[0]} {ARTICLE[1]}"]


def test_readings_of_characters_are_left_out_and_break_no_line() -> None:
    ruby = "<ruby>灯台<rp>（</rp><rt>とうだい</rt><rp>）</rp></ruby>"
    text = "の守り人は日が暮れると鉄の階段をのぼり、灯芯を切りそろえる。" * 4
    assert page_of(f"<p>古い{ruby}{text}</p>").text == f"古い灯台{text}"


@pytest.mark.parametrize("letters", [12, 70])
def test_lines_for_two_screens_are_read_once(letters: int) -> None:
    rows = [prose(f"row {number}", letters) for number in range(20)]
    wide, narrow = blocks(rows, "<tr><td>{}</td></tr>"), blocks(rows, "<li>{}</li>")
    assert lines_of(f"<table class='desktop'>{wide}</table><ul class='mobile'>{narrow}</ul>") == rows


@pytest.mark.parametrize("again", ["120", prose("again", 160)], ids=["number", "paragraph"])
def test_numbers_and_paragraphs_are_read_as_often_as_they_are_said(again: str) -> None:
    rows = [f"Lamp {number} of the coast" for number in range(30)]
    assert lines_of(f"<table>{blocks(rows, f'<tr><td>{{}}</td><td>{again}</td></tr>')}</table>").count(again) == 30


def test_a_line_that_an_article_says_again_is_kept() -> None:
    refrain = "And the tide goes out."
    assert lines_of(f"<div><p>{refrain}</p>{blocks(LONG)}<p>{refrain}</p></div>") == [refrain, *LONG, refrain]


@pytest.mark.parametrize(
    "line",
    [
        *("the {} lamp is lit", "die Lampe {} brennt", "la lampe {} brûle", "горит лампа {}", "第{}盏灯照着海"),
        *("{}番目の灯りがともる", "등불 {} 켜진다", "المصباح {} مضيء"),
    ],
)
def test_verse_of_short_lines_is_read_after_paragraphs(line: str) -> None:
    verse = [line.format(number) for number in range(100, 130)]
    assert lines_of(f"<div>{blocks(ARTICLE)}</div><div><p>{'<br>'.join(verse)}</p></div>") == [*ARTICLE, *verse]


def timetable(start: int) -> str:
    rows = "".join(f"<tr><td>Pier {n}</td><td>{n % 24}:{n % 60:02}</td></tr>" for n in range(start, start + 40))
    return f"<h1>Ferries</h1><div><p>{prose('notice', 700)}</p></div><table>{rows}</table>"


# Lists


def test_a_list_is_its_links_with_their_headings() -> None:
    links = f"<h2>Boats</h2><ul>{blocks(TITLES[:20], LINK)}</ul><h2>Ropes</h2><ul>{blocks(TITLES[20:], LINK)}</ul>"
    assert lines_of(f"<h1>News</h1>{links}") == ["News", "Boats", *TITLES[:20], "Ropes", *TITLES[20:]]


def test_an_article_is_read_without_its_links_and_those_beside_it() -> None:
    body = f"<div>{blocks(ARTICLE)}<p><a>{TITLES[0]}</a></p></div><ul>{LIST * 5}</ul>"
    assert lines_of(body) == ARTICLE


def test_links_in_what_is_left_out_of_an_article_do_not_count() -> None:
    related = f"<div class='related'>{SMALL}</div>", f"<div class='related'>{LIST}</div>"
    assert lines_of(f"<div>{blocks(ARTICLE[:2])}{related[0]}{blocks(ARTICLE[2:])}</div>{related[1]}") == ARTICLE


def test_links_in_what_is_left_out_of_a_list_count() -> None:
    assert lines_of(f"<h1>News</h1><div class='widget'><ul>{LIST}</ul></div>") == ["News", *TITLES]


def test_a_note_among_the_links_beside_an_article_is_no_text() -> None:
    assert lines_of(f"<div>{blocks(ARTICLE)}</div><div><ul>{LIST}</ul><p>{SMALL}</p></div>") == ARTICLE


def test_articles_between_lists_are_all_read() -> None:
    lines = several(9)
    parts = [f"<div>{blocks(lines[start : start + 3])}</div>" for start in (0, 3, 6)]
    assert [line for line in lines_of(f"<ul>{LIST}</ul>".join(parts)) if line not in TITLES] == lines


def test_a_list_is_not_reduced_to_its_blurb() -> None:
    assert lines_of(f"<h1>News</h1><p>{ARTICLE[0]}</p><ul>{LIST}</ul>") == ["News", ARTICLE[0], *TITLES]


def front(start: int) -> str:
    links = blocks(several(30, start, letters=60), LINK)
    return f"<h1>News</h1><p>{prose('blurb', 300)}</p><ul>{links}</ul><p class='cookies'>{prose('consent', 900)}</p>"


@pytest.mark.parametrize("page", [front, timetable])
def test_two_pages_that_list_other_things_are_no_copies(page: Callable[[int], str]) -> None:
    assert statuses(*documents((whole(page(100)), None), (whole(page(200)), None))) == ["unique", "unique"]


@pytest.mark.parametrize("body", ["{about}{top}{links}", "{top}{links}{about}", "<main>{top}{links}{about}</main>"])
@pytest.mark.parametrize("around", ["<li><a href='/{0}'>{0}</a></li>", "<li>{}</li>"])
def test_a_block_that_all_lists_of_a_site_have_is_no_article(body: str, around: str) -> None:
    def page(number: int) -> str:
        links = blocks([f"{word} by boat {number}" for word in _WORDS.split()], around)
        return whole(body.format(about=f"<div><p>{prose('about', 600)}</p></div>", top="<h1>Boats</h1>", links=links))

    assert statuses(*documents((page(1), None), (page(2), None))) == ["unique"] * 2


@pytest.mark.parametrize(
    "opening",
    ['<div class="cookie-banner">', "<dialog>", '<div class="newsletter-popup">', "<footer>", '<div class="modal">'],
)
def test_what_lies_over_a_list_or_under_it_is_no_text(opening: str) -> None:
    page = lines_of(f"<h1>News</h1><ul>{LIST}</ul>{inside(opening, prose('over', 900))}")
    assert page == ["News", *TITLES]


def test_a_menu_of_many_short_links_in_a_line_is_no_list() -> None:
    menu = " ".join(f"<a href='/{number}'>Sailing day {number}</a>" for number in range(100, 250))
    assert lines_of(f"<div>{menu}</div><div><h1>News</h1><ul>{LIST}</ul></div>") == ["News", *TITLES]


def test_a_page_with_only_a_heading_beside_short_links_is_read_with_them() -> None:
    links = [f"7.{number}. Lamps" for number in range(9)]
    chapter = f"<div><div><h1>Lamps of the coast</h1></div><ul>{blocks(links, LINK)}</ul></div>"
    assert lines_of(chapter) == ["Lamps of the coast", *links]


def test_a_heading_with_a_sentence_is_read_without_the_menus_beside_it() -> None:
    menu = f"<div><ul>{blocks([f'Shelf {number}' for number in range(20)], LINK)}</ul></div>"
    body = f"{menu}<div><h1>Lamp</h1><p>We bring it to your door.</p></div>{menu}"
    assert lines_of(body) == ["Lamp", "We bring it to your door."]


def test_a_short_page_is_read_without_its_frame() -> None:
    said = [f"Lamp {number} of the coast is lit at dusk" for number in range(9)]
    frame = "<div>The society of friends of old lighthouses</div>", "<div>Quay 7, open from May on</div>"
    body = f"{frame[0]}<div><h1>Lamps</h1>{blocks(said)}</div>{frame[1]}"
    assert lines_of(body) == ["Lamps", *said]


def test_a_box_with_less_than_most_of_a_short_page_is_no_list() -> None:
    said = [f"Lamp {number} of the coast is lit at dusk" for number in range(6)]
    assert lines_of(f"<div><h1>Lamps</h1>{blocks(said[:3])}</div>{blocks(said[3:])}") == ["Lamps", *said]


# The marked main part


@pytest.mark.parametrize(("count", "is_innermost"), [(4, True), (1, False)])
@pytest.mark.parametrize("mark", ["<main>", '<div role="main">'])
def test_of_marks_within_marks_the_innermost_with_enough_text_is_read(
    mark: str, count: int, is_innermost: bool
) -> None:
    inner, outer, beside = several(count), several(6 - count, 50), several(3, 70)
    marked = inside(mark, f'<div itemprop="articleBody">{blocks(inner)}</div>{blocks(outer)}')
    assert lines_of(marked + blocks(beside)) == (inner if is_innermost else inner + outer)


def test_a_mark_needs_its_share_of_the_prose_and_of_the_links() -> None:
    assert lines_of(f"<main><p>{ARTICLE[0]}</p></main><ul>{LIST}</ul>") == [ARTICLE[0], *TITLES]
    assert lines_of(f"<main><ul>{LIST}</ul></main><p>{ARTICLE[0]}</p>") == [*TITLES, ARTICLE[0]]


def test_marks_side_by_side_do_not_count() -> None:
    lines = several(9)
    marked = [f'<div itemprop="articleBody">{blocks(part)}</div>' for part in (lines[:4], lines[4:8])]
    assert lines_of("".join(marked) + blocks(lines[8:])) == lines


def test_the_lead_in_the_header_of_an_article_is_read() -> None:
    lead = prose("lead", 120)
    for parent, expected in (("article", [lead, *ARTICLE]), ("div", ARTICLE)):
        page = page_of(f"<{parent}><header><h1>Gulls</h1><p>{lead}</p></header>{blocks(ARTICLE)}</{parent}>")
        assert [line for line in page.text.split("\n") if line != "Gulls"] == expected


@pytest.mark.parametrize(
    "wrapper", ["div class=layout-with-nav", "div class=layout-comments", "div hidden", "form", "div aria-hidden=true"]
)
@pytest.mark.parametrize("main", ["<main>{}</main>", "<div role=main>{}</div>", "<div><h1>Gulls</h1>{}</div>"])
def test_what_holds_the_main_part_is_left_in_however_little_it_says(wrapper: str, main: str) -> None:
    body = f"<{wrapper}>{main.format(blocks(ARTICLE[:1]))}</{wrapper.split()[0]}><p>{prose('imprint', 500)}</p>"
    assert ARTICLE[0] in html_to_page(f"<html><title>Gulls</title><body>{body}</body></html>").text


@pytest.mark.parametrize(("tag", "is_article"), [("article", True), ("div", False)])
def test_an_article_with_the_heading_is_the_main_part_beside_headlines(tag: str, is_article: bool) -> None:
    body = f"<{tag}><h1>Gulls</h1>{blocks(ARTICLE[:1])}</{tag}><ul>{blocks(TITLES[:6], LINK)}</ul>"
    assert (TITLES[0] not in lines_of(body)) is is_article


# Thin and scripted pages


@pytest.mark.parametrize(
    ("attributes", "beside", "is_thin"),
    [
        pytest.param("", f"<div class='comments'>{blocks(several(3, 50))}</div>", False, id="few comments"),
        pytest.param("", f"<div class='comments'>{blocks(several(5, 50))}</div>", True, id="more comments"),
        pytest.param("", f"<nav>{LIST}</nav>", False, id="links"),
        pytest.param("class=widget", "<p>Bye</p>", False, id="a name"),
        pytest.param("hidden", "<p>Bye</p>", True, id="hidden"),
    ],
)
def test_a_page_is_thin_if_more_than_its_text_is_left_out_or_it_was_hidden(
    attributes: str, beside: str, is_thin: bool
) -> None:
    page = page_of(f"<div {attributes}>{blocks(ARTICLE)}</div>{beside}")
    assert (page.text.removesuffix("\nBye").split("\n"), page.thin) == (ARTICLE, is_thin)


@pytest.mark.parametrize(("letters", "is_thin"), [(80, True), (900, False)])
def test_a_list_that_has_almost_only_links_is_thin(letters: int, is_thin: bool) -> None:
    assert page_of(f"<h1>News</h1><p>{prose('blurb', letters)}</p><ul>{LIST}</ul>").thin is is_thin


def test_thin_pages_of_a_host_are_dropped_only_if_they_are_equal() -> None:
    comments = f"<div class='comments'>{blocks(several(20, 50))}</div>"
    bodies = [f"<div>{blocks(several(8))}<p>{end}</p></div>{comments}" for end in ("At low tide.", "At high tide.")]
    one, other = documents(*((whole(body), None) for body in bodies))
    assert statuses(one, other) == ["unique", "unique"]
    again = replace(one, url="http://coast.example/again")
    assert statuses(one, again) == ["unique", "duplicate"]
    assert statuses(one, replace(again, scripted=True)) == ["unique", "unique"]
    assert statuses(*(replace(each, thin=False) for each in (one, other))) == ["unique", "duplicate"]


@pytest.mark.parametrize(
    ("script", "text", "thin", "scripted"),
    [
        (SCRIPT, "Loading", True, True),
        ("", "Loading", False, False),
        (SCRIPT, "灯塔照亮海峡。" * 20, True, False),  # little text, but too much for a shell
        (SCRIPT, "灯塔照亮海峡。" * 40, False, False),
        (SCRIPT, f"<noscript>{prose('shell', 300)}</noscript>", True, True),
    ],
)
def test_a_page_of_little_text_and_scripts(script: str, text: str, thin: bool, scripted: bool) -> None:
    page = page_of(f"<div id='root'>{text}</div>{script}")
    assert (page.thin, page.scripted) == (thin, scripted)


# Data of scripts

LD = '<script type="application/ld+json">{}</script>'
NEXT = '<script id="__NEXT_DATA__" type="application/json">{}</script>'


@pytest.mark.parametrize(
    ("script", "data", "count"),
    [
        (LD, {"@type": "NewsArticle", "headline": "Ropes", "articleBody": ARTICLE[0]}, 1),
        (LD, {"@graph": [{"@type": "WebSite", "name": "Coast"}, {"@type": "Recipe", "description": ARTICLE[0]}]}, 1),
        (LD, [{"@type": "Product", "description": f"<div><p>{ARTICLE[0]}</p><br></div>"}], 1),
        (LD, {"first": ARTICLE[0], "then": [ARTICLE[1], {"last": ARTICLE[2]}], "again": ARTICLE[0]}, 3),
        (LD.replace("json", "JSON; charset=utf-8"), {"text": ARTICLE[0]}, 1),
        (NEXT, {"props": {"pageProps": {"post": {"id": 7, "body": [ARTICLE[0]]}}}}, 1),
        (NEXT.format(json.dumps(ARTICLE)) + LD, [ARTICLE[0]], 1),
        ('<script type="application/json">{}</script>', {"state": {"lead": ARTICLE[0]}}, 1),
    ],
)
def test_text_that_is_only_in_data_is_read(script: str, data: object, count: int) -> None:
    page = page_of(f"<div id='root'>Loading</div>{script.format(json.dumps(data))}")
    assert page == ("T", "\n".join(ARTICLE[:count]), page.elements, True, False)


@pytest.mark.parametrize(("lines", "data"), [(ARTICLE, " ".join(LONG)), (ARTICLE[:1], ARTICLE[1])])
def test_data_are_not_read_where_the_page_has_its_text(lines: list[str], data: str) -> None:
    assert lines_of(f"<div>{blocks(lines)}</div>{LD.format(json.dumps(data))}") == lines


@pytest.mark.parametrize(
    "data", ["{'a': b", "", "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000, "null", '"\\ud800"', "3", "{}"]
)
@pytest.mark.parametrize("script", [LD, NEXT])
def test_broken_data_are_no_error(script: str, data: str) -> None:
    page = page_of(f"<div id='root'>Loading</div>{script.replace('{}', data)}")
    assert page[1:2] + page[3:] == ("Loading", True, True)


# Pages that are hard to parse


def deep(tag: str, count: int, lines: Sequence[str]) -> str:
    article = blocks(lines, "<p>{}<i> End</i>.</p>")
    return whole(f"<p>Top</p>{f'<{tag}>' * count}{article}<script>a = 'No text'</script>")


DEEP = pytest.mark.parametrize(("tag", "count"), [("font", 3000), ("div", 2500), ("b", 100_000)])


@DEEP
def test_an_article_below_thousands_of_elements_is_read(tag: str, count: int) -> None:
    page, lines = html_to_page(deep(tag, count, ARTICLE)), [f"{line} End." for line in ARTICLE]
    assert (page.title, page.text.split("\n")[-4:]) == ("T", lines)


@DEEP
@pytest.mark.parametrize("is_response", [False, True])
def test_two_deep_pages_are_no_copies(tag: str, count: int, is_response: bool) -> None:
    pages = [deep(tag, count, several(6, start)) for start in (0, 50)]
    both = documents(*((html, Tree(html, Selector(text=html).root) if is_response else None) for html in pages))
    assert ["Text 5 " in each.text for each in both] == [True, False]
    assert statuses(*both) == ["unique", "unique"]


def test_a_tag_with_thousands_of_attributes_is_read_without_them() -> None:
    attributes = " ".join(f'data-{number}="{number}"' for number in range(40_000))
    html = whole(f"<div {attributes}>{blocks(ARTICLE)}</div>")
    root = parse(html)
    assert html_to_page(html).text.split("\n") == ARTICLE
    assert root is not None
    assert [len(each.attrib) for each in root.iter("div")] == [0]


def test_a_long_attribute_is_kept_with_the_text_around_it() -> None:
    html = whole(f'<p>{ARTICLE[0]}<img src="data:image/png;base64,{"A" * 300_000}"> {ARTICLE[1]}</p>')
    root = parse(html)
    assert html_to_page(html).text == f"{ARTICLE[0]} {ARTICLE[1]}"
    assert root is not None
    assert [len(each.get("src", "")) for each in root.iter("img")] == [300_022]


DEEP = 1900  # elements, just not too deep for the parser


@pytest.mark.parametrize("around", ["<a><div>x", "<h1><div>", "<div><script></script>"])
@pytest.mark.parametrize("beginning", ["<nav>", *slow("")])
def test_links_headings_and_scripts_below_many_elements(beginning: str, around: str) -> None:
    scripts = "<script></script>" * 10_000
    deep = whole(f"{blocks(ARTICLE)}{beginning}{around * (DEEP // 2)}{scripts}{'word ' * 20_000}")
    assert html_to_page(deep).text.startswith(ARTICLE[0])
