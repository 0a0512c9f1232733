"""HTML to title and main text: what is kept, what is left out, and no error for any input."""

from __future__ import annotations

import gc

import pytest
from lxml import etree

from scrapy_neardup.text.html import PageText, extract, html_to_page, looks_like_html, parse

SENTENCE = "The harbour master counted eleven boats that morning and wrote them down in a green book. "
PARAGRAPHS = [f"{number}. {SENTENCE * 2}".strip() for number in range(1, 5)]
ARTICLE = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)
LINKS = "".join(f'<li><a href="/{n}">Another page of ours, number {n}</a></li>' for n in range(20))


def text_of(body: str) -> str:
    return html_to_page(f"<html><head><title>T</title></head><body>{body}</body></html>").text


def test_article_without_what_surrounds_it() -> None:
    page = html_to_page(
        "<!DOCTYPE html><html><head><title>Boats - The Daily Pier</title><style>p {color: red}</style></head><body>"
        f'<header>The Daily Pier</header><nav><ul>{LINKS}</ul></nav><div class="article-body">{ARTICLE}'
        f'<script>let x = "a script"</script></div><aside>Read this too</aside><div class="siteSidebar">'
        f"{SENTENCE}</div>"
        f'<div id="comments">{ARTICLE * 3}</div><div class="cookie-banner">We use cookies.</div><footer>©</footer>'
    )
    assert page[:2] == ("Boats - The Daily Pier", "\n".join(PARAGRAPHS))


def test_blocks_break_lines_and_inline_elements_do_not() -> None:
    assert text_of("<div>o<b>n</b>e  \n two<br>three<!-- no -->!<p>four</p>five</div>") == "one two\nthree!\nfour\nfive"


def test_pre_and_table_are_kept() -> None:
    body = f"<div>{ARTICLE}<pre>let\n  x</pre><table><tr><td>a cell</td><td>b</td></tr></table>{ARTICLE}</div>"
    assert "let x\na cell\nb\n" in text_of(body)


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title> Boats\n at sea | Pier</title>", "<h1>Pier</h1>", "Boats at sea | Pier"),
        ("<title>Pier</title>", "<h1>Boats</h1>", "Boats | Pier"),  # a site with one title
        ("<title>Boats | Pier</title>", "<h1>Boats</h1>", "Boats"),
        ("<title>灯塔_海岸</title>", "<h1>海岸</h1><h1>灯塔</h1>", "灯塔"),  # the last heading that the title repeats
        ("<title>Boats | Pier</title>", "<h1>Boats<a href='#k'>¶</a></h1>", "Boats"),
        ("<title>Boats | Pier</title>", "<h1>Boats #</h1>", "Boats"),
        ("<title>Boats | Pier</title>", "<h1>Welcome</h1><h1>Sea</h1>", "Boats | Pier"),
        ("<title>Class sea.Boats | Pier</title>", "<h1>Class<br>sea.<b>Boats</b></h1>", "Class sea.Boats"),
        ('<title>Boats | Pier</title><meta property="og:title" content=" Boats ">', "", "Boats"),
        ('<title>Pier</title><meta property="og:title" content="Harbour">', "<h1>Boats</h1>", "Boats | Harbour"),
        ("<title></title>", "<h1><img></h1><h1>Boats<!-- x --> <b>here</b></h1>", "Boats here"),
        ("", "", ""),
    ],
)
def test_title_is_found_in_head_or_body(head: str, body: str, title: str) -> None:
    assert html_to_page(f"<html><head>{head}</head><body>{body}<p>text</p></body></html>").title == title


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>caf\0é</p>", "café"),
        ("<p>café", "café"),
        ('<?xml version="1.0" encoding="utf-16"?><html><body><p>café</p></body></html>', "café"),
        ('<meta charset="no-such-encoding"><p>café</p>', "café"),
        ('<meta charset="utf-16"><p>café</p>', "café"),
        ("<?php a ?><p>caf&eacute;</b></i></p></html></html>", "café"),
        *((html, "") for html in ("", " \n", "\0", "<!-- only a comment -->", "<!DOCTYPE html>")),
        ("<script>x</script>", ""),
    ],
)
def test_broken_and_empty_pages_are_read_all_the_same(html: str, text: str) -> None:
    assert html_to_page(html)[:2] == ("", text)


