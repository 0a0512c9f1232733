"""The layout of a page: a SimHash of its elements, whatever the text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .hashes import hash_tokens
from .simhash import hamming, simhash

SAME = 12  # bits: copies on one template differ by 9 at most, pages of two sites by 17 or more in 99 of 100 cases


def layout(elements: Iterable[str]) -> int:
    """Return the 64-bit fingerprint of the distinct names of a page's elements; 0 for none, which is unknown.

    A name says what there is, such as `table`, or how it is to look, such as `.story`. How often one occurs is left
    out: an article with more paragraphs has the same layout.

    Charikar 2002, section 3 (SimHash).
    """
    return _layout(frozenset(elements))


@lru_cache(maxsize=64)  # many pages of a site are built of the same elements
def _layout(names: frozenset[str]) -> int:
    return simhash(hash_tokens(sorted(names))[:, 0])


def same_layout(a: int, b: int) -> bool:
    """Return whether two pages look alike."""
    return hamming(a, b) <= SAME
