"""Split text into tokens, and compare titles by their words.

No I/O, except that the data of jieba are loaded on first use.

Runs of Han characters are cut as jieba does. The compiled part uses jieba's dictionary and model without importing
jieba: an import takes a second, and five times the memory. Without the compiled part, jieba itself cuts the runs into
the same words, more slowly. So a fingerprint does not depend on the installation.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import chain, islice, pairwise
from math import log
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import native

SCHEME = "tokens/3"

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Scripts without spaces between words for which there is no segmenter.
_UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
FIRST, LAST = 0x4E00, 0x9FD5  # the Han characters that jieba knows; any other Han character is a word
_FIRST, _LAST = map(chr, (FIRST, LAST))
_KNOWN = f"{_FIRST}-{_LAST}"
_RUNS = re.compile(f"([{_KNOWN}]+)")
# Unicode's Default_Ignorable_Code_Point, and the tatweel, which makes an Arabic word longer for the eye only.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0640\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SAME = str.maketrans("’‘“”„‐–—−", '\'\'"""----')  # signs that are written in several ways
_ASCII = bytes(range(128))
_ASCII_WORDS = bytes(c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else ord(" ") for c in range(256))
_STATES = "BEMS"  # places of a character in a word: first, last, middle, only one; jieba breaks ties in this order
_UNSEEN = -3.14e100  # jieba.finalseg.MIN_FLOAT
_SAYS = np.uint64((1 << 24) - 1)  # see native/chinese.h


def normalize(text: str) -> str:
    """Return `text` in Unicode form NFKC and lower case, without invisible characters such as soft hyphens.

    Full-width letters and digits become ASCII.
    """
    return text.lower() if text.isascii() else _visible(text).lower()


def folded(text: str) -> str:
    """Return a title or fact in the form for comparison: in lower case, but with its signs.

    All dashes, quotes and white space get one form each.
    """
    written = text if text.isascii() else _visible(text).translate(_SAME)
    return " ".join(written.casefold().split())


def _visible(text: str) -> str:
    form = unicodedata.normalize("NFKC", text)
    if _INVISIBLE.search("".join(_foreign(form))):
        form = unicodedata.normalize("NFKC", _INVISIBLE.sub("", form))  # joins letters and marks that meet now
    return form


def _foreign(text: str) -> set[str]:
    """Return the distinct non-ASCII characters. To save time, one Han character stands for all that jieba knows."""
    if native.compiled:
        found = native.compiled.foreign(text.encode(errors="surrogatepass"))
    else:
        found = _RUNS.sub(_FIRST, text).encode(errors="surrogatepass").translate(None, _ASCII)
    return set(found.decode(errors="surrogatepass"))


def tokenize(text: str) -> list[str]:
    """Return the words of `text` in order, in lower case, without punctuation; [] if there are no words.

    Chinese is cut by jieba's dictionary and model, other scripts without spaces (kana, Thai, …) into overlapping pairs
    of characters. All other text is cut at characters that are no letter, digit or combining mark.
    """
    lines = word_lines(spaced(text))
    return lines.decode().split("\n") if lines else []


def length(tokens: Iterable[str]) -> float:
    """Return the number of tokens. In scripts without spaces, tokens are overlapping pairs, so each counts half."""
    return sum(0.5 if _UNSPACED_RUN.match(token) else 1 for token in tokens)


def has_words(text: str, count: int) -> bool:
    """Return whether a text has at least `count` words, which are counted roughly, without a segmenter.

    A word begins with a letter after white space. In scripts without spaces, two characters are a word. So a URL, a
    number or a code is at most one word.
    """
    beginnings = "".join([part[0] for part in text.split(None, count)[:count]])
    if len(beginnings) == count and beginnings.isalpha():  # many texts end here, in a tenth of the time
        return True
    return next(islice(_beginning().finditer(text), count - 1, None), None) is not None


@cache
def _beginning() -> re.Pattern[str]:
    return re.compile(f"[{_HAN}{_UNSPACED}]{{1,2}}|(?<!\\S)[^\\w\\s]*[^\\W\\d_]")


