"""Hash tokens to integers, once for all fingerprints.

MurmurHash3 gives equal values in every process and on every machine; `hash()` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

# Odd, so that multiplication is invertible; the first is 2^64 over the golden ratio, the second is rrmxmx's.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def hash_tokens(tokens: Sequence[str | bytes]) -> Hashes:
    """Hash each token to 128 bits: two independent 64-bit columns of an array of shape (n, 2).

    No tokens give an array of shape (0, 2).
    """
    hashes = np.frombuffer(b"".join(map(mmh3.hash_bytes, tokens)), "<u8")
    return hashes.astype(np.uint64, copy=False).reshape(-1, 2)


def hash_text(text: str) -> int:
    """Hash a text to an unsigned 64-bit integer."""
    # As bytes, since mmh3 aborts the process for a str with lone surrogates.
    return hash_bytes(text.encode(errors="surrogatepass"))


def hash_bytes(data: bytes) -> int:
    """Hash bytes to an unsigned 64-bit integer."""
    return int(mmh3.hash64(data, signed=False)[0])


def distinct(hashes: Hashes) -> Hashes:
    """Return the distinct hashes, ascending."""
    # np.unique of numpy 2.3 and later takes 7 times as long for a short text, and 30 times for 1 MB.
    hashes = hashes.copy()
    hashes.sort()
    is_new = np.ones(len(hashes), dtype=bool)
    np.not_equal(hashes[1:], hashes[:-1], out=is_new[1:])
    return hashes[is_new]


def counted(rows: Hashes) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Return the distinct rows of an array of hashes, sorted by their first column, and the count of each row.

    Rows are 128-bit hashes, so rows with equal first columns are equal.
    """
    _, places, counts = np.unique(rows[:, 0], return_index=True, return_counts=True)
    return rows[places], counts


def mix(values: Hashes) -> Hashes:
    """Mix the bits of each value, so that each bit of the input affects all bits of the output."""
    values = (values ^ (values >> _HALF)) * _MIXER
    return values ^ (values >> _HALF)


def chain(columns: Sequence[Hashes]) -> Hashes:
    """Hash each row of several columns of equal length to one value."""
    value = columns[0]
    for column in columns[1:]:
        value = mix(value) * MULTIPLIER + column
    return mix(value)


def shingle_hashes(hashes: Hashes, width: int) -> Hashes:
    """Hash each run of `width` tokens, given the 64-bit hashes of n tokens. The shape is (n - width + 1,).

    Fewer than `width` tokens are one shingle. No tokens give no shingle.

    Broder et al. 1997, section 2.
    """
    width = min(width, len(hashes))
    runs = len(hashes) - width + 1
    return chain([hashes[start : start + runs] for start in range(width)]) if width else hashes


def shingles(rows: Hashes, width: int) -> Hashes:
    """Return the distinct hashes of all runs of `width` tokens, ascending, given token hashes of shape (n, 2)."""
    return distinct(shingle_hashes(rows[:, 0], width))
