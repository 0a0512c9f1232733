"""The protocol of a back end (`Backend`), with rows, postings and lookups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ..hosts.relations import Row as Trial
from .runs import Run

if TYPE_CHECKING:
    from ..signature import Link, Signature

DOCUMENT, LINK, RUN, HOST, META = "document", "link", "run", "host", "meta"


class StoreError(Exception):
    """The store can't be read or written. The message names the store, the reason and a remedy."""


class Selection(NamedTuple):
    """A selection of records to forget. Exactly one field is set."""

    url: str | None = None
    """A URL. Its document is selected with all links to it. If the URL is a copy, only its own link is selected."""
    host: str | None = None
    """A host, with or without port. All its URLs and documents are selected, and the evidence on it."""
    run: str | None = None
    """The id of a run. All its rows are selected."""
    before: float | None = None
    """Seconds since the epoch. Documents last seen before this time are selected."""


class Forgotten(NamedTuple):
    """The numbers of forgotten documents and URLs."""

    documents: int
    links: int
    """The number of URLs, including those of the documents."""


@dataclass
class HostNews:
    """The record of a `host` row: new evidence and new hosts."""

    trials: list[Trial] = field(default_factory=list)
    """Evidence on mirrors."""
    met: dict[str, float] = field(default_factory=dict)
    """The time of the first page of each new host, in seconds since the epoch."""


Record: TypeAlias = "Signature | Link | Run | HostNews | Mapping[str, Any]"
"""The content of a row: a document, a link, a run, news of hosts, or JSON data."""


class Row(NamedTuple):
    """A row read from the store."""

    key: str
    """`document/RUN/NUMBER`, `link/RUN/NUMBER`, `host/RUN/NUMBER`, `run/RUN`, `meta/NAME`."""
    value: bytes | Record
    """Bytes as `records.dump` returns them, or the record itself if the row is not yet written."""
    is_pending: bool = False
    """Whether this is a pending document of another process."""


class Postings(NamedTuple):
    """The index entries of a row."""

    keys: Sequence[int] = ()
    """Well-mixed 64-bit keys."""
    simhash: int | None = None


class Entry(NamedTuple):
    """A row to write or delete. A written row replaces the row with the same key."""

    key: str
    record: Record
    postings: Postings = Postings()
    keeps_place: bool = False
    """Whether the row exists and needs no new postings. Other processes get no news of the change."""


class Question(NamedTuple):
    """A lookup by keys and by SimHash distance."""

    keys: Mapping[int, int]
    """The keys, each with its maximum number of rows. The newest rows are returned."""
    simhash: int | None = None
    distance: int = 0
    """The maximum Hamming distance of SimHashes. The nearest rows are returned, at most `NEWEST`."""


@dataclass
class Found:
    """The rows that answer a lookup."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    """The rows found by each key, oldest first. A few rows may belong to another key, so check the record."""
    near: list[Row] = field(default_factory=list)
    """The rows with a near SimHash, oldest first."""
    is_held: bool = False
    """Whether the entry passed with the lookup is held now."""
    seen: bytes = b""
    """A token for `hold`, which uses it to detect newer rows."""


class Backend(Protocol):
    """Storage and lookup of rows. Use a back end in one thread at a time.

    Writes are idempotent, since the writer chooses the key. A row passed to `write` is visible to this process at once,
    and durable when `flush(wait=True)` returns. A batch is one transaction.
    """

    name: str
    """The path or address of the store, without passwords."""
    is_remote: bool
    """Whether the back end is a server. Only then do other processes see the claims of this process."""

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        """Return the existing rows with these keys, in any order."""

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        """Yield all rows of a kind, of one run or of all runs. Stored rows are ordered; unwritten rows are included."""

    def find(self, questions: Sequence[Question], entries: Sequence[Entry | None] = ()) -> list[Found]:
        """Return one answer for each question, in order.

        `entries` has a document or None for each question. If the keys of the question find nothing, the document is
        held as pending, even if rows with a near SimHash are found. Once a document could not be held, later ones are
        not held either. Local back ends ignore `entries`.
        """

    def count(self, key: int) -> int:
        """Return the number of postings of a key. Postings of deleted rows may be included."""

    def hold(self, entry: Entry, seen: bytes) -> bool:
        """Hold a document as pending. Return False if its keys find rows newer than `seen`."""

    def release(self, entry: Entry) -> None:
        """Release a pending document."""

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        """Write `entries` and delete `deleted` as one batch. Pending documents among the entries are committed."""

    def flush(self, *, wait: bool) -> None:
        """Start to write all buffered rows. With `wait`, return once they are durable.

        Raise StoreError if a write failed. Its rows stay in the buffer for the next flush. While a server is known to
        be down, the call fails at once.
        """

    def reach(self) -> None:
        """Wait some seconds for a server that is down."""

    def news(self) -> tuple[list[Row], bool]:
        """Return rows that were written since the last call, and whether there are more.

        A server returns only rows of runs and hosts, and also of documents if it was opened with `hears_documents`.
        """

    # Runs

    def hold_run(self, run: str) -> bool:
        """Take the lock of a run. Return False if another living process holds it."""

    def is_held(self, run: str) -> bool:
        """Return whether a living process, including this one, holds the lock of a run."""

    def release_run(self, run: str) -> None:
        """Release the lock of a run."""

    # The back end as a whole

    def describe(self) -> dict[str, object]:
        """Return figures about the back end by name, such as sizes in bytes."""

    def compact(self) -> None:
        """Give unused space back to the system. Other processes may use the store meanwhile."""

    def abandon(self) -> None:
        """Release all resources at once, as if the process died. Unflushed rows are lost."""
