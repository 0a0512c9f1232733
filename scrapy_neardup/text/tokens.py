"""Split text into tokens. No I/O, except that the segmenter of Chinese is loaded on first use.

Text is first split by script. jieba cuts only runs of the Han characters that it knows. The compiled segmenter gives
the same words as jieba, so a fingerprint does not depend on the installation.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain, islice, pairwise

from .segmenter import FIRST, LAST, segmenter, word_lines

SCHEME = "tokens/2"

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Scripts without spaces between words for which there is no segmenter.
_UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff"
_DEPENDS = re.compile(f"[{_HAN}{_UNSPACED}]")
_FIRST, _LAST = map(chr, (FIRST, LAST))  # normalization does not change the characters between
_KNOWN = f"{_FIRST}-{_LAST}"
_HAN_RUNS = re.compile(f"([{_KNOWN}]+)")
_FOREIGN = re.compile(f"[^\0-\x7f{_KNOWN}]")
# Unicode's Default_Ignorable_Code_Point, and the tatweel, which makes an Arabic word longer for the eye only.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0640\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SHORT = 8  # characters of a text between runs of Han characters whose words are cached


def normalize(text: str) -> str:
    """Return `text` in Unicode form NFKC and lower case, without invisible characters such as soft hyphens.

    Full-width letters and digits become ASCII.
    """
    return text.lower() if text.isascii() else _visible(text).lower()


def _visible(text: str) -> str:
    form = unicodedata.normalize("NFKC", text)
    visible = _INVISIBLE.sub("", form)
    return form if visible == form else unicodedata.normalize("NFKC", visible)  # letters and marks that meet now


def tokenize(text: str) -> list[str]:
    """Return the words of `text` in order, in lower case, without punctuation; [] if there are no words.

    Chinese is cut by jieba's dictionary and model, other scripts without spaces (kana, Thai, …) into overlapping pairs
    of characters. All other text is cut at characters that are no letter, digit or combining mark.
    """
    lines = token_lines(text)
    return lines.decode().split("\n") if lines else []


def has_words(text: str, count: int) -> bool:
    """Return whether a text has at least so many words. They are counted roughly, and without a segmenter.

    A word begins with a letter after white space. In scripts without spaces, two characters are a word. So a URL, a
    number and a code have no words or one.
    """
    beginnings = "".join([part[0] for part in text.split(None, count)[:count]])
    if len(beginnings) == count and beginnings.isalpha():  # many texts, in a tenth of the time
        return True
    return next(islice(_beginning().finditer(text), count - 1, None), None) is not None


@cache
def _beginning() -> re.Pattern[str]:
    return re.compile(f"[{_HAN}{_UNSPACED}]{{1,2}}|(?<!\\S)[^\\w\\s]*[^\\W\\d_]")


def token_lines(text: str) -> bytes:
    """Return the words of `text` as `tokenize` does, but in UTF-8, one on each line; b"" if there are no words."""
    return word_lines(spaced(text))


def spaced(text: str) -> bytes:
    """Return the words of `text` in UTF-8 with ASCII separators between them. Capitals are left in ASCII text only."""
    if text.isascii():
        return text.encode()
    if (plain := _plain(text)) is None:
        parts = _HAN_RUNS.split(normalize(text))  # text before the first run, the run, text between, …
        parts[::2] = [(_runs if len(part) <= _SHORT else _runs.__wrapped__)(part) for part in parts[::2]]
        plain = "".join(parts)
    made = plain.lower().encode()
    return segmenter()(made) if _HAN_RUNS.search(plain) else made


def _plain(text: str) -> str | None:
    """Normalize a text but not its case, and replace non-ASCII characters that are no part of words by blanks.

    Return None if the form of a character depends on its neighbours.
    """
    for character in set(_FOREIGN.findall(text)):
        form = _form(character)
        if form is None:
            return None
        if form != character:
            text = text.replace(character, form)
    return text


@lru_cache(maxsize=1 << 12)
def _form(character: str) -> str | None:
    """Return the normalized form of a non-ASCII character; blanks if it is no part of words.

    Return None if its neighbours matter: combining marks, the capital sigma, scripts without spaces.
    """
    if not (form := _visible(character)):
        return form
    is_jamo = "\u1100" <= form[0] <= "\u11ff"  # letters that join to Hangul syllables
    if is_jamo or unicodedata.category(form[0])[0] == "M" or "Σ" in form or _DEPENDS.search(form):
        return None
    if form == character and _is_of_word(form):
        return character  # lower case follows later
    return "".join(c if _is_of_word(c) else " " for c in form.lower())


def _is_of_word(character: str) -> bool:
    return character.isalnum() or (character <= "\uffff" and _is_mark(character))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


@cache
def marks() -> str:
    """Return the combining marks, which belong to the word that they modify.

    In regular expressions, \\w lacks them, for example the vowel signs of Indic scripts.
    """
    # Without Han characters, Hangul and private characters, none of which is a mark.
    characters = map(chr, chain(range(0x300, 0x3400), range(0xA000, 0xAC00), range(0xF900, 0x10000)))
    return "".join(filter(_is_mark, characters))


@cache
def _run() -> re.Pattern[str]:
    # Compiled on first use, since it would be a good part of the start of a crawl, and most texts do not need it.
    return re.compile(f"[{_HAN}]|(?P<unspaced>[{_UNSPACED}]+)|(?:(?![_{_HAN}{_UNSPACED}])[\\w{marks()}])+")


@lru_cache(maxsize=1 << 13)  # most texts between runs of Han characters are short and repeated
def _runs(normal: str) -> str:
    """Return the words of a normalized text that has no Han characters known to jieba, with blanks around each."""
    words = [""]
    for match in _run().finditer(normal):
        run = match[0]
        if match.lastgroup == "unspaced" and len(run) > 2:
            words += map("".join, pairwise(run))
        else:
            words.append(run)
    return " ".join([*words, ""]) if normal else ""
