"""The layout of a page, and the kind of a duplicate."""

from __future__ import annotations

import pytest
from site_server import article, html

from scrapy_neardup.document import Document
from scrapy_neardup.fingerprints.hashes import SAME_LAYOUT, layout, same_layout
from scrapy_neardup.text.html import elements, parse
from scrapy_neardup.verdict import page_kind

OTHER = 2**64 - 8  # no bit of 7


def names_of(page: str) -> frozenset[str]:
    root = parse(page)
    assert root is not None
    return elements(root)


def of(page: str) -> int:
    return layout(names_of(page))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("<html><body class=wide><nav></nav><p class='lead big'>B<p class='lead big'>C</html>", {".wide", ".lead big"}),
        ("<html><table><tr><td><ul><li>A</ul><ul><li>B</ul></table></html>", {"table", "ul"}),
        ("<p>x", set()),
        (
            '<p CLASS = "a">x<b data-class="b" class=""><i id=c class="one\ntwo">\xe9 class = \'no tag\'',
            {".a", ".one two"},
        ),
        ("<P class=a/b>x<p title=' class=\"c\"'><!-- <p class=d> -->&lt;p class=e&gt;", {".a/b"}),
        ("<P>x<Main><form-x>", {"main"}),
        (r'<p class=a><script>x = "<p class=\"one two\" id=\"b\"><p class=\'three\'>"</script>', {".a"}),
    ],
)
def test_elements_go_by_their_classes_and_where_there_are_none_by_framing_tags(page: str, names: set[str]) -> None:
    assert names_of(page) == {"html", *names}


def test_what_the_page_says_and_how_long_it_is_changes_nothing() -> None:
    assert of("<div class=a><p>one</div>") == of("<div class=a><p>two<p>three</div>")
    assert layout(frozenset()) == 0


def test_another_template_is_another_layout() -> None:
    assert same_layout(of(html(article(1), "a")), of(html(article(2), "a")))
    assert not same_layout(of(html(article(1), "a")), of(html(article(1), "b")))


@pytest.mark.parametrize(("differing", "same"), [(0, True), (SAME_LAYOUT, True), (SAME_LAYOUT + 1, False)])
def test_same_layout_up_to_a_distance(differing: int, same: bool) -> None:
    assert same_layout(0xFFFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF ^ (1 << differing) - 1) is same


@pytest.mark.parametrize(
    ("resemblance", "earlier", "kind"),
    [(1.0, 7, "full"), (0.95, 7, "full"), (0.94, 7, "layout"), (1.0, OTHER, "content"), (0.5, OTHER, "partial"),
     (1.0, 0, None)],
)  # fmt: skip
def test_the_four_kinds(resemblance: float, earlier: int, kind: str | None) -> None:
    assert page_kind(resemblance, 7, earlier) == page_kind(resemblance, earlier, 7) == kind


@pytest.mark.parametrize(("html", "known"), [("<html><body><p>x</p></body></html>", True), ("<p>x</p><p>y</p>", False)])
def test_a_field_that_holds_a_whole_page_has_a_layout(html: str, known: bool) -> None:
    assert bool(Document.from_field(html).layout) is known
    assert bool(Document.from_field(html, extractor=str.upper).layout) is known
