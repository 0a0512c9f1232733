"""Tokens to integers: the one pass of hashing that feeds every fingerprint.

MurmurHash3 gives the same value in every process and on every machine, which `hash()` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

# Odd, so that multiplying loses nothing; the first is 2^64 over the golden ratio, the second rrmxmx's.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def hash_tokens(tokens: Sequence[str]) -> Hashes:
    """Hash each token to 128 bits: an array of shape (n, 2), two independent 64-bit columns; (0, 2) for none."""
    digests = b"".join(map(mmh3.hash_bytes, tokens))
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64, copy=False).reshape(-1, 2)


def hash_text(text: str) -> int:
    """Hash a whole text to an unsigned 64-bit integer."""
    # As bytes, since mmh3 ends the process where text holds what is no character.
    return int(mmh3.hash64(text.encode(errors="surrogatepass"), signed=False)[0])


def mix(values: Hashes) -> Hashes:
    """Spread what differs in any bit of each value over all of its bits."""
    values = (values ^ (values >> _HALF)) * _MIXER
    return values ^ (values >> _HALF)


def chain(columns: Sequence[Hashes]) -> Hashes:
    """Hash the sequences that stand in the rows of equally long columns."""
    value = columns[0]
    for column in columns[1:]:
        value = mix(value) * MULTIPLIER + column
    return mix(value)


def shingle_hashes(hashes: Hashes, width: int) -> Hashes:
    """Hash each run of `width` tokens, given a 64-bit hash a token; shape (n - width + 1,).

    A text shorter than one shingle is one shingle of its own; none for no tokens.

    Broder et al. 1997, section 2.
    """
    width = min(width, len(hashes))
    runs = len(hashes) - width + 1
    return chain([hashes[start : start + runs] for start in range(width)]) if width else hashes
