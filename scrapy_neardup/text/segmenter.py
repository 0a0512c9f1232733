"""Cut runs of Han characters into words as jieba does. Loaded on first use.

The compiled part cuts by jieba's dictionary and model, without importing jieba: that would take a second, and five
times the memory. Without the compiled part, jieba itself cuts: the same words, more slowly.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import native

Segmenter = Callable[[bytes], bytes]
"""A function that puts line ends around each word of the runs of Han characters in a UTF-8 text."""

FIRST, LAST = 0x4E00, 0x9FD5  # the Han characters that jieba knows; any other character is a word
_RUN = re.compile(f"([{chr(FIRST)}-{chr(LAST)}]+)")
_ASCII_WORDS = bytes(c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else ord(" ") for c in range(256))
_STATES = "BEMS"  # of a character in a word: first, last, middle, single; in the order of jieba's ties
_UNSEEN = -3.14e100  # jieba.finalseg.MIN_FLOAT
_SAYS = np.uint64((1 << 24) - 1)  # see native/chinese.h


def word_lines(text: bytes) -> bytes:
    """Return the words of a UTF-8 text, one on each line. All separators in the text must be ASCII.

    Only ASCII letters are changed to lower case.
    """
    return b"\n".join(text.translate(_ASCII_WORDS).split())


def segmenter() -> Segmenter:
    """Return the compiled segmenter of Chinese, or else jieba."""
    return (_compiled() if native.compiled else None) or by_jieba()


@cache
def _compiled() -> Segmenter | None:
    """Return the compiled segmenter. If jieba's dictionary has an unknown format, warn and return None."""
    assert native.compiled
    try:
        cut, tables = native.compiled.cut, load_tables(native.compiled)
    except ValueError as error:
        warnings.warn(f"the compiled part can't cut Chinese: {error}", RuntimeWarning, stacklevel=2)
        return None
    return lambda text: cut(text, *tables)


@cache
def by_jieba() -> Segmenter:
    """Return jieba as a segmenter, with a dictionary of its own.

    Words that a spider adds to jieba change nothing. The dictionary is read without jieba's cache, a file in the folder
    for temporary files, where any user of the machine could have put another one. jieba logs nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of Python warn about escapes in jieba's source
        import jieba
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def cut(text: bytes) -> bytes:
        parts = _RUN.split(text.decode())
        parts[1::2] = ["\n".join(["", *tokenizer.cut(run), ""]) for run in parts[1::2]]
        return "".join(parts).encode()

    return cut


# jieba's data for the compiled part


def path_of(name: str) -> Path:
    """Return the path of a file in the installed jieba. Raise ModuleNotFoundError if jieba is not installed."""
    # resources.files("jieba") would import jieba, which takes longer than loading the data.
    spec = find_spec("jieba")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("Chinese needs the data of jieba: pip install jieba", name="jieba")
    return Path(spec.origin).parent / name


def load_tables(compiled: native.Compiled) -> tuple[bytes, bytes, bytes]:
    """Return jieba's words, their scores and its model, about 9 MB: the arguments of `Compiled.cut`.

    Raise ValueError if the dictionary has an unknown format.
    """
    lines = path_of("dict.txt").read_bytes()
    # Half of the slots stay free: about every 10 bytes of the file need a slot of 8 bytes for a prefix.
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
    start, after, seen = (_probabilities(name) for name in ("start", "trans", "emit"))
    with_each = np.full((LAST - FIRST + 1, len(_STATES)), _UNSEEN)
    for column, state in enumerate(_STATES):
        for character, likelihood in seen[state].items():
            if FIRST <= ord(character) <= LAST:
                with_each[ord(character) - FIRST, column] = likelihood
    first = [start[state] for state in _STATES]
    between = [after[state].get(other, _UNSEEN) for state in _STATES for other in _STATES]
    return np.array(first + between).tobytes() + with_each.tobytes()


def _probabilities(name: str) -> Mapping[str, Any]:
    spec = spec_from_file_location(f"jieba_{name}", path_of(f"finalseg/prob_{name}.py"))
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Mapping[str, Any] = module.P
    return found