def spaced(text: str) -> bytes:
    """Return the words of `text` in UTF-8, with any ASCII separators between them. ASCII letters may be capitals."""
    if text.isascii():
        return text.encode()
    foreign = _foreign(text)
    if any(map(_depends, foreign)):
        text = normalize(text)
        foreign = _foreign(text)
    forms = {character: _form(character) for character in foreign}
    for character, form in forms.items():
        if form != character:
            text = text.replace(character, form)
    found = "".join(forms.values())
    if found.lower() != found:
        text = text.lower()
    if _UNSPACED_RUN.search(found):
        text = _UNSPACED_RUN.sub(_pairs, text)
    return segmenter()(text.encode()) if _RUNS.search(found) else text.encode()


@lru_cache(maxsize=1 << 12)
def _depends(character: str) -> bool:
    """Return whether the normalized form of a character depends on its neighbours.

    It does for combining marks, letters that join to Hangul syllables, and the capital sigma.
    """
    form = _visible(character)
    return form != "" and (unicodedata.category(form[0])[0] == "M" or "\u1100" <= form[0] <= "\u11ff" or "Σ" in form)


@lru_cache(maxsize=1 << 12)
def _form(character: str) -> str:
    """Normalize a character, but keep its case. A digit of any script becomes ASCII, a separator a blank.

    A Han character that jieba does not know gets blanks around it, since it is a word.
    """
    return "".join(map(_parted, _visible(character)))


