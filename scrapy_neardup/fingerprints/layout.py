"""Compute the layout of a page: a SimHash of the page's elements that does not depend on its text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .hashes import hash_tokens
from .simhash import hamming, simhash

SAME = 12  # bits: copies on one template differ by up to 9, pages of two sites by 17 or more in 99 of 100 cases


def layout(elements: Iterable[str]) -> int:
    """Return the 64-bit SimHash of the distinct element names of a page; 0 (unknown) for no names.

    A name is a tag, such as `table`, or a class, such as `.story`. Counts are left out: an article with more paragraphs
    has the same layout.

    Charikar 2002, section 3 (SimHash).
    """
    return _layout(frozenset(elements))


@lru_cache(maxsize=64)  # many pages of a site have equal elements
def _layout(names: frozenset[str]) -> int:
    return simhash(hash_tokens(sorted(names))[:, 0])


def same_layout(a: int, b: int) -> bool:
    """Return whether two layouts are the same, given their SimHashes: they differ in at most `SAME` bits."""
    return hamming(a, b) <= SAME
