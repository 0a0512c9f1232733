"""The one interface of all stores. Decisions know nothing more of them than this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ..index.hosts import Hosts
from ..index.relations import Row
from ..signature import Link, Signature
from .runs import Run


class StoreError(Exception):
    """The store can't be read or written; the message says which, why, and what to do."""


class Store(Protocol):
    """Signatures of documents, found by their fingerprints, and what each URL led to.

    A signature is pending from `add` on, and committed or withdrawn later. Both kinds are found; only what is
    committed outlives the process, durably after the next `flush`.
    """

    run: str
    """The id of the run that this store was opened for; "" where there is none."""
    hosts: Hosts
    """What was learned of host mirrors, in this run and all others."""
    stats: dict[str, int]
    """What this run came to so far, by the names of Scrapy's stats: to be kept with it when it ends."""

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Signature]]:
        """Yield each detector's name with each document that it proposes, in the detectors' order."""

    def add(self, signature: Signature) -> None:
        """Hold a new document, pending."""

    def commit(self, signature: Signature) -> None:
        """Keep a pending document for good."""

    def withdraw(self, signature: Signature) -> None:
        """Give up a pending document, as if it had never been added."""

    def record(self, link: Link) -> None:
        """Keep what a URL led to, in place of what was known of it."""

    def resolve(self, url: str) -> Link | None:
        """Return what is known of a URL, in whatever spelling."""

    def links(self, signature: Signature) -> list[Link]:
        """Return the URLs that led to a document, oldest first."""

    def learn(self, trials: Iterable[Row]) -> None:
        """Keep evidence that `hosts` has taken in."""

    def signatures(self) -> Iterable[Signature]:
        """Return all documents that are held, pending ones included."""

    def runs(self) -> list[Run]:
        """Return what is known of all runs, oldest first."""

    def describe(self) -> dict[str, object]:
        """Return what there is to say of the store itself."""

    def __len__(self) -> int:
        """How many documents are held."""

    def flush(self, *, wait: bool = True) -> None:
        """Make what was committed durable; without `wait` it only sets out to. Raise StoreError for what failed."""

    def refresh(self) -> None:
        """Take in what other processes committed."""

    def close(self, *, clean: bool = True) -> None:
        """Flush, and end the run; not `clean`: leave it to the next one to say what becomes of it."""
