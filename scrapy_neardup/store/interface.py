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
    """The store can't be read or written; the message says which, why, and what to do."""


class DamageError(StoreError):
    """Some of what the store holds is not what was written."""


class Selection(NamedTuple):
    """A selection to forget: exactly one of these."""

    url: str | None = None
    """A URL, with the document whose own URL it is, and all mirrors of that."""
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


@dataclass
class HostNews:
    """News of hosts in one row."""

    trials: list[Trial] = field(default_factory=list)
    """Evidence on host mirrors."""
    met: dict[str, float] = field(default_factory=dict)
    """By host, since when it is known, in seconds since the epoch."""


Record: TypeAlias = "Signature | Link | Run | HostNews | Mapping[str, Any]"
"""What a row holds, by kind: a document, a link, a run, news of hosts, anything else that is JSON."""


class Row(NamedTuple):
    """A row that was found."""

    key: str
    """`document/RUN/NUMBER`, `link/RUN/NUMBER`, `host/RUN/NUMBER`, `run/RUN`, `meta/NAME`."""
    value: bytes | Record
    """As `records.dump` made it, or, of what is not written yet, the record itself."""
    is_pending: bool = False
    """Whether it is a document that another process holds, and has not committed."""


class Postings(NamedTuple):
    """What finds a row."""

    keys: Sequence[int] = ()
    """64 bits each, well mixed."""
    simhash: int | None = None


class Entry(NamedTuple):
    """A row to write, in place of one of the same key."""

    key: str
    record: Record
    postings: Postings = Postings()
    keeps_place: bool = False
    """Whether it replaces a row of the same postings; other processes are not told."""


class Question(NamedTuple):
    """What rows are asked for."""

    keys: Mapping[int, int]
    """By key, how many rows at most: the newest ones."""
    simhash: int | None = None
    distance: int = 0
    """Of SimHashes: rows at this Hamming distance, at most `NEWEST`: the nearest."""


@dataclass
class Found:
    """The rows that answer a question."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    """By key, those that are there, oldest first. A few may have been found by another key: look at the record."""
    near: list[Row] = field(default_factory=list)
    """Those near in SimHash, oldest first."""
    is_held: bool = False
    """Whether the entry that came with the question is held now."""
    seen: bytes = b""
    """What `hold` takes to tell whether more came since."""


class Backend(Protocol):
    """Where rows lie, and how they are found. One process uses it from one thread at a time.

    Writes of rows are idempotent: the writer chooses the key. What was handed to `write` is found at once by this
    process; it is durable once `flush(wait=True)` returns, a batch in one transaction.
    """

    name: str
    """The path or the address, as it may be shown."""
    is_remote: bool
    """Whether answers come over a network. Only such a back end has claims that other processes see."""

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        """Return the rows of these keys that exist, in any order."""

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        """Yield all rows of a kind, of one run or of all, by run and number; those not yet written included."""

    def find(self, questions: Sequence[Question], entries: Sequence[Entry | None] = ()) -> list[Found]:
        """Answer questions in this order.

        With entries, hold each document, pending, whose question's keys lead nowhere, up to the first one that is not
        held; its other postings do not matter. Back ends that are not remote hold none.
        """

    def count(self, key: int) -> int:
        """Return how many rows a key leads to; some of them may be gone."""

    def hold(self, entry: Entry, seen: bytes) -> bool:
        """Hold a document, pending: unless its keys lead to more than was `seen`, then return False."""

    def release(self, entry: Entry) -> None:
        """Hold a pending document no more."""

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        """Write rows, and delete others, as one batch; pending documents among them are committed."""

    def flush(self, *, wait: bool) -> None:
        """Send what was written on its way, or return once all of it is durable. Raise StoreError for what failed.

        What failed is kept, and tried again at the next flush. Nobody waits for a server that is away.
        """

    def reach(self) -> None:
        """Wait a little for a server that is away."""

    def news(self) -> tuple[list[Row], bool]:
        """Return some rows that were written since the last call, by any process, and whether there are more.

        On a server only rows of runs and hosts, and documents if `open` said so.
        """

    # Runs

    def hold_run(self, run: str) -> bool:
        """Take a run for this process; False where a living process has it."""

    def is_held(self, run: str) -> bool:
        """Return whether a living process has a run, this one included."""

    def release_run(self, run: str) -> None:
        """Release a run."""

    # All of it

    def describe(self) -> dict[str, object]:
        """Return what there is to say of the back end: sizes in bytes."""

    def compact(self) -> None:
        """Give back the room that is not in use. Others may go on meanwhile."""

    def abandon(self) -> None:
        """Release everything at once, as the death of the process would; rows that were not flushed are lost."""
