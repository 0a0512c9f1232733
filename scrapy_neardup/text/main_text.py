"""Find the main text of a page. Pure.

Theory of operation
-------------------
Block elements split a page into lines. A line counts by two numbers: all its letters, and those in links.

**What is left out is weighed.** There are reasons to leave an element out: its tag (`nav`), its role, a word in its
class or id (`related`), that it is hidden, that it is a dialog on cookies. None is certain: some sites stream the
article into a hidden element, keep the posts of a forum in `#comments`, or call each block a widget. So a reason has a
trust: how much text it may remove, as a multiple of the text that is left. If the reasons of one trust together remove
more, the reason that removes most is given up on this page. Then the page is read again. The least trusted reasons are
given up first. Some reasons are never given up if an article is left: its comments may be many times as long. Long
links, such as headlines, count in what is left, but little in what is left out.

**Two kinds of pages.** The score of a line is its letters, less twice those in links, less a fee that makes the scores
of short lines low. The score of an element is the sum over its lines: paragraphs raise it, rows of links lower it. If
the element with the highest score has most of the prose, that is of the letters outside links, the page is an article.
Then the main text is this element without its links. So an article gives the same text in every template. Any other
page is a list: of links, products, posts, cells. Then all that is not left out is the main text. If the page marks its
main part, and this has a good share of the text, the article or list is looked for only there.

**Thin.** The main text is thin if it is less than half of all text outside links, was hidden, or is almost only links.
It may be only what the site has on every page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import accumulate, chain, count, islice, pairwise
from math import inf
from typing import NamedTuple, cast

from lxml import etree


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


class _Trust(NamedTuple):
    """The number of letters that the reasons of one trust may remove together."""

    limit: float  # as a multiple of the letters that are left
    free: int = 100  # this many may go, however few are left
    enough: float = inf  # if an element of what is left has this score, there is no limit


# Given up in this order. The numbers were chosen on some 600 pages; docs/accuracy.md has the result.
_NAME, _TAG, _REPLIES, _MARGIN_NAME, _HIDDEN, _CONTROL, _MARGIN, _CONSENT = range(8)
_TRUSTS = {
    _NAME: _Trust(0.5, enough=1200),
    _TAG: _Trust(1.5, enough=1000),
    _REPLIES: _Trust(4, enough=300),
    _MARGIN_NAME: _Trust(3, free=600),
    _HIDDEN: _Trust(2.5),
    _CONTROL: _Trust(3),
    _MARGIN: _Trust(20, free=600),
    _CONSENT: _Trust(30, free=2000),
}
_LINKS_LEFT_OUT = 0.1  # the share of the letters of long links that counts in what is left out

_Reason = tuple[int, str]  # the trust, and the word that is the reason

# Never read: they have no text, markup that is parsed as text, or the pronunciation of the character beside it.
_NEVER = _words("iframe noembed noframes rp rt script style title")
_BREAKS = _words("br hr")
_BLOCKS = _words(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form"
    " h1 h2 h3 h4 h5 h6 header html legend li main nav ol p pre section summary table tbody td tfoot th thead tr ul"
)
_CONTROLS = _words("audio button canvas datalist map noscript object select svg textarea video")
_OPENED = _BLOCKS | _CONTROLS | {"dialog", "span", "template"}
_UNNAMED = _words("html body main article")  # their classes describe the page, such as "with-sidebar"
_TAGS: dict[str, tuple[_Reason, ...]] = {
    **{tag: ((_CONTROL, tag),) for tag in _CONTROLS},
    **{tag: ((_TAG, tag),) for tag in ("aside", "caption", "figcaption", "form", "header")},
    **{tag: ((_MARGIN, tag),) for tag in ("footer", "nav")},
    "dialog": ((_CONSENT, "dialog"),),
    "template": ((_HIDDEN, "hidden"),),
}
_ROLES = {"alertdialog": "dialog", "banner": "header", "complementary": "aside", "contentinfo": "footer"}
_ROLES |= {"dialog": "dialog", "navigation": "nav", "search": "form"}
_TELLING = _words("aria-hidden class hidden id role style")
_NAMES = _words(
    "ad ads advert advertisement advertising author banner breadcrumb breadcrumbs byline caption carousel close"
    " credit credits dropdown facets filter filters gallery login logo masthead menu modal notice overlay pager"
    " popular print promo promoted promotion recommend recommendations recommended related share sharedaddy"
    " sidebar signature signup sponsored submenu subscribe teaser timestamp toolbar tooltip trending widget"
    " widgets"
)
# Reasons only if they are a whole class or id.
_WHOLE_NAMES = _words("header hidden screen-reader-text site-header sr-only visually-hidden visuallyhidden")
_REPLY_NAMES = _words("comment commentlist comments disqus respond review reviews")
_MARGIN_NAMES = _words("contentinfo copyright footer nav navbar navfooter navheader navigation newsletter popup subnav")
_NEGATING = _words("closed disabled has no not off with without")  # an element named "has-nav" is beside a nav
_WRAPPERS = _words("area container inner outer section wrap wrapper")  # "footer-wrap" is a footer
_CONSENT_DIALOGS = _words("cookiebar cookiebot cookieconsent cookienotice cybot didomi onetrust truste usercentrics")
_CONSENT_NAMES = _words("consent consents cookie cookies gdpr")
_DIALOG_NAMES = _words(
    "alert banner bar box container dialog disclaimer layer manager message modal notice overlay panel popup"
    " preferences settings wall wrapper"
)
_TOPIC = re.compile("(product_)?(cat|category|tag)-")  # a class for a subject of the post, in WordPress
_BY_WORD: dict[str, _Reason] = {
    **{word: (_NAME, word) for word in _NAMES | _CONSENT_NAMES},
    **dict.fromkeys(_REPLY_NAMES, (_REPLIES, "comments")),
    **dict.fromkeys(_CONSENT_DIALOGS, (_CONSENT, "consent")),
}
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_TELLING_WORDS = {*_BY_WORD, *_MARGIN_NAMES, *(word for name in _WHOLE_NAMES for word in _WORD.findall(name))}
_MOST_WORDS_OF_ID = 4  # an id with more words is made from a heading
_MOST_READ = 500  # letters of a class or id
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)

_FRAME = 300  # letters that may stay outside a list, such as the name and the address of a site
_MOST = 0.6  # the share of what a page says that is inside the list, at least
_LINE_FEE = 20  # letters
_LEAST_OF_PLAIN = 2  # the least score of a line without links, such as of a verse, or in a cell of a table
_LONG_LINK = 28  # letters: a longer link is a title or a sentence, a shorter one leads elsewhere
_ARTICLE = 500  # letters of an article that may stand beside any number of links
_LEAST_SCORE = 200
_MAIN_SHARE = 0.3  # of a page's text that an element marked as its main part must have
_READINGS = 8  # of a page, each with one reason less; after these, all reasons of a trust are given up at once
_REPEATED = range(10, 150)  # letters of a label or a title; shorter lines are numbers, longer ones are text
_MANY_REPEATED = 0.05  # the share of the letters of the main text that repeated lines have if they are many
_WIDE = re.compile("[\u3041-\ud7af\uf900-\ufaff]+")  # kana, Han and Hangul, and the rare scripts between them
_WIDTH = 2.5  # one such letter counts as this many letters of other scripts

_attribute = cast("Callable[[etree._Element, str], str | None]", etree._Element.get)
# Not `items`, which takes quadratic time where an element has thousands of attributes.
_keys = cast("Callable[[etree._Element], list[str]]", etree._Element.keys)
_string = partial(etree.tostring, method="text", encoding="unicode", with_tail=False)
_MAIN_ROLES = cast("Callable[[etree._Element], list[etree._Element]]", etree.XPath("descendant::*[@role='main']"))


class MainText(NamedTuple):
    text: str  # one line for each block
    thin: bool  # true if `text` is less than half of the page's text outside links, was hidden, or is almost only links
    letters: int  # the weight of the text; 0 if nothing was left, so that `text` is all of the page
    unseen: bool = False  # true if `text` has a <noscript>, which browsers with scripts do not show


def main_text(root: etree._Element) -> MainText:
    """Return the main text of the page under `root`. The tree is not changed."""
    return _Page(root).main()


def squeeze(text: str) -> str:
    """Replace each run of white space by one blank, and remove it at both ends."""
    if text.isprintable() and "  " not in text:  # then blanks are the only white space: a third of the time
        return text.strip()
    return " ".join(text.split())


def text_of(element: etree._Element) -> str:
    return squeeze(_string(element) if len(element) else element.text or "")


def outermost(element: etree._Element, *tags: str) -> Iterator[etree._Element]:
    """Yield the elements with these tags, but none within another: to read nested ones would take quadratic time."""
    found = element.iter(*tags)  # not `iterwalk`, which makes an object of each element on its way
    for each in found:
        yield each
        for _ in each.iterdescendants(*tags) if len(each) else ():
            next(found)


def weight(text: str) -> int:
    """Return the number of characters of a text, blanks included. A Chinese, Japanese or Korean one counts as 2.5."""
    return len(text) if text.isascii() else len(text) + int((_WIDTH - 1) * len("".join(_WIDE.findall(text))))


class _LeftOut:
    """An element that is left out. Its prose is measured only if it has enough letters to matter."""

    def __init__(self, element: etree._Element, reason: _Reason) -> None:
        self._element = element
        self.reason = reason
        self.letters = weight(text_of(element))

    @cached_property
    def prose(self) -> float:
        """The letters outside links, scripts and styles, and a tenth of those in long links."""
        prose: float = self.letters
        for inner in outermost(self._element, "a", "script", "style"):
            letters = weight(text_of(inner)) + 1  # with the blank beside it
            prose -= letters * (1 - _LINKS_LEFT_OUT) if inner.tag == "a" and letters > _LONG_LINK else letters
        return max(prose, 0)


class _Page:
    """The lines of a page, its elements as ranges of lines, and the reasons to leave some of them out."""

    def __init__(self, root: etree._Element) -> None:
        self._root = root
        self._title = next(map(text_of, root.iter("title")), "")
        self._holders = _holders(root, self._title)
        self._given_up: set[_Reason] = set()
        self._read(self._given_up)

    def _read(self, given_up: Collection[_Reason] | None) -> None:
        self.lines = lines = _Lines(given_up, self._holders)
        lines.read(self._root)
        sums = ([0, *accumulate(each)] for each in (lines.scores, lines.prose, lines.said))
        self._scores, self._prose, self._said = sums

    def main(self) -> MainText:
        self._weigh()
        lines, chosen = self.lines, self._said_once(self._article() or self._list())
        letters, prose = _sum(lines.letters, chosen), _sum(lines.prose, chosen)
        is_hidden = any(trust == _HIDDEN for trust, _ in self._given_up)
        is_part = _weigh_more(lines.left_out, 2 * letters - self._prose[-1])
        is_thin = is_hidden or is_part or 5 * prose < letters
        if letters:
            text, is_unseen = "\n".join([lines.texts[at] for at in chosen]), (_CONTROL, "noscript") in self._given_up
            return MainText(text, is_thin, letters, is_unseen)
        self._read(None)
        return MainText("\n".join(self.lines.texts), is_thin, 0)

    def _article(self) -> list[int]:
        """Return the lines of the article; [] if the page is a list."""
        first, end = self._main_part()
        score, element = self._best(first, end)
        chosen = [at for at in range(*element) if self.lines.prose[at]]
        twice = 2 * _sum(self.lines.letters, chosen)
        is_most = twice >= self._prose[end] - self._prose[first]
        is_all = twice >= min(2 * _ARTICLE, self._said[end] - self._said[first])
        return chosen if score >= _LEAST_SCORE and is_most and is_all and self._is_headed(chosen) else []

    def _is_headed(self, chosen: Sequence[int]) -> bool:
        """Return whether little text is between the chosen lines and the heading above; True for a page without one.

        If much is between, that may be what the page is about, and all pages of the site may have the chosen lines. As
        the <h1> may be the name of the site, the first line, or the one above, is a heading too if <title> repeats it.
        """
        begin = self.lines.texts[max(0, chosen[0] - 1) : chosen[0] + 1]
        has_title = any(len(text) >= _REPEATED.start and text in self._title for text in begin)
        if has_title or not (headings := self.lines.headings):
            return True
        above = [heading for heading in headings if heading <= chosen[-1]]
        between = range(above[-1] + 1, chosen[0]) if above else ()
        return bool(above) and 2 * _sum(self.lines.letters, between) <= _sum(self.lines.letters, chosen)

    def _list(self) -> Sequence[int]:
        """Return the lines of the smallest element that has the heading and most of what the page says."""
        first, end = self._main_part()
        said, heading = self._said, self.lines.heading
        most = max(said[end] - said[first] - _FRAME, (said[end] - said[first]) * _MOST)
        inside = [each for each in self.lines.elements if first <= each[0] <= heading < each[1] <= end]
        chosen = next((each for each in inside if said[each[1]] - said[each[0]] >= most), (first, end))
        if chosen == (heading, heading + 1):  # only a heading, whose contents beside it are short links
            chosen = next((each for each in inside if each != chosen), (first, end))
        return range(*chosen)

    def _said_once(self, chosen: Sequence[int]) -> Sequence[int]:
        """Leave out lines that repeat earlier lines if they are many, as on a page with a second text for phones."""
        letters, texts = self.lines.letters, self.lines.texts
        first = {texts[at]: at for at in reversed(chosen)}
        once = [at for at in chosen if letters[at] not in _REPEATED or first[texts[at]] == at]
        return once if _sum(letters, once) <= (1 - _MANY_REPEATED) * _sum(letters, chosen) else chosen

    def _main_part(self) -> tuple[int, int]:
        """Return the range of the part that the page marks as its main part, if it has enough text; else all lines.

        The innermost of nested marks counts. Marks side by side, as on a page of several articles, do not.
        """
        marked = self.lines.marked
        is_one = all(outer[0] <= inner[0] for inner, outer in pairwise(marked))
        for first, end in marked if is_one else ():
            if all(sums[end] - sums[first] >= _MAIN_SHARE * sums[-1] for sums in (self._prose, self._said)):
                return first, end
        return 0, len(self.lines.texts)

    def _best(self, first: int, end: int) -> tuple[int, tuple[int, int]]:
        """Return the highest score of an element within a range of lines, and the lines of this element."""
        scores, best, element = self._scores, 0, (first, first)
        for start, stop in self.lines.elements:
            if start >= first and stop <= end and scores[stop] - scores[start] > best:
                best, element = scores[stop] - scores[start], (start, stop)
        return best, element

    def _weigh(self) -> None:
        """Give up reasons to leave elements out, until none removes too much. Read the page again after each."""
        for reading in count(1):
            if not (doubtful := self._doubtful()):
                return
            self._given_up.update(reason for _, reason in (doubtful if reading > _READINGS else [max(doubtful)]))
            self._read(self._given_up)

    def _doubtful(self) -> list[tuple[float, _Reason]]:
        """Return the reasons of the first trust that removes too much, with the letters that each removes; or []."""
        by_trust = defaultdict(list)
        for each in self.lines.left_out:
            by_trust[each.reason[0]].append(each)
        for trust, of_trust in sorted(by_trust.items()):
            limit, free, enough = _TRUSTS[trust]
            if not _weigh_more(of_trust, max(limit * self._said[-1], free)):
                continue
            # What is above the heading is no article.
            if enough == inf or self._best(self.lines.heading, len(self.lines.texts))[0] < enough:
                reasons = {each.reason for each in of_trust}
                return [(sum(each.prose for each in of_trust if each.reason == one), one) for one in reasons]
        return []


def _sum(numbers: Sequence[int], places: Iterable[int]) -> int:
    return sum(map(numbers.__getitem__, places))


def _weigh_more(left_out: Sequence[_LeftOut], prose: float) -> bool:
    """Return whether elements together have over `prose` letters of prose. Count all letters first, to save time."""
    return sum([each.letters for each in left_out]) > prose and sum([each.prose for each in left_out]) > prose


class _Lines:
    """The lines of a page in order.

    An element with a reason to leave it out is skipped. Reasons in `given_up` do not count; if that is None, no reason
    counts. For elements in `holders`, reasons that a wrapper of a whole page may have do not count (`_is_of_wrapper`).
    """

    def __init__(self, given_up: Collection[_Reason] | None, holders: Collection[etree._Element]) -> None:
        self.texts: list[str] = []
        self.letters: list[int] = []
        self.prose: list[int] = []  # the letters outside links; 0 if links are half of the line or more
        self.said: list[int] = []  # the letters outside short links
        self.scores: list[int] = []
        self.elements: list[tuple[int, int]] = []  # the ranges of all elements that have lines, inner ones first
        self.left_out: list[_LeftOut] = []
        self.marked: list[tuple[int, int]] = []  # the ranges of marked main parts, inner ones first
        self.headings: list[int] = []  # the line of each <h1>, or the next line if it is left out
        self._given_up, self._holders = given_up, holders
        self._parts: list[str] = []  # of the current line
        self._link_parts: list[str] = []
        self._links = 0  # how many links are open
        self._line_links = 0  # how many links the line has

    @property
    def heading(self) -> int:
        """The number of the line of the first heading; -1 without any."""
        return self.headings[0] if self.headings else -1

    def read(self, root: etree._Element) -> None:
        """Read a tree, in one loop: a call for each element would take much longer."""
        parts, link_parts, given_up = self._parts, self._link_parts, self._given_up
        opened: list[etree._Element] = []
        firsts: list[int] = []  # the first line of each opened element
        walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in walker:
            tag = element.tag
            if event == "start":
                if tag in _OPENED:
                    reasons = _reasons(element, tag) if given_up is not None else ()
                    if reasons and element in self._holders:
                        reasons = tuple(each for each in reasons if not _is_of_wrapper(each))
                    if reasons and given_up:
                        reasons = tuple(each for each in reasons if each not in given_up)
                    if reasons:
                        self._skip(element, max(reasons))
                        walker.skip_subtree()
                        continue
                    if tag != "span":
                        if parts:
                            self._end_line()
                        opened.append(element)
                        firsts.append(len(self.texts))
                elif tag in _NEVER:
                    walker.skip_subtree()
                    continue
                elif tag == "a":
                    self._links += 1
                    self._line_links += 1
                elif tag in _BREAKS and parts:
                    self._end_line()
                text = element.text
            else:
                if tag in _OPENED:
                    if opened and opened[-1] is element:
                        if parts:
                            self._end_line()
                        opened.pop()
                        if (first := firsts.pop()) < len(self.texts):
                            self._close(element, tag, first)
                elif tag == "a":
                    self._links -= 1
                text = element.tail if element is not root else None
            if text and (parts or not text.isspace()):
                parts.append(text)
                if self._links:
                    link_parts.append(text)
        if parts:
            self._end_line()

    def _skip(self, element: etree._Element, reason: _Reason) -> None:
        if self._parts and element.tag != "span":  # a span may be a label within a line
            self._end_line()
        self.left_out.append(_LeftOut(element, reason))
        if any(map(text_of, outermost(element, "h1"))):
            self.headings.append(len(self.texts))

    def _close(self, element: etree._Element, tag: str, first: int) -> None:
        end = len(self.texts)
        if not self.elements or self.elements[-1] != (first, end):
            self.elements.append((first, end))
        role, kind = _attribute(element, "role"), _attribute(element, "itemprop")
        is_headed = tag == "article" and self.headings and self.headings[-1] >= first
        if tag == "main" or role == "main" or kind == "articleBody" or is_headed:
            self.marked.append((first, end))
        elif tag == "h1":
            self.headings.append(first)

    def _end_line(self) -> None:
        if text := squeeze("".join(self._parts)):
            letters = links = weight(text)
            if len(self._link_parts) < len(self._parts):
                links = weight(squeeze("".join(self._link_parts))) if self._link_parts else 0
            score = letters - 2 * links - _LINE_FEE
            self.texts.append(text)
            self.letters.append(letters)
            self.prose.append(letters - links if letters > 2 * links else 0)
            self.said.append(letters if links >= _LONG_LINK * self._line_links else letters - links)
            self.scores.append(score if links else max(score, _LEAST_OF_PLAIN))
        self._parts.clear()
        self._link_parts.clear()
        self._line_links = self._links


def _holders(root: etree._Element, title: str) -> set[etree._Element]:
    """Return the elements around what the page marks as its main part, and around its heading.

    The heading is the first <h1> that is a part of <title>, and at least half of it.
    """
    headings = islice(outermost(root, "h1"), 8)  # if there are more, those are hardly headings of the page
    repeated = (each for each in headings if title and 2 * len(text := text_of(each)) >= len(title) and text in title)
    found = chain(islice(root.iter("main"), 1), islice(_MAIN_ROLES(root), 1), islice(repeated, 1))
    return {holder for each in found for holder in each.iterancestors()}


def _is_of_wrapper(reason: _Reason) -> bool:
    """Return whether a wrapper of a whole page may have a reason: `layout-with-nav`, a hidden root, one <form>."""
    return reason[0] in (_REPLIES, _MARGIN_NAME, _HIDDEN) or reason[1] == "form"


def _reasons(element: etree._Element, tag: str) -> tuple[_Reason, ...]:
    reasons = () if tag == "header" and _has_lead(element) else _TAGS.get(tag, ())
    for key in _keys(element):
        if key in _TELLING:
            value = _attribute(element, key) or ""
            if key in ("class", "id"):
                reasons += _of_names(value[:_MOST_READ], key) if tag not in _UNNAMED else ()
            elif key == "role":
                reasons += _TAGS.get(_ROLES.get(value, ""), ())
            elif key == "hidden" or (_HIDING_STYLE.search(value) if key == "style" else value == "true"):
                reasons += _TAGS["template"]
    return reasons


def _has_lead(header: etree._Element) -> bool:
    """Return whether the <header> is that of an article and has a paragraph, which is the lead."""
    parent = header.getparent()
    return parent is not None and parent.tag in ("article", "main") and header.find(".//p") is not None


@lru_cache(maxsize=1 << 14)
def _of_names(value: str, key: str) -> tuple[_Reason, ...]:
    """Return the reasons in the value of a `class` or `id`; () for most values."""
    words = _WORD.findall(value)
    if _TELLING_WORDS.isdisjoint(map(str.lower, words)) or (key == "id" and len(words) > _MOST_WORDS_OF_ID):
        return ()
    return tuple(dict.fromkeys(reason for token in value.split() for reason in _of_name(token)))


def _of_name(token: str) -> tuple[_Reason, ...]:
    words = [word.lower() for word in _WORD.findall(token)]
    if not words or words[0] in _NEGATING or words[-1] in _NEGATING or _TOPIC.match(token):
        return ()
    reasons = [_BY_WORD[word] for word in words if word in _BY_WORD]
    if token.lower() in _WHOLE_NAMES:
        reasons.append((_NAME, token.lower()))
    of_consent = sum(word in _CONSENT_NAMES for word in words)
    if of_consent and of_consent + sum(word in _DIALOG_NAMES for word in words) > 1:
        reasons.append((_CONSENT, "consent"))
    head = next((word for word in reversed(words) if word not in _WRAPPERS), words[-1])
    return (*reasons, (_MARGIN_NAME, head)) if head in _MARGIN_NAMES else tuple(reasons)
