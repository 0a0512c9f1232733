"""Split a text into the terms of a concept network: sentences without stop words, stemmed.

Stop words and stems are those of English and Chinese; words of other languages are taken as they are, all of them.
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
# A line may end within a sentence: only an empty one ends a paragraph.
_END = re.compile(r"[。！？!?；;…]+|\.(?=\s|$)|\n\s*\n")


class Term(NamedTuple):
    """A word of the text, by its stem."""

    name: str
    position: int
    """Words of the text that stand before it, stop words among them."""


def sentences(text: str) -> Iterator[list[Term]]:
    """Yield the terms of each sentence, in order; a sentence may have none.

    Stop words and figures are left out: they name no concept. ModuleNotFoundError: the packages of the extra `dwdcs`
    are not installed.

    曹玉娟 et al. 2011, section 3.1. Of the phrases named there we take those of one word, as the key concepts of its
    example are: to find longer ones takes a tagger for each language.
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
    """Return the stem of a word of the letters a to z, by Porter's second algorithm; any other word as it is."""
    if not (word.isascii() and word.isalpha()):
        return word
    try:
        from snowballstemmer.english_stemmer import EnglishStemmer
    except ImportError as error:
        raise _missing(error) from error
    # One for each call: it keeps the word that it is at in itself, which threads would mix up.
    stemmed: str = EnglishStemmer().stemWord(word)
    return stemmed


@cache
def stop_words() -> frozenset[str]:
    """Return the words that name no concept, as `tokenize` yields them."""
    try:
        from stopwordsiso import stopwords
    except ImportError as error:
        raise _missing(error) from error
    return frozenset(map(normalize, stopwords(LANGUAGES)))


def scheme() -> Mapping[str, str]:
    """Return what the terms of a text depend on: by name, the version of our rules and of each package."""
    try:
        packages = {name: version(name) for name in ("snowballstemmer", "stopwordsiso")}
    except ImportError as error:
        raise _missing(error) from error
    return {"terms": f"1, {TOKENS}", **packages}


def _missing(error: ImportError) -> ModuleNotFoundError:
    message = "the detectors dwdcs and dwswn need further packages: pip install 'scrapy-neardup[dwdcs]'"
    return ModuleNotFoundError(message, name=error.name)
