"""The lines of a page as it is read, and which run of them is its main text. Pure; knows no tree."""

from __future__ import annotations

# In letters. Tuned on pages in several languages; a quarter more or less of either changes little.
_LINE_FEE = 20
_LINK_FEE_PER_LETTER = 2
# A best element below this score, or with less than this share of the page, is not what the page is about.
MIN_SCORE = 100
_MIN_SHARE = 0.2


def word_set(names: str) -> frozenset[str]:
    """Split a string of names at blanks."""
    return frozenset(names.split())


BLOCKS = word_set(
    "address article aside blockquote body br caption center dd details div dl dt fieldset figcaption figure footer"
    " form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol p pre section summary table tbody td tfoot th thead"
    " tr ul"
)
# The tags that Lines is to be told of.
MARKS = BLOCKS | {"a"}


def squeeze(text: str) -> str:
    """Make one blank of each run of white space."""
    return " ".join(text.split())


class Lines:
    """The lines of a page in order, and the run of them that makes up its highest-scoring element."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.best_score = 0
        self._best = slice(0)
        self._scores: list[int] = []
        self._total = 0
        self._open: list[tuple[int, int]] = []  # the number of lines and the total before each open block
        self._in_link = False
        self._parts: list[str] = []  # of the current line
        self._link_parts: list[str] = []

    def open(self, tag: str) -> None:
        if tag in BLOCKS:
            self.end_line()
            self._open.append((len(self.all), self._total))
        else:
            self._in_link = True

    def add(self, text: str) -> None:
        self._parts.append(text)
        if self._in_link:
            self._link_parts.append(text)

    def close(self, tag: str) -> None:
        if tag in BLOCKS:
            self.end_line()
            self._rate(*self._open.pop())
        else:
            self._in_link = False

    def end_line(self) -> None:
        if not self._parts:
            return
        if line := squeeze("".join(self._parts)):
            self._append(line, squeeze("".join(self._link_parts)) if self._link_parts else "")
        self._parts.clear()
        self._link_parts.clear()

    def main(self) -> list[str]:
        """Return the best element's lines, less those that are mostly links; all lines where it does not stand out."""
        scored = zip(self.all[self._best], self._scores[self._best], strict=True)
        main = [line for line, score in scored if score > -_LINE_FEE]
        stands_out = self.best_score >= MIN_SCORE and _size(main) >= _MIN_SHARE * _size(self.all)
        return main if stands_out else self.all

    def _append(self, line: str, link: str) -> None:
        score = len(line) - _LINK_FEE_PER_LETTER * len(link) - _LINE_FEE
        self.all.append(line)
        self._scores.append(score)
        self._total += score

    def _rate(self, start: int, total_before: int) -> None:
        score = self._total - total_before
        if score > self.best_score:
            self.best_score = score
            self._best = slice(start, len(self.all))


def _size(lines: list[str]) -> int:
    return sum(map(len, lines))
