"""Text to tokens. Pure functions of a string, but for the segmenter of Chinese, which is loaded on first use.

Text is split by script before anything else: only runs of Han characters reach the segmenter, where jieba and
rjieba give the same words. So a fingerprint does not depend on which of the two is installed.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable
from functools import cache
from itertools import pairwise

SCHEME = "tokens/1"

# Combining marks belong to the word that they modify: \w leaves out the vowel signs of Indic scripts.
_MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "M")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Scripts that put no space between words, and for which we have no segmenter.
_UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff"
_RUN = re.compile(f"(?P<han>[{_HAN}]+)|(?P<unspaced>[{_UNSPACED}]+)|(?:(?![_{_HAN}{_UNSPACED}])[\\w{_MARKS}])+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_ASCII_WORDS = str.maketrans({c: " " for c in map(chr, range(128)) if not c.isalnum()})


@cache
def segmenter() -> Callable[[str], list[str]]:
    """Return the function that cuts a run of Han characters into words: rjieba's where installed, else jieba's."""
    cut: Callable[[str], list[str]]
    try:
        from rjieba import cut
    except ImportError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its source holds escapes that newer Pythons warn of
            import jieba
        jieba.setLogLevel("WARNING")
        cut = jieba.lcut
    return cut


def normalize(text: str) -> str:
    """Return `text` in Unicode form NFKC and lower case, without soft hyphens and the like.

    Full-width letters and digits become ASCII.
    """
    return text.lower() if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).lower())


def tokenize(text: str) -> list[str]:
    """Return the words of `text` in order: lower case, no punctuation; [] where it has none.

    Chinese is cut by jieba's dictionary and model, scripts without spaces (kana, Thai, …) into overlapping pairs of
    characters, everything else at what is neither letter, digit nor combining mark.
    """
    text = normalize(text)
    if text.isascii():
        return text.translate(_ASCII_WORDS).split()
    words: list[str] = []
    for match in _RUN.finditer(text):
        run = match[0]
        if match.lastgroup == "han":
            words += segmenter()(run)
        elif match.lastgroup == "unspaced" and len(run) > 2:
            words += map("".join, pairwise(run))
        else:
            words.append(run)
    return words
