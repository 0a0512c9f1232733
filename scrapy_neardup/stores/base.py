"""The one interface of all stores. Decisions know nothing more of them than this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..index.hosts import Hosts
from ..index.relations import Row
from ..signature import Link, Signature
from .runs import Run


class StoreError(Exception):
    """The store can't be read or written; the message says which, why, and what to do."""


class Selection(NamedTuple):
    """What is to be forgotten: exactly one of these."""

    url: str | None = None
    """A URL: what it led to is unknown again, and the document whose own URL it is goes with all its mirrors."""
    host: str | None = None
    """A host, with its port if it has one: all its URLs, its documents, and what was learned of its mirrors."""
    run: str | None = None
    """The id of a run: all that it committed."""
    before: float | None = None
    """Seconds since the epoch: documents that were last seen before, by any URL."""


class Forgotten(NamedTuple):
    """How much was forgotten."""

    documents: int
    links: int
    """URLs, those of the documents included."""


class Store(Protocol):
    """Signatures of documents, found by their fingerprints, and what each URL led to.

    A signature is pending from `add` on, and committed or withdrawn later. Both kinds are found; only what is
    committed outlives the process, durably after the next `flush`.
    """

    run: str
    """The id of the run that this store was opened for; "" where there is none."""
    hosts: Hosts
    """What was learned of host mirrors, in this run and all others."""
    is_remote: bool
    """Whether its answers come over a network."""
    stats: dict[str, int]
    """What this run came to so far, by the names of Scrapy's stats: to be kept with it when it ends."""

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Signature]]:
        """Yield each detector's name with each document that it proposes, in the detectors' order."""

    def add(self, signature: Signature) -> None:
        """Hold a new document, pending."""

    # A claim that is atomic between processes: `intend`, compare what is found, then `enter` until it is so or there is
    # a match; then `leave`. Where only this process decides, `enter` is `add`, and the others do nothing.

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Have the first looks for documents go together that are intended next, in this order, if that is quicker."""

    def intend(self, signature: Signature) -> None:
        """Let the next `find` hold a document, pending, where nothing shares a fingerprint with it."""

    def enter(self, signature: Signature) -> bool:
        """Hold that document, unless it may repeat newer ones: then False, and the next `find` yields these."""

    def leave(self, signature: Signature) -> None:
        """Do not hold that document after all, for it repeats another."""

    def is_pending(self, signature: Signature) -> bool:
        """Say whether a document that was just found is pending in another process, which lives."""

    def commit(self, signature: Signature) -> None:
        """Keep a pending document for good."""

    def withdraw(self, signature: Signature) -> None:
        """Give up a pending document, as if it had never been added."""

    def record(self, link: Link) -> None:
        """Keep what a URL led to, in place of what was known of it."""

    def resolve(self, url: str) -> Link | None:
        """Return what is known of a URL, in whatever spelling."""

    def repeat(self, signature: Signature) -> None:
        """Count one more document that repeats one that is held, and has no URL to record."""

    def forget(self, what: Selection) -> Forgotten:
        """Let go of documents, URLs and rules; for good once flushed. Nothing is forgotten twice: then it counts 0."""

    def links(self, signature: Signature) -> Iterable[Link]:
        """Return the URLs that led to a document, oldest first."""

    def learn(self, trials: Iterable[Row]) -> None:
        """Keep evidence that `hosts` has taken in."""

    def signatures(self) -> Iterable[Signature]:
        """Return all documents that are held, pending ones included."""

    def all_links(self) -> Iterable[Link]:
        """Return what is known of all URLs."""

    def degrees(self) -> Iterable[int]:
        """Return how often each document is repeated."""

    def runs(self) -> list[Run]:
        """Return what is known of all runs, oldest first."""

    def is_alive(self, run: str) -> bool:
        """Say whether a living process has a run open. Of a run that none has, `runs` tells what holds by now."""

    def describe(self) -> dict[str, object]:
        """Return what there is to say of the store itself."""

    def __len__(self) -> int:
        """How many documents are held."""

    def run_of(self, signature: Signature) -> str:
        """Return the id of the run in which a document came; that of this run where it is not written yet."""

    def flush(self, *, wait: bool = True) -> None:
        """Make what was committed durable; without `wait` it only sets out to. Raise StoreError for what failed."""

    def refresh(self) -> bool:
        """Take in some of what other processes committed, for some milliseconds; say whether there is more."""

    def close(self, *, clean: bool = True) -> None:
        """Flush, and end the run; not `clean`: leave it to the next one to say what becomes of it."""
