"""Text to tokens. Pure functions of a string, but for the segmenter of Chinese, which is loaded on first use.

Text is split by script before anything else: only runs of the Han characters that jieba knows reach the segmenter,
where jieba and rjieba give the same words. So a fingerprint does not depend on which of the two is installed.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from .. import native
from .segmenter import segmenter

SCHEME = "tokens/1"

# Combining marks belong to the word that they modify: \w leaves out the vowel signs of Indic scripts.
_MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c)[0] == "M")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Scripts that put no space between words, and for which we have no segmenter.
_UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff"
_LETTER = re.compile(f"(?!_)[\\w{_MARKS}]")
_DEPENDS = re.compile(f"[{_HAN}{_UNSPACED}]")
_KNOWN = "\u4e00-\u9fd5"  # to jieba; each other one is a word, where rjieba would join them
_RUN = re.compile(
    f"(?P<han>[{_KNOWN}]+)|[{_HAN}]|(?P<unspaced>[{_UNSPACED}]+)|(?:(?![_{_HAN}{_UNSPACED}])[\\w{_MARKS}])+"
)
_HAN_RUNS = re.compile(f"([{_KNOWN}]+)")  # they stay as they are in any Unicode form
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_ASCII = bytes(range(128))
_ASCII_WORDS = bytes(c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else ord(" ") for c in range(256))
_SHORT, _MANY = 8, 1 << 13  # characters; texts


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
    lines = token_lines(text)
    return lines.decode().split("\n") if lines else []


def token_lines(text: str) -> bytes:
    """Return the words of `text`, as `tokenize` does, in UTF-8, a line each; b"" where it has none."""
    if text.isascii():
        return word_lines(text.encode())
    parts = _HAN_RUNS.split(text)  # what is before the first run, the run, what is between it and the next …
    if len(parts) == 1:
        plain = _plain(text)
        return _lines(_runs(normalize(text))) if plain is None else word_lines(plain.lower().encode())
    between = [_BETWEEN[part] for part in parts[::2]]
    if None in between:
        return _lines(_runs(normalize(text)))
    # All runs are cut at once: a call for each would take a third longer.
    parts[::2] = [gap[0] for gap in between if gap]
    cut = segmenter()("".join(parts))
    # The blanks among them are left out with what parts the others.
    return word_lines(_lines(_filled(cut, [gap[1] for gap in between if gap and gap[1]])))


def _lines(words: list[str]) -> bytes:
    return "\n".join(words).encode()


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


class _Between(dict[str, "tuple[str, list[str]] | None"]):
    """What stands between runs of Han characters: most of it is short, and few such texts are new.

    By text: what is to separate the runs while they are cut, and the words; None where it comes to have such itself.
    """

    def __missing__(self, text: str) -> tuple[str, list[str]] | None:
        plain = _plain(text)
        normal = normalize(text) if plain is None else plain
        words = _runs(normal) if plain is None else word_lines(normal.lower().encode()).decode().split()
        # Of what is invisible nothing is left, so that the runs are one.
        gap = None if _HAN_RUNS.search(normal) else ("\n" if words else " " if normal else "", words)
        if len(text) <= _SHORT:
            if len(self) == _MANY:
                self.clear()
            self[text] = gap
        return gap


_BETWEEN = _Between()


def _plain(text: str) -> str | None:
    """Return a text normal but for its case, blanks for what is not ASCII and belongs to no word.

    None where what a character comes to depends on those beside it.
    """
    foreign = text.encode(errors="surrogatepass").translate(None, _ASCII).decode(errors="surrogatepass")
    for character in set(foreign):
        form = _form(character)
        if form is None:
            return None
        if form != character:
            text = text.replace(character, form)
    return text


@lru_cache(maxsize=1 << 12)
def _form(character: str) -> str | None:
    """Return what takes the place of a character that is not ASCII, blanks for what belongs to no word.

    None where its neighbours decide: marks and the like, the capital sigma, scripts without spaces.
    """
    form = unicodedata.normalize("NFKC", character)
    is_jamo = "\u1100" <= form[0] <= "\u11ff"  # letters that join to syllables of Hangul
    if is_jamo or unicodedata.category(form[0])[0] == "M" or "Σ" in form or _DEPENDS.search(form):
        return None
    if form == character and _LETTER.match(form):
        return character  # lower case comes later
    form = _INVISIBLE.sub("", form.lower())
    return "".join(c if _LETTER.match(c) else " " for c in form)


def word_lines(text: bytes) -> bytes:
    """Return the words, a line each, of a text in UTF-8 in which all that belongs to none is ASCII.

    In lower case as far as it is ASCII.
    """
    return native.compiled.word_lines(text) if native.compiled else b"\n".join(text.translate(_ASCII_WORDS).split())


def _runs(normal: str) -> list[str]:
    """Return the words of any normal text, script by script."""
    words: list[str] = []
    for match in _RUN.finditer(normal):
        run = match[0]
        if match.lastgroup == "han":
            words += segmenter()(run)
        elif match.lastgroup == "unspaced" and len(run) > 2:
            words += map("".join, pairwise(run))
        else:
            words.append(run)
    return words
