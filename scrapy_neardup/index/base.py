"""What every index offers, so that a store needs not know which one a detector uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Index(Protocol[T]):
    """Fingerprints (64-bit integers, several a document) to documents; the documents compare by identity."""

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        """Enter a document under its fingerprints; none: it is never found."""

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        """Take a document out again, given the fingerprints under which it was entered."""

    def find(self, fingerprints: Sequence[int]) -> Iterable[T]:
        """Return the documents that any of the fingerprints leads to, each once."""


def distinct(documents: Iterable[T]) -> Iterator[T]:
    """Yield each document once, by identity, as soon as it comes."""
    seen: set[int] = set()
    for document in documents:
        if id(document) not in seen:
            seen.add(id(document))
            yield document
