"""The compiled part, C twins of functions in Python and in jieba that are faster and give equal results.

Those functions are used where it was not built: without a compiler at installation, or on a big-endian machine.
"""

from __future__ import annotations

from array import array
from importlib import import_module
from typing import Any, Protocol, TypeAlias

import numpy.typing as npt

VERSION = 9

Array: TypeAlias = "bytes | array[int] | npt.NDArray[Any]"
"""Bytes or a contiguous array. The functions raise ValueError if its size does not fit."""


class Compiled(Protocol):
    """The compiled functions. `_native.c` and its headers name the Python twin of each."""

    VERSION: int

    def word_lines(self, text: bytes) -> bytes: ...
    def dictionary(self, lines: bytes, bits: int) -> tuple[bytes, int]: ...
    def cut_lines(self, text: bytes, words: Array, scores: Array, model: Array) -> bytes: ...
    def plain_chinese(self, text: bytes) -> bytes | None: ...
    def class_lines(self, page: bytes) -> bytes: ...
    def hash_lines(self, lines: bytes) -> bytes: ...
    def overlap(self, a: Array, b: Array) -> tuple[int, int, int]: ...
    def sign(self, sources: list[Any], terms: Array, starts: Array, digests: int, parts: int) -> list[bytes]: ...
    def find(self, entries: Array, simhashes: Array, probes: Array) -> bytes: ...


def _load() -> Compiled | None:
    try:
        made: Any = import_module("._native", __name__)
    except ImportError:
        return None
    found: Compiled = made
    return found if found.VERSION == VERSION else None  # a build of an earlier version


compiled = _load()
"""The compiled functions; None if they are not built."""
