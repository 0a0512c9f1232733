"""Compare titles by their subjects: what is left of a title without what the titles of its host share. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from itertools import count
from typing import TypeAlias

from ..text.main_text import squeeze
from ..text.tokens import marks, tokenize

Words: TypeAlias = tuple[str, ...]

NAME = 3  # the maximum number of words in which titles of one form differ

_SEPARATOR = re.compile(r"\s+[|–—·»:_-]+\s+|:\s+|(?<=[^\x00-\x7f])[|_-]+|[|_-]+(?=[^\x00-\x7f])|｜")
_CHARACTER = "[\u3040-\u30ff\u3400-\u9fff]"


def title_words(title: str) -> Words:
    """Return the words of a title in lower case. Each Chinese or Japanese character, and each operator, is a word."""
    return tuple(_title_word().findall(unicodedata.normalize("NFKC", title).lower()))


@cache
def _title_word() -> re.Pattern[str]:
    return re.compile(rf"{_CHARACTER}|(?:(?!{_CHARACTER})[\w{marks()}])+|[-+*/%=<>!&|^~]+")


def same_title(first: str, second: str) -> bool:
    """Return whether two titles are equal apart from the names of their sites, which stand at the end if both have
    one."""
    ours, theirs = _parts(first), _parts(second)
    is_part = ours[0] in theirs if len(ours) == 1 else len(theirs) == 1 and theirs[0] in ours
    longest = max(ours, key=len, default="")
    has_longest = longest == max(theirs, key=len, default="") and not (longest and longest == ours[-1] == theirs[-1])
    return ours == theirs or is_part or has_longest


def _parts(title: str) -> list[str]:
    return [part for part in _SEPARATOR.split(squeeze(title).casefold()) if part]


def subject(title: Words, titles: Collection[Words]) -> Words:
    """Return a title without the words at both ends that it shares with most titles of its host, itself included."""
    distinct = set(titles) | {title}
    if len(distinct) == 1:
        return title
    start = _shared(title, distinct)
    end = _shared(title[::-1], [each[::-1] for each in distinct])
    return title[start : len(title) - end] if start + end < len(title) else ()


def _shared(title: Words, titles: Collection[Words]) -> int:
    """Return the number of words at the beginning of a title with which most titles begin."""
    return next(n for n in count() if n == len(title) or 2 * _with(title[: n + 1], titles) <= len(titles))


def _with(beginning: Words, titles: Collection[Words]) -> int:
    return sum(each[: len(beginning)] == beginning for each in titles)


def names(first: Words, second: Words) -> tuple[list[str], list[str]] | None:
    """Return the tokens of the words that only one of two titles has; None unless the titles have words in common, and
    each differs in a few words."""
    alone = [[word for word in ours if word not in theirs] for ours, theirs in ((first, second), (second, first))]
    if set(first).isdisjoint(second) or not all(0 < len(name) <= NAME for name in alone):
        return None
    ours, theirs = (tokenize(_joined(name)) for name in alone)
    return ours, theirs


def _joined(name: Sequence[str]) -> str:
    """Return the words of a title as text, without blanks between Chinese or Japanese characters."""
    return "".join(word if re.match(_CHARACTER, word) else f" {word} " for word in name)
