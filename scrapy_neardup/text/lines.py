"""Score the lines of a page, and find the main text among them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

# Fees in letters. They were tuned on pages in several languages; a change by a quarter matters little.
_LINE_FEE = 20
_LINK_FEE_PER_LETTER = 2
# An element stands out if it has the score of an article. It also stands out if it has this minimum score, this share
# of the letters of the page, and this share of the letters outside links.
MIN_SCORE = 100
_MIN_SHARE = 0.2
_MIN_SHARE_SAID = 0.5
_ARTICLE_SCORE = 1000
_MOST_BESIDE_LINKS = 500  # the maximum letters outside links on a page of links
# A frame has at most this many letters outside its largest box, and outside all boxes, such as the name of the site.
_MOST_IN_FRAME = 200
_MOST_LOOSE = 40
_WIDE = re.compile("[\u3041-\ud7af\uf900-\ufaff]+")  # kana, Han and Hangul, and the rare scripts between them
_WIDTH = 2.5  # one such letter counts as this many letters of other scripts


def word_set(names: str) -> frozenset[str]:
    """Split a string of names at blanks."""
    return frozenset(names.split())


BLOCKS = word_set(
    "address article aside blockquote body br caption center dd details div dl dt fieldset figcaption figure footer"
    " form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol p pre section summary table tbody td tfoot th thead"
    " tr ul"
)
_HEADINGS = word_set("h1 h2")
_BOXES = word_set("article body center div footer header main section td")
_PLAIN = BLOCKS - _BOXES - _HEADINGS


def squeeze(text: str) -> str:
    """Replace each run of white space by one blank."""
    return " ".join(text.split())


def weight(text: str) -> int:
    """Return the number of letters in `text`. A Chinese, Japanese or Korean letter counts more than one."""
    return len(text) if text.isascii() else len(text) + int((_WIDTH - 1) * len("".join(_WIDE.findall(text))))


class _Box(NamedTuple):
    """A closed box element (such as `div`): its letters outside links, headings, and lines without its frame."""

    said: int
    headings: int
    core: slice


class _Best(NamedTuple):
    """The element with the highest score, and its lines without its frame."""

    score: int
    lines: slice


class Main(NamedTuple):
    lines: list[str]
    letters: int


class Part(NamedTuple):
    """The page, or an element that the page marks as its main part."""

    said: int
    """The number of letters outside links, as `weight` counts them."""
    best: _Best
    core: slice
    """The range of its lines without its frame."""


_NO_BOX = _Box(0, 0, slice(0))
_NO_BEST = _Best(0, slice(0))


class _Block:
    """An open block element."""

    __slots__ = ("best_before", "greatest", "headings_before", "in_boxes", "said_before", "score_before", "start")

    def __init__(self, start: int, score_before: int, said_before: int, headings_before: int) -> None:
        self.start = start
        self.score_before = score_before
        self.said_before = said_before
        self.headings_before = headings_before
        self.best_before: _Best | None = None  # the best element of the page before this one was marked
        self.in_boxes = 0  # letters in its boxes
        self.greatest = _NO_BOX  # the box with the most letters

    def is_frame(self, said: int, headings: int) -> bool:
        """Return whether the block is only a frame of its largest box, which has all headings and nearly all text."""
        if not headings or headings != self.greatest.headings:
            return False
        beside = said - self.greatest.said
        return beside <= min(_MOST_IN_FRAME, self.greatest.said) and said - self.in_boxes <= _MOST_LOOSE


_score_of = attrgetter("score")


class Lines:
    """The lines of a page in order, and the range of lines of the element with the highest score."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.said = 0  # letters outside links, by weight
        self.marked: list[Part] = []
        self.parts: list[str] = []  # the parts of the current line; leading blanks may be missing
        self._weights: list[int] = []
        self._all_letters = 0
        self._scores: list[int] = []
        self._score = 0  # the sum over all lines
        self._headings = 0
        self._best = _NO_BEST
        self._core = slice(None)
        self._open: list[_Block] = []
        self._link_start: int | None = None  # the first part of an open link
        self._link_parts: list[str] = []

    def open(self) -> None:
        """Open a block element in the innermost open block."""
        if self.parts:
            self.end_line()
        self._open.append(_Block(len(self.all), self._score, self.said, self._headings))

    def open_link(self) -> None:
        if self._link_start is None:
            self._link_start = len(self.parts)

    def mark(self) -> None:
        """Note that the page marks the innermost open block as its main part."""
        self._open[-1].best_before, self._best = self._best, _NO_BEST

    def close(self, tag: str) -> None:
        """Close the innermost open block."""
        if self.parts:
            self.end_line()
        block = self._open.pop()
        score = self._score - block.score_before
        is_plain = tag in _PLAIN and not block.in_boxes and block.best_before is None
        if not is_plain or score > self._best.score or not self._open:
            self._close_block(tag, block, score)

    def close_link(self) -> None:
        if self._link_start is not None:
            self._link_parts += self.parts[self._link_start :]
            self._link_start = None

    def end_line(self) -> None:
        if self._link_start is not None:
            self._link_parts += self.parts[self._link_start :]
            self._link_start = 0
        if line := squeeze("".join(self.parts)):
            is_link = len(self._link_parts) == len(self.parts)
            self._append(line, line if is_link else squeeze("".join(self._link_parts)) if self._link_parts else "")
        self.parts.clear()
        self._link_parts.clear()

    def whole(self) -> Part:
        return Part(self.said, self._best, self._core)

    def main(self, part: Part) -> Main:
        """Return the lines of the element with the highest score, without lines of links.

        If no element stands out, return all lines except those of the frame. A page of links has no frame.
        """
        indices = range(len(self.all))
        best = self._no_links(indices[part.best.lines])
        if self._stands_out(self._letters(best), part):
            return self._chosen(best)
        core = indices[part.core]
        if not self.is_links() and self._has_mostly_links():
            return self._chosen(self._no_links(core))
        return self._chosen(core if self._letters(core) >= _MIN_SHARE * self._all_letters else indices)

    def is_links(self) -> bool:
        """Return whether the page has almost only links."""
        return self.said < _MOST_BESIDE_LINKS and self._has_mostly_links()

    def _has_mostly_links(self) -> bool:
        return self.said < _MIN_SHARE * self._all_letters

    def _no_links(self, indices: Sequence[int]) -> list[int]:
        return [index for index in indices if self._scores[index] > -_LINE_FEE]

    def _chosen(self, indices: Sequence[int]) -> Main:
        return Main([self.all[index] for index in indices], self._letters(indices))

    def _letters(self, indices: Sequence[int]) -> int:
        return sum(self._weights[index] for index in indices)

    def _stands_out(self, letters: int, part: Part) -> bool:
        if part.best.score >= _ARTICLE_SCORE:
            return True
        is_most = letters >= _MIN_SHARE_SAID * part.said and letters >= _MIN_SHARE * self._all_letters
        return is_most and part.best.score >= MIN_SCORE

    def _append(self, line: str, link: str) -> None:
        letters, of_links = weight(line), weight(link) if link else 0
        score = letters - _LINK_FEE_PER_LETTER * of_links - _LINE_FEE
        self.all.append(line)
        self._scores.append(score)
        self._score += score
        self._weights.append(letters)
        self._all_letters += letters
        self.said += letters - of_links

    def _close_block(self, tag: str, block: _Block, score: int) -> None:
        self._headings += tag in _HEADINGS and len(self.all) > block.start
        said, headings = self.said - block.said_before, self._headings - block.headings_before
        core = block.greatest.core if block.is_frame(said, headings) else slice(block.start, len(self.all))
        if score > self._best.score:
            self._best = _Best(score, core)
        if block.best_before is not None:
            self.marked.append(Part(said, self._best, core))
            self._best = max(block.best_before, self._best, key=_score_of)
        if not self._open:
            self._core = core
        elif tag in _BOXES:
            self._put_box(said, _Box(said, headings, core))
        else:
            self._put_box(block.in_boxes, block.greatest)

    def _put_box(self, said: int, box: _Box) -> None:
        around = self._open[-1]
        around.in_boxes += said
        if box.said > around.greatest.said:
            around.greatest = box