@pytest.mark.parametrize("html", ["\ud800<p>text</p>", "<" * 10_000, "&#xD800;<p></p>"])
def test_garbage_does_not_raise(html: str) -> None:
    assert isinstance(html_to_page(html), PageText)


def test_a_shared_tree_is_left_as_it_was() -> None:
    html = f"<html><body><!-- a -->tail<?pi?>more<div>{ARTICLE}</div><nav hidden>x</nav></body></html>"
    root = etree.fromstring(html, etree.HTMLParser())
    before = etree.tostring(root)
    assert extract(root).text == html_to_page(html).text
    assert etree.tostring(root) == before


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p CLASS=Sidebar>no</p><P>yes</P>", "yes"),
        ('<p class="a b">yes</p><p data-x=1 id="theMenu2">no</p><p role=navigation>no</p>', "yes"),
        ('<p hidden=until-found>no</p><p aria-hidden="false">yes</p><p style="color: red">too</p>', "yes\ntoo"),
        ('<p class="sidebarless" id="sidestep">yes</p><nav>no</nav>', "yes"),
        ("<scripture>yes</scripture><SCRIPT>no</SCRIPT ><style>/* <!-- no */</style>", "yes"),
        ("<script>'<!-- no'</script>yes<!-- <script> no --><p title='<script>'>too</p>", "yes\ntoo"),
        ("yes<!-->too<script>no", "yestoo"),
    ],
)
def test_attributes_and_raw_text(markup: str, text: str) -> None:
    assert text_of(markup) == text


def test_part_of_a_tree_ends_where_it_ends() -> None:
    root = parse("<body><div>in</div>out</body>")
    assert root is not None
    assert extract(root[0][0]).text == "in"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!DOCTYPE html><title>x", True),
        ("\ufeff <!-- a -->\n<!-- b --> <HTML lang=en>", True),
        ('<?xml version="1.0"?>\n<html xmlns="x"/>', True),
        ("<p>one</p><p>two</p>", True),
        ("<p>one<p>two", True),
        ("Some <b>bold</b> words", True),
        ("line<br/>line<br/>line<br></p>", True),
        (f"<div>{SENTENCE * 100}</div>" * 5, True),
        ("", False),
        ("plain", False),
        ("<!---->" * 10_000, False),
        ("a < b and c > d", False),
        ("x<y", False),
        ("Map<String, List<T>> m = new HashMap<>(); vector<int> a; if (a<b && c>d) {}", False),
        ("The <p> tag opens a paragraph, <div> does not.", False),
        (f"{SENTENCE * 100} It closes with </p>. {SENTENCE}", False),
        (f"{SENTENCE * 50} <b>One</b> word in bold. {SENTENCE * 50}", False),
        ("mail <someone@example.org> or see <https://example.org>", False),
    ],
)
def test_looks_like_html(text: str, expected: bool) -> None:
    assert looks_like_html(text) is expected


def test_content_without_a_body_tag_is_read() -> None:
    # libxml2 puts elements that it does not know, such as <nav>, into the head when no body was opened.
    page = html_to_page("<html><title>T</title><nav>Menu</nav><article><p>Some words here.</p></article></html>")
    assert page[:2] == ("T", "Some words here.")


@pytest.mark.slow
def test_pages_that_were_read_leave_nothing_behind() -> None:
    def held_after(pages: int) -> int:
        for _ in range(pages):
            html_to_page("<!doctype html><title>One</title><h1 class=a>One</h1><p class=b>Some words here.</p>")
        gc.collect()
        return sum(len(each) for each in gc.get_objects() if issubclass(type(each), (list, dict)))

    before = held_after(10)
    assert held_after(110) - before < 100
