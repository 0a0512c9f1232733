"""Cut runs of Han characters into words as jieba does. Loaded on first use.

The compiled part and the cutter in Python give the same words.
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
"""From text in parts to words in UTF-8, a line each: what is before the first run, the run, what is after it … In what
is before, between and after runs, at least one, each word is between blanks, and all that is no word is a blank."""

_RUN = re.compile("([\u4e00-\u9fd5]+)")  # of the characters that jieba knows; of others, each is a word


def segmenter() -> Segmenter:
    """Return what cuts Chinese into words: the compiled part, or else the cutter in Python."""
    return (_compiled() if native.compiled else None) or _not_compiled()


class CompiledSegmenter:
    """The compiled part's, with jieba's tables. ValueError for a dictionary that it does not know."""

    def __init__(self, compiled: native.Compiled) -> None:
        self._cut_lines, self._tables = compiled.cut_lines, load_tables(compiled)

    def __call__(self, parts: list[str]) -> bytes:
        return self.cut("".join(parts).encode())

    def cut(self, text: bytes) -> bytes:
        """Return the words of a text that is not in parts, but as they are in all else."""
        return self._cut_lines(text, *self._tables)


@cache
def _compiled() -> Segmenter | None:
    """Return None, with a warning, where jieba's dictionary is in a form that the compiled part does not know."""
    assert native.compiled
    try:
        return CompiledSegmenter(native.compiled)
    except ValueError as error:
        warnings.warn(f"Chinese is not cut by the compiled part: {error}", RuntimeWarning, stacklevel=2)
        return None


@cache
def _not_compiled() -> Segmenter:
    return by_runs(build_segmenter())


def by_runs(cut: Cut) -> Segmenter:
    """Return a segmenter that has all runs cut by a function at once: a call for each would take a third longer.

    The function is to cut off each blank and each line end.
    """

    def lines(parts: list[str]) -> bytes:
        gaps = parts[::2]
        joined = parts.copy()
        joined[::2] = ["\n" if len(gap) > 1 else gap for gap in gaps]
        words = _filled(cut("".join(joined)), [gap.split() for gap in gaps if len(gap) > 1])
        return "\n".join(words).replace("\n \n", "\n").strip().encode()

    return lines


def _filled(cut: list[str], gaps: list[list[str]]) -> list[str]:
    """Return the words that were cut, with those of the gaps in place of the line ends, in order."""
    words: list[str] = []
    at = 0
    for gap in gaps:
        end = cut.index("\n", at)
        words += cut[at:end]
        words += gap
        at = end + 1
    return words + cut[at:] if words else cut


def build_segmenter() -> Cut:
    """Return a function that cuts as jieba's own does, in less than half of the time: by its words and its model."""
    dictionary = _Dictionary()

    def cut(text: str) -> list[str]:
        words: list[str] = []
        for place, part in enumerate(_RUN.split(text)):
            words += dictionary.cut(part) if place % 2 else part
        return words

    return cut


class _Dictionary:
    """jieba's words with their counts, and what finds new words in the characters that are left over."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its source holds escapes that newer Pythons warn of
            import jieba
            from jieba import finalseg
        jieba.setLogLevel("WARNING")
        jieba.dt.initialize()
        self._counts: dict[str, int] = jieba.dt.FREQ  # 0: no word, but some begin so
        self._scores = _Scores(log(jieba.dt.total))
        # Names and the like: most come again.
        self._find = lru_cache(maxsize=1 << 14)(lambda text: list(finalseg.cut(text)))

    def cut(self, run: str) -> list[str]:
        """Return the words of a run: of all ways to cut it the likeliest, with new words in what is left over."""
        words: list[str] = []
        at = start = 0  # of what is left over: characters that stand alone, one after another
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
        """Yield where the words of the likeliest way to cut a run end."""
        ends = self._best_ends(run)
        at = 0
        while at < len(run):
            at = ends[at]
            yield at

    def _best_ends(self, run: str) -> list[int]:
        """Return for each place where the word ends that is best there, by the likelihood of all that follows too."""
        count_of, scores, size = self._counts.get, self._scores, len(run)
        best, ends = [0.0] * (size + 1), [0] * size
        for start in range(size - 1, -1, -1):
            end = far = start + 1
            most = -inf
            word = run[start]
            while (count := count_of(word)) is not None:
                # As jieba adds them, for the last digit: of equal ones the longest word wins.
                if count and (score := scores[count] + best[end]) >= most:
                    most, far = score, end
                if end == size:
                    break
                end += 1
                word = run[start:end]
            best[start] = most if most > -inf else scores[1] + best[start + 1]
            ends[start] = far
        return ends


class _Scores(dict[int, float]):
    """The logarithm of how likely a word of a count is."""

    def __init__(self, all_words: float) -> None:
        self._all_words = all_words

    def __missing__(self, count: int) -> float:
        self[count] = score = log(count) - self._all_words
        return score
