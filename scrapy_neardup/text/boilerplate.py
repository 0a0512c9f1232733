"""Read the lines of a page from its tree, and leave out boilerplate, recognised by tags, classes, ids and roles.

These names are only hints. So the text that a name would remove is measured, and a name that would remove most of a
page is ignored.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Collection, Iterator
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple, cast

from lxml import etree

from .lines import BLOCKS, MIN_SCORE, Lines, squeeze, weight, word_set

_INVISIBLE = word_set(
    "audio button canvas datalist dialog iframe map math noscript object script select style svg template textarea"
    " title video"
)
# The names of these elements count. The four elements that may hold the article itself are not among them, since their
# classes describe the page, such as "with-sidebar".
_NAMED = BLOCKS - word_set("html body main article") | word_set("span")
_COMMENTS = word_set("commentlist comments disqus respond")
_BOILERPLATE = _COMMENTS | word_set(
    "ad ads advert advertisement advertising alertdialog aside author banner breadcrumb breadcrumbs byline caption"
    " captions carousel colophon comment complementary contentinfo copyright credit credits dialog dropdown figcaption"
    " footer form header hidden login logo masthead menu menubar meta metadata modal nav navbar navfooter navheader"
    " navigation newsletter outbrain overlay pager pagination popular popup print promo promoted promotion recirc"
    " recommend recommendations recommended related rss share sharebar sharedaddy shares sidebar signup social sponsor"
    " sponsored submenu subnav subscribe taboola tablist tags teaser thumbnails timestamp toolbar tooltip trending"
    " widget widgets"
)
_MARGINS = word_set("contentinfo copyright footer nav navbar navfooter navheader navigation")
_HAVING = word_set("has no with")  # an element named "has-nav" is not a nav, but beside one
_CONSENT = re.compile("consent|cookie|cybot|didomi|gdpr|onetrust|truste|usercentrics", re.I)  # in any part of a name
_MOST_WORDS_OF_ID = 4  # an id with more words is made from a heading
_NAMING = word_set("class id role")
_MARKING = frozenset({("role", "main"), ("itemprop", "articleBody")})
_HIDING = word_set("hidden aria-hidden style")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)

_MIN_MARKED = 0.3  # share of a page's text that an element marked as its main part must have
_MOST_LEFT_OUT = 1.9  # the maximum text that names remove, as a multiple of the remaining text
_MOST_READINGS = 4
_MIN_UNSCRIPTED = 3 * MIN_SCORE  # more letters than a notice that the page needs scripts

_attributes = cast("Callable[[etree._Element], list[tuple[str, str]]]", etree._Element.items)
_bytes = partial(etree.tostring, method="text", encoding="utf-8", with_tail=False)
_string = cast("Callable[[etree._Element], str]", etree.XPath("string(.)", smart_strings=False))
_no_words = cast(
    "Callable[[etree._Element], list[str]]",
    etree.XPath(
        "descendant::a//text() | descendant::script/text() | descendant::style/text() | self::*[ancestor::a]//text()",
        smart_strings=False,
    ),
)
_words = cast(
    "Callable[[etree._Element], list[etree._ElementUnicodeResult]]",
    etree.XPath("descendant::text()[not(parent::a)][not(parent::script)][not(parent::style)]"),
)


class _LeftOut:
    """An element that is left out because of its name."""

    def __init__(self, element: etree._Element) -> None:
        self.element = element
        self.most = len(_bytes(element))  # an upper limit of `said`, since it includes links

    @cached_property
    def said(self) -> int:
        """The number of letters of the element's text outside links."""
        return _letters(_string(self.element)) - _letters("".join(_no_words(self.element)))


_most_of = attrgetter("most")
_said_of = attrgetter("said")


class _Reading(NamedTuple):
    lines: Lines
    left_out: list[_LeftOut]
    """The elements that were left out because of their names."""


class MainText(NamedTuple):
    text: str
    """One line for each block."""
    thin: bool
    """True if `text` is less than half of the page's text outside links, or the page has almost only links."""


def main_text(root: etree._Element) -> MainText:
    """Return the main text of the page under `root`, or all visible text if nothing stands out."""
    lines, left_out = _read_all(root)
    part = lines.whole()
    for marked in lines.marked if len(lines.marked) == 1 else ():
        if not _say_more(left_out, marked.said / _MIN_MARKED - lines.said):
            part = marked
    main = lines.main(part)
    is_thin = lines.is_links() or _say_more(left_out, 2 * main.letters - lines.said)
    return MainText("\n".join(main.lines), is_thin)


def _read_all(root: etree._Element) -> _Reading:
    reading = _read_believing(root)
    if reading.lines.said < MIN_SCORE and next(root.iter("noscript"), None) is not None:
        unscripted = _read(root, _is_boilerplate, unseen=_INVISIBLE - {"noscript"})
        reading = unscripted if unscripted.lines.said >= _MIN_UNSCRIPTED else reading
    if reading.lines.is_links():
        reading = _read(root, _is_margin)
    return reading if reading.lines.all else _read(root, _is_nothing)


