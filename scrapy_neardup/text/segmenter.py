"""Cut runs of Han characters into words as jieba does. Loaded on first use.

The compiled part and the cutter in Python give equal words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from math import inf, log

from .. import native
from .jieba_data import load_tables

Cut = Callable[[str], list[str]]
Segmenter = Callable[[list[str]], bytes]
"""A function that returns the words of a text in UTF-8, one on each line.

It takes the text as a list of gaps and runs. Gaps have an even index, and consist of words with blanks around each
word, or are empty. Between two gaps is a run of Han characters.
"""

_RUN = re.compile("([\u4e00-\u9fd5]+)")  # runs of the Han characters that jieba knows; any other character is a word


def segmenter() -> Segmenter:
    """Return the compiled segmenter of Chinese, or else the one in Python."""
    return (_compiled() if native.compiled else None) or _not_compiled()


class CompiledSegmenter:
    """The compiled segmenter with jieba's tables. Raises ValueError if jieba's dictionary has an unknown format."""

    def __init__(self, compiled: native.Compiled) -> None:
        self._cut_lines, self._tables = compiled.cut_lines, load_tables(compiled)

    def __call__(self, parts: list[str]) -> bytes:
        return self.cut("".join(parts).encode())

    def cut(self, text: bytes) -> bytes:
        """Cut a text as a segmenter does. `text` is the list of gaps and runs, joined and encoded in UTF-8."""
        return self._cut_lines(text, *self._tables)


@cache
def _compiled() -> Segmenter | None:
    """Return the compiled segmenter. If jieba's dictionary has an unknown format, warn and return None."""
    assert native.compiled
    try:
        return CompiledSegmenter(native.compiled)
    except ValueError as error:
        warnings.warn(f"the compiled part can't cut Chinese: {error}", RuntimeWarning, stacklevel=2)
        return None


@cache
def _not_compiled() -> Segmenter:
    return by_runs(build_segmenter())


def by_runs(cut: Cut) -> Segmenter:
    """Return a segmenter that cuts all runs in one call of `cut`. One call for each run takes a third longer.

    `cut` must cut at each blank and each line end.
    """

    def lines(parts: list[str]) -> bytes:
        gaps = parts[::2]
        joined = parts.copy()
        joined[::2] = ["\n" if len(gap) > 1 else gap for gap in gaps]
        words = _filled(cut("".join(joined)), [gap.split() for gap in gaps if len(gap) > 1])
        return "\n".join(words).replace("\n \n", "\n").strip().encode()

    return lines


def _filled(cut: list[str], gaps: list[list[str]]) -> list[str]:
    """Return the words of the list `cut`, with each line end replaced by the words of the next gap."""
    words: list[str] = []
    at = 0
    for gap in gaps:
        end = cut.index("\n", at)
        words += cut[at:end]
        words += gap
        at = end + 1
    return words + cut[at:] if words else cut


def build_segmenter() -> Cut:
    """Return a function that cuts text by jieba's dictionary and model, in less than half of jieba's time."""
    dictionary = _Dictionary()

    def cut(text: str) -> list[str]:
        words: list[str] = []
        for place, part in enumerate(_RUN.split(text)):
            words += dictionary.cut(part) if place % 2 else part
        return words

    return cut


class _Dictionary:
    """jieba's dictionary of words with their counts, and its model of words that are not in the dictionary."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of Python warn about escapes in jieba's source
            import jieba
            from jieba import finalseg
        jieba.setLogLevel("WARNING")
        jieba.dt.initialize()
        self._counts: dict[str, int] = jieba.dt.FREQ  # 0 marks a prefix that is not a word
        all_words = log(jieba.dt.total)
        self._score = cache(lambda count: log(count) - all_words)  # of a word, by its count
        # A cache, since most new words (names and the like) occur again.
        self._find = lru_cache(maxsize=1 << 14)(lambda text: list(finalseg.cut(text)))

    def cut(self, run: str) -> list[str]:
        """Return the words of a run. The dictionary shows the most likely way to cut it.

        After that, the model finds new words among characters that remain single.
        """
        words: list[str] = []
        at = start = 0  # `start`: the beginning of a series of single characters
        for end in self._ends(run):
            if end - at > 1:
                words += self._left_over(run[start:at])
                words.append(run[at:end])
                start = end
            at = end
        words += self._left_over(run[start:at])
        return words

    def _left_over(self, text: str) -> str | list[str]:
        return text if len(text) < 2 or self._counts.get(text) else self._find(text)

    def _ends(self, run: str) -> Iterator[int]:
        """Yield the end of each word in the most likely cut of a run."""
        ends = self._best_ends(run)
        at = 0
        while at < len(run):
            at = ends[at]
            yield at

    def _best_ends(self, run: str) -> list[int]:
        """Return, for each position, the end of the first word in the most likely cut of the run from there on."""
        count_of, score_of, size = self._counts.get, self._score, len(run)
        best, ends = [0.0] * (size + 1), [0] * size
        for start in range(size - 1, -1, -1):
            end = far = start + 1
            most = -inf
            word = run[start]
            while (count := count_of(word)) is not None:
                # Add in jieba's order, so that the last digits are equal. Ties go to the longest word.
                if count and (score := score_of(count) + best[end]) >= most:
                    most, far = score, end
                if end == size:
                    break
                end += 1
                word = run[start:end]
            best[start] = most if most > -inf else score_of(1) + best[start + 1]
            ends[start] = far
        return ends
