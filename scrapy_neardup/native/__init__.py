"""The compiled part: functions in C with the same results as their twins in Python and in jieba, but faster.

The twins are used where the compiled part is missing: on a big-endian machine, or if no compiler was there to build it.
"""

from __future__ import annotations

from array import array
from importlib import import_module
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

VERSION = 14
_Array: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


class Compiled(Protocol):
    """The compiled functions. Each raises ValueError if a size does not fit. Comments in C name the Python twins."""

    VERSION: int

    def dictionary(self, lines: bytes, bits: int) -> tuple[bytes, int]: ...
    def cut(self, text: bytes, words: bytes, scores: bytes, model: bytes) -> bytes: ...
    def foreign(self, text: bytes) -> bytes: ...
    def overlap(self, a: bytes, b: bytes, others: bytes) -> tuple[int, int, int, int]: ...
    def find(self, entries: _Array, simhashes: _Array, questions: list[Any], nearest: int) -> bytes: ...
    def near(self, simhashes: array[int], simhash: int, distance: int) -> list[tuple[int, int]]: ...
    def sign(self, sources: list[Any], terms: _Array, starts: _Array, digests: int, parts: int) -> list[bytes]: ...


def _load() -> Compiled | None:
    try:
        made: Any = import_module("._native", __name__)
    except ImportError:
        return None
    found: Compiled = made
    return found if found.VERSION == VERSION else None  # the build is of another version


compiled = _load()  # the compiled functions; None if they are not built, or built by another version
