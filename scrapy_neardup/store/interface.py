"""Rows, postings, and the protocol of a back end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ..mirrors.relations import Row as Trial
from .runs import Run

if TYPE_CHECKING:
    from ..signature import Link, Signature

DOCUMENT, LINK, RUN, HOST, META = "document", "link", "run", "host", "meta"


class StoreError(Exception):
    """The store can't be read or written. The message says which store, why, and what to do."""


class DamageError(StoreError):
    """A row of the store is damaged."""


class Selection(NamedTuple):
    """A selection of documents to forget. Exactly one field is set."""

    url: str | None = None
    """A URL: its document if it is the original, with all copies; else its own link."""
    host: str | None = None
    """A host, with or without port: all its URLs and documents, and the evidence on it."""
    run: str | None = None
    """The id of a run: all that it committed."""
    before: float | None = None
    """Seconds since the epoch: documents last seen before this time."""


class Forgotten(NamedTuple):
    """The numbers of forgotten documents and URLs."""

    documents: int
    links: int
    """URLs, including those of the documents."""


@dataclass
class HostNews:
    """News of hosts in one row: new evidence and new hosts."""

    trials: list[Trial] = field(default_factory=list)
    """Evidence on mirrors."""
    met: dict[str, float] = field(default_factory=dict)
    """The time of the first page of each host, in seconds since the epoch."""


Record: TypeAlias = "Signature | Link | Run | HostNews | Mapping[str, Any]"
"""The content of a row by kind: a document, a link, a run, news of hosts, or JSON."""


class Row(NamedTuple):
    """A row that was read."""

    key: str
    """`document/RUN/NUMBER`, `link/RUN/NUMBER`, `host/RUN/NUMBER`, `run/RUN`, `meta/NAME`."""
    value: bytes | Record
    """Bytes as `records.dump` returns them; for rows that are not yet written, the record itself."""
    is_pending: bool = False
    """Whether another process holds this document and has not committed it."""


class Postings(NamedTuple):
    """The keys that find a row."""

    keys: Sequence[int] = ()
    """Keys of 64 well-mixed bits."""
    simhash: int | None = None


class Entry(NamedTuple):
    """A row to write. It replaces a row with the same key."""

    key: str
    record: Record
    postings: Postings = Postings()
    keeps_place: bool = False
    """Whether it replaces a row with the same postings. Other processes are not told."""


class Question(NamedTuple):
    """A lookup by keys and by SimHash distance."""

    keys: Mapping[int, int]
    """The maximum number of rows for each key; the newest are returned."""
    simhash: int | None = None
    distance: int = 0
    """The Hamming distance for SimHashes. At most `NEWEST` rows are returned, the nearest ones."""


@dataclass
class Found:
    """The rows that answer a lookup."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    """The rows found by each key, oldest first. A few may belong to another key: check the record."""
    near: list[Row] = field(default_factory=list)
    """Rows near in SimHash, oldest first."""
    is_held: bool = False
    """Whether the entry that came with the lookup is held now."""
    seen: bytes = b""
    """A token for `hold`, by which it notices newer rows."""


class Backend(Protocol):
    """A back end: where rows lie, and how they are found. A process uses it from one thread at a time.

    Writes are idempotent, since the writer chooses the key. This process finds a row as soon as it is passed to
    `write`. The row is durable once `flush(wait=True)` returns. A batch is one transaction.
    """

    name: str
    """The path or address, without passwords."""
    is_remote: bool
    """Whether answers come over a network. Only remote back ends have claims that other processes see."""

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        """Return the existing rows of these keys, in any order."""

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        """Yield all rows of a kind, of one run or of all runs, by run and number. Rows not yet written are included."""

    def find(self, questions: Sequence[Question], entries: Sequence[Entry | None] = ()) -> list[Found]:
        """Answer questions in order.

        With entries, hold the document of each question whose keys find nothing, as pending, up to the first document
        that is not held. Its other postings do not matter. Local back ends hold none.
        """

    def count(self, key: int) -> int:
        """Return the number of postings of a key. Some may lead to deleted rows."""

    def hold(self, entry: Entry, seen: bytes) -> bool:
        """Hold a document, pending. Return False if its keys lead to rows newer than `seen`."""

    def release(self, entry: Entry) -> None:
        """Release a pending document."""

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        """Write rows and delete others as one batch. Pending documents among the rows are committed."""

    def flush(self, *, wait: bool) -> None:
        """Start to write all buffered rows; with `wait`, return once they are durable. Raise StoreError for a failed
        write.

        Failed rows stay buffered for the next flush. No caller waits for a server that is down.
        """

    def reach(self) -> None:
        """Wait a little for a server that is down."""

    def news(self) -> tuple[list[Row], bool]:
        """Return rows that any process wrote since the last call, and whether there are more.

        On a server these are rows of runs and hosts, and documents only if the back end was opened for them.
        """

    # Runs

    def hold_run(self, run: str) -> bool:
        """Take a run for this process. Return False if a living process has it."""

    def is_held(self, run: str) -> bool:
        """Return whether a living process has a run, this one included."""

    def release_run(self, run: str) -> None:
        """Release a run."""

    # All of it

    def describe(self) -> dict[str, object]:
        """Return figures about the back end, such as sizes in bytes."""

    def compact(self) -> None:
        """Give unused space back to the system. Other processes may go on meanwhile."""

    def abandon(self) -> None:
        """Release all resources at once, as if the process died. Rows that were not flushed are lost."""