def _parted(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if re.match(f"[{_HAN}]", character) and not _FIRST <= character <= _LAST:
        return f" {character} "
    return character if _UNSPACED_RUN.match(character) or character.isalnum() or _is_mark(character) else " "


def _pairs(run: re.Match[str]) -> str:
    return f" {' '.join(map(''.join, pairwise(run[0]))) or run[0]} "


def _is_mark(character: str) -> bool:
    return character <= "\uffff" and unicodedata.category(character)[0] == "M"


@cache
def marks() -> str:
    """Return the combining marks, such as vowel signs of Indic scripts. They are part of words, but \\w lacks them."""
    # Without Han characters, Hangul and private characters, none of which is a mark.
    characters = map(chr, chain(range(0x300, 0x3400), range(0xA000, 0xAC00), range(0xF900, 0x10000)))
    return "".join(filter(_is_mark, characters))


def word_lines(text: bytes) -> bytes:
    """Return the words of a UTF-8 text, one on each line. All separators in the text must be ASCII.

    Only ASCII letters are changed to lower case.
    """
    return b"\n".join(text.translate(_ASCII_WORDS).split())


# Chinese

Segmenter = Callable[[bytes], bytes]
"""A function that puts line ends around each word of Han characters in a UTF-8 text, and leaves the rest as it is."""


def segmenter() -> Segmenter:
    """Return the compiled segmenter of Chinese, or else jieba."""
    return by_tables() if native.compiled else by_jieba()


@cache
def by_tables() -> Segmenter:
    assert native.compiled
    cut, tables = native.compiled.cut, load_tables(native.compiled)
    return lambda text: cut(text, *tables)


@cache
def by_jieba() -> Segmenter:
    """Return jieba as a segmenter, with a separate dictionary: words that a spider adds to jieba change nothing.

    jieba's cache is not used: any user of the machine could have replaced this temporary file. jieba logs nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of Python warn about escapes in jieba's source
        import jieba
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def cut(text: bytes) -> bytes:
        parts = _RUNS.split(text.decode())
        parts[1::2] = ["\n".join(["", *tokenizer.cut(run), ""]) for run in parts[1::2]]
        return "".join(parts).encode()

    return cut


def path_of(name: str) -> Path:
    """Return the path of a file in the installed jieba. Raise ModuleNotFoundError if jieba is not installed."""
    # resources.files("jieba") would import jieba, which takes longer than loading the data.
    spec = find_spec("jieba")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("Chinese needs the data of jieba: pip install jieba", name="jieba")
    return Path(spec.origin).parent / name


def load_tables(compiled: native.Compiled) -> tuple[bytes, bytes, bytes]:
    """Return jieba's words, their scores and its model, about 9 MB: the arguments of `Compiled.cut` after the text.

    Raise ValueError if the dictionary has an unknown format.
    """
    lines = path_of("dict.txt").read_bytes()
    # Half of the slots stay free: about every 10 bytes of the file need a slot of 8 bytes, for a prefix of a word.
    words, all_counts = compiled.dictionary(lines, (len(lines) // 8).bit_length())
    return *_scored(np.frombuffer(words, np.uint64), log(all_counts)), _model()


def _scored(words: npt.NDArray[np.uint64], all_words: float) -> tuple[bytes, bytes]:
    """Return the dictionary with each count replaced by the index of its score, and the list of scores, as bytes.

    A count of 0 has the score of a count of 1.
    """
    says = (words & _SAYS).astype(np.int64)
    is_used = np.bincount(says, minlength=2) > 0
    is_used[:2] = True
    place_of = np.cumsum(is_used) - 1
    scores = [log(max(1, count - 1)) - all_words for count in np.flatnonzero(is_used).tolist()]
    return (words - says.view(np.uint64) + place_of[says].view(np.uint64)).tobytes(), np.array(scores).tobytes()


def _model() -> bytes:
    """Return, as bytes, the log probabilities of first states, of transitions, and of each character in each state."""
    start, after, emitted = (_probabilities(name) for name in ("start", "trans", "emit"))
    emissions = np.full((LAST - FIRST + 1, len(_STATES)), _UNSEEN)
    for column, state in enumerate(_STATES):
        for character, likelihood in emitted[state].items():
            if FIRST <= ord(character) <= LAST:
                emissions[ord(character) - FIRST, column] = likelihood
    first = [start[state] for state in _STATES]
    between = [after[state].get(other, _UNSEEN) for state in _STATES for other in _STATES]
    return np.array(first + between).tobytes() + emissions.tobytes()


def _probabilities(name: str) -> Mapping[str, Any]:
    spec = spec_from_file_location(f"jieba_{name}", path_of(f"finalseg/prob_{name}.py"))
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Mapping[str, Any] = module.P
    return found


# Titles

Words: TypeAlias = tuple[str, ...]

NAME = 3  # the maximum number of words in which titles of one form differ
CUT = 4  # the minimum number of words of a title that was cut off
ELLIPSIS = ".…⋯"

_SEPARATOR = re.compile(r"\s+[|–—·»:_-]+\s+|:\s+|(?<=[^\x00-\x7f])[|_-]+|[|_-]+(?=[^\x00-\x7f])|｜|(?<=^[^：]{2})：")
# Operators, currencies, arrows, stars, faces and the like.
_SIGNS = r"-+*/%=<>!&|^~#§$¢£¤¥♯\u20a0-\u20cf\u2190-\u2bff\U0001f000-\U0001faff"
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CHARACTER = f"[{_UNSPACED}\u3400-\u9fff]"


@lru_cache(maxsize=1024)
def title_words(title: str) -> Words:
    """Return the words of a title in lower case. Each run of signs, and each character of a script without spaces
    between words, is a word.

    Signs as in "C++" and ".NET" are part of their word. A dash or bar between blanks is no word if a letter follows.
    """
    return tuple(_title_word().findall(folded(title))) if title else ()


@cache
def _title_word() -> re.Pattern[str]:
    word = rf"(?:(?<![\w.])\.)?(?:(?!{_CHARACTER})[\w{marks()}])+(?:[#+♯]+(?!\w))?"
    return re.compile(rf"{_CHARACTER}|{word}|(?!(?<= )[-|] [^\W\d])[{_SIGNS}]+")


def same_title(first: str, second: str) -> bool:
    """Return whether two titles are equal apart from the names of their sites.

    Separators split titles into parts. Titles are the same if all their parts are equal; if one title is a part of the
    other; if their longest parts are equal, and not the last of both; or if one is the other, cut off by an ellipsis.
    """
    ours, theirs = title_parts(first), title_parts(second)
    is_part = ours[0] in theirs if len(ours) == 1 else len(theirs) == 1 and theirs[0] in ours
    longest = max(ours, key=len, default="")
    has_longest = longest == max(theirs, key=len, default="") and not (longest and longest == ours[-1] == theirs[-1])
    return ours == theirs or is_part or has_longest or _is_cut(ours, theirs) or _is_cut(theirs, ours)


def _is_cut(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether a part of `ours` is a cut-off part of `theirs`. If both have other parts, these must be equal."""
    for stem in (part.rstrip(ELLIPSIS) for part in ours if part.endswith(tuple(ELLIPSIS))):
        others = [part for part in ours if part.rstrip(ELLIPSIS) != stem]
        rest = [part for part in theirs if not part.startswith(stem)]
        if len(rest) < len(theirs) and len(tokenize(stem)) >= CUT:
            return not (others and rest) or others == rest
    return False


def differ_in_number(first: str, second: str) -> bool:
    """Return whether two titles are the same apart from numbers, and each has a number that the other lacks."""
    titles = [unicodedata.normalize("NFKC", title) for title in (first, second)]
    ours, theirs = (Counter(map(_number, _NUMBER.findall(title))) for title in titles)
    return bool(ours - theirs and theirs - ours) and same_title(*(_NUMBER.sub("0", title) for title in titles))


def _number(written: str) -> str:
    """Return a number without separators of thousands and leading zeros."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[.,](?=\d{3}(?!\d))", "", written))


def title_parts(title: str) -> list[str]:
    return [part for part in _SEPARATOR.split(" ".join(title.split()).casefold()) if part]


def subject(title: Words, titles: Collection[Words]) -> Words:
    """Return a title without the words with which most of `titles` begin or end too; unchanged without other titles."""
    distinct = set(titles) | {title}
    if len(distinct) == 1:
        return title
    start = _shared(title, distinct)
    end = _shared(title[::-1], [each[::-1] for each in distinct])
    return title[start : len(title) - end] if start + end < len(title) else ()


def _shared(title: Words, titles: Collection[Words]) -> int:
    """Return the number of words at the beginning of a title with which most titles begin."""
    shared = 0
    while shared < len(title) and 2 * sum(each[: shared + 1] == title[: shared + 1] for each in titles) > len(titles):
        shared += 1
    return shared


def names(later: Words, earlier: Words, *, each: bool = False) -> tuple[list[str], list[str]] | None:
    """Return the names in two titles: for each title, the tokens of its words that the other title lacks.

    With `each`, words are counted: "Unit 3, block 2" lacks a "2" of "Unit 2, block 2". Names must have at most `NAME`
    words each, or must be in one place, with at most `NAME` tokens. The earlier title must have a name, or the same
    words as the later one in another order. Otherwise return None.
    """
    alone = [
        [*(Counter(ours) - Counter(theirs)).elements()] if each else [word for word in ours if word not in theirs]
        for ours, theirs in ((later, earlier), (earlier, later))
    ]
    is_moved = later != earlier and sorted(later) == sorted(earlier)
    ours, theirs = (tokenize(title_text(name)) for name in alone)
    has_names = all(alone) or theirs or is_moved
    between = (length(tokenize(title_text(part))) for part in _between(later, earlier))
    is_brief = max(map(len, alone)) <= NAME or max(between) <= NAME
    return (ours, theirs) if has_names and is_brief else None


def differ_in_one_place(first: Words, second: Words) -> bool:
    """Return whether two titles are equal except in one place, where they share no word."""
    ours, theirs = _between(first, second)
    return set(ours).isdisjoint(theirs)


def _between(a: Words, b: Words) -> tuple[Words, Words]:
    """Return two titles without the words with which both begin, and then without those with which both end."""
    start = _shared(a, [b])
    a, b = a[start:], b[start:]
    end = _shared(a[::-1], [b[::-1]])
    return a[: len(a) - end], b[: len(b) - end]


def title_text(name: Sequence[str]) -> str:
    """Return the words of a title as text, without blanks between characters of scripts without spaces."""
    return "".join(word if re.match(_CHARACTER, word) else f" {word} " for word in name)