def _read_believing(root: etree._Element) -> _Reading:
    """Read a page without boilerplate, but ignore names of elements that would remove most of the page."""
    kept: set[etree._Element] = set()
    for _ in range(_MOST_READINGS):
        reading = _read(root, _is_boilerplate, kept)
        said = reading.lines.said
        limit = max(MIN_SCORE, _MOST_LEFT_OUT * said)
        if not _say_more(reading.left_out, limit):
            break
        doubtful = [each for each in reading.left_out if not _is_sure(each.element, said >= MIN_SCORE)]
        if not _say_more(doubtful, limit):
            break
        kept.update(_spine(max(doubtful, key=_said_of).element))
    else:
        return _read(root, _is_margin)
    return reading


def _spine(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the innermost element at the middle of the text of `element`, then all ancestors of that element."""
    words = _words(element)
    ends = list(accumulate(map(len, words)))
    middle = words[bisect(ends, ends[-1] // 2)].getparent()
    if middle is not None:
        yield middle
        yield from middle.iterancestors()


def _say_more(left_out: list[_LeftOut], letters: float) -> bool:
    """Return whether elements together have more than `letters` letters outside links. Stop once this is certain."""
    said, most = 0, sum(map(_most_of, left_out))
    for each in sorted(left_out, key=_most_of, reverse=True):
        if said > letters or said + most <= letters:
            break
        said += each.said
        most -= each.most
    return said > letters


def _letters(text: str) -> int:
    return weight(squeeze(text))


def _read(
    root: etree._Element,
    is_named_so: Callable[[str], bool],
    kept: Collection[etree._Element] = (),
    unseen: frozenset[str] = _INVISIBLE,
) -> _Reading:
    """Read the lines of a page.

    Leave out elements with a tag in `unseen`. Also leave out elements with a name for which `is_named_so` returns True,
    except the elements in `kept`.
    """
    lines = Lines()
    parts = lines.parts
    left_out: list[_LeftOut] = []
    walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walker:
        tag = element.tag
        if event == "start":
            if tag in BLOCKS:
                lines.open()
                attributes = _attributes(element)
                is_named = (attributes or is_named_so(tag)) and tag in _NAMED
                if is_named and _is_left_out(element, attributes, is_named_so, kept, left_out):
                    walker.skip_subtree()
                    continue
                if tag == "main" or (attributes and not _MARKING.isdisjoint(attributes)):
                    lines.mark()
            elif tag == "a":
                lines.open_link()
            elif tag in unseen or (
                tag == "span" and _is_left_out(element, _attributes(element), is_named_so, kept, left_out)
            ):
                walker.skip_subtree()
                continue
            text = element.text
        else:
            if tag in BLOCKS:
                lines.close(tag)
            elif tag == "a":
                lines.close_link()
            text = element.tail if element is not root else None
        if text and (parts or not text.isspace()):
            parts.append(text)
    if parts:
        lines.end_line()
    return _Reading(lines, left_out)


def _is_left_out(
    element: etree._Element,
    attributes: list[tuple[str, str]],
    is_named_so: Callable[[str], bool],
    kept: Collection[etree._Element],
    left_out: list[_LeftOut],
) -> bool:
    is_named = is_named_so(element.tag)
    for name, value in attributes:
        if name in _NAMING:
            is_named = is_named or (is_named_so(value) and not _is_phrase(name, value))
        elif name in _HIDING and _hides(name, value):
            return True
    if not is_named or element in kept:
        return False
    left_out.append(_LeftOut(element))
    return True


def _is_phrase(name: str, value: str) -> bool:
    """Return whether an attribute is an id that was made from a heading."""
    return name == "id" and len(_WORD.findall(value)) > _MOST_WORDS_OF_ID


def _hides(name: str, value: str) -> bool:
    if name == "style":
        return _HIDING_STYLE.search(value) is not None
    return name == "hidden" or value == "true"


def _is(element: etree._Element, is_so: Callable[[str], bool]) -> bool:
    return is_so(element.tag) or any(is_so(value) for name, value in _attributes(element) if name in _NAMING)


def _is_sure(element: etree._Element, is_text_left: bool) -> bool:
    """Return whether to leave out an element because of its name, however much text it has."""
    return _is(element, _is_margin) or (is_text_left and _is(element, _is_aside))


@lru_cache(maxsize=4096)
def _is_boilerplate(name: str) -> bool:
    return _holds(name, _BOILERPLATE) or _CONSENT.search(name) is not None


@lru_cache(maxsize=4096)
def _is_margin(name: str) -> bool:
    """Return whether a name denotes a footer or navigation. `site-footer` does, `has-nav` does not."""
    parts = ([word.lower() for word in _WORD.findall(part)] for part in name.split())
    return any(words[-1] in _MARGINS and words[0] not in _HAVING for words in parts if words)


def _is_nothing(name: str) -> bool:
    return False


def _is_aside(name: str) -> bool:
    return _holds(name, _COMMENTS) or _CONSENT.search(name) is not None


def _holds(name: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(word.lower() for word in _WORD.findall(name))
