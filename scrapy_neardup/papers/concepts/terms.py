"""Split a text into the terms of a concept network, by sentence, stemmed and without stop words.

The stop words are English and Chinese. Words of the letters a to z are stemmed as English words. All other words are
kept unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.metadata import version
from typing import NamedTuple

from ...text.tokens import SCHEME as TOKENS
from ...text.tokens import normalize, tokenize

LANGUAGES = ("en", "zh")
# Only an empty line ends a paragraph, since the end of a line may be within a sentence.
_END = re.compile(r"[。！？!?；;…]+|\.(?=\s|$)|\n\s*\n")


class Term(NamedTuple):
    """The stem of a word, and the position of the word in the text."""

    name: str
    position: int
    """The number of words before this word, including stop words."""


def sentences(text: str) -> Iterator[list[Term]]:
    """Yield the terms of each sentence in order; an empty list for a sentence without terms.

    Stop words and figures are left out, since they name no concept. Raise ModuleNotFoundError without the packages of
    the extra `dwdcs`.

    曹玉娟 et al. 2011, section 3.1. The paper uses phrases too. Here only single words are used, as in the paper's
    example of key concepts, since phrases of several words need a tagger for each language.
    """
    dropped, begin = stop_words(), 0
    for sentence in _END.split(text):
        words = tokenize(sentence)
        yield [
            Term(stem(word), begin + place)
            for place, word in enumerate(words)
            if word not in dropped and not word[0].isdigit()
        ]
        begin += len(words)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a word by Porter's second algorithm. Words with other letters than a to z are unchanged."""
    if not (word.isascii() and word.isalpha()):
        return word
    try:
        from snowballstemmer.english_stemmer import EnglishStemmer
    except ImportError as error:
        raise _missing(error) from error
    # A new stemmer for each call, since a stemmer holds the current word and is not thread-safe.
    stemmed: str = EnglishStemmer().stemWord(word)
    return stemmed


@cache
def stop_words() -> frozenset[str]:
    """Return the words that name no concept, normalized as by `tokenize`."""
    try:
        from stopwordsiso import stopwords
    except ImportError as error:
        raise _missing(error) from error
    return frozenset(map(normalize, stopwords(LANGUAGES)))


def scheme() -> Mapping[str, str]:
    """Return all versions on which the terms of a text depend: that of these rules, and those of the packages."""
    try:
        packages = {name: version(name) for name in ("snowballstemmer", "stopwordsiso")}
    except ImportError as error:
        raise _missing(error) from error
    return {"terms": f"1, {TOKENS}", **packages}


def _missing(error: ImportError) -> ModuleNotFoundError:
    message = "the detectors dwdcs and dwswn need more packages: pip install 'scrapy-neardup[dwdcs]'"
    return ModuleNotFoundError(message, name=error.name)
