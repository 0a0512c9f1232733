"""The kinds of indexes: equal fingerprints, near SimHashes, or a detector's own index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")

NEWEST = 16  # documents that one fingerprint proposes at most: more have a set phrase in common, no text


@dataclass(frozen=True)
class Equal:
    """By an equal fingerprint: the store does it. One that very many share tells little of any of them."""

    newest: int = NEWEST
    """How many documents are found by one fingerprint at most: those that came last."""


@dataclass(frozen=True)
class Near:
    """By a fingerprint that differs in few bits: the store does it, for the detector `simhash` alone."""

    distance: int
    """Bits."""


class Index(Protocol[T]):
    """An index of a detector's own, in memory: the store fills it when it is opened.

    Fingerprints (64-bit integers, several a document) to documents; the documents compare by identity."""

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
