"""The protocol of a back end (`Backend`), its rows and answers, and lookups of documents for detectors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..fingerprints.record import SIMHASH
from ..row_index import Equal, Index, Near, Question
from ..signature import Signature
from .records import Key, Record

if TYPE_CHECKING:
    from ..detectors import Detector


class StoreError(Exception):
    """The store can't be read or written. The message names the store, the reason and a remedy."""


class Selection(NamedTuple):
    """A selection of records to forget. Exactly one field is set."""

    url: str | None = None  # its visit and, if that is no copy, also its document with all visits
    host: str | None = None  # its URLs and documents, and evidence that names it; a port may be given
    run: str | None = None
    before: float | None = None  # the documents last seen before this time, in seconds since the epoch


class Forgotten(NamedTuple):
    """The numbers of forgotten documents and URLs. The URLs of the documents are included."""

    documents: int
    urls: int


class Row(NamedTuple):
    """A row read from the store."""

    key: Key
    value: bytes | Record  # as `records.dump` encodes it, or the record itself if it is not yet written
    is_pending: bool = False  # true for a document that is pending in another process or crawl


class Entry(NamedTuple):
    """A row to write or delete. A written row replaces the row with the same key."""

    key: Key
    record: Record
    keys: array[int] = array("Q")  # the 64-bit keys by which the index finds the row, with well-mixed bits
    simhash: int | None = None
    is_news: bool = True  # false for a change that keeps the postings: other processes do not read it


@dataclass
class Found:
    """The rows that answer a lookup, oldest first."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    """The rows of each key. A few of them may belong to another key, so check their records."""
    near: list[Row] = field(default_factory=list)  # the rows with a near SimHash
    is_held: bool = False  # true if the back end now holds the entry that was passed with the lookup
    seen: bytes = b""  # a token by which `hold` detects rows that were added after the lookup


class Backend(Protocol):
    """Storage and lookup of rows. Use a back end in one thread at a time.

    A row passed to `write` is visible to this process at once, and durable when `flush(wait=True)` returns. Methods
    with a body serve a store that no other process uses. The other back ends override them.
    """

    name: str
    """The path or address of the store, without passwords."""
    is_remote: bool = False
    """True if the back end is a server. Other processes see this process's pending documents only on a server."""
    version: int = 0
    """Changes when `news` has read rows of other processes. Always 0 on a server, where rows may change at any time."""

    def get(self, keys: Iterable[Key]) -> list[Row]:
        """Return the rows that exist under these keys, in any order."""

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        """Yield all rows of a kind, written or not, but no document that is pending in another process or crawl.

        For documents and host news, `run` selects those of one run. Documents in a file or on a server are sorted by
        key. Visits may come twice while rows are written.
        """

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[int] = ()
    ) -> tuple[list[Found], list[Row]]:
        """Return one answer for each question, in order, and the rows with the keys `ahead`.

        `entries` has, for each question, a document to hold, or None. A server holds the document as pending if no
        row has a key of the question, even if a row has a near SimHash. After the first document that it can't hold,
        it holds none of the later ones. Local back ends ignore `entries`.
        """

    def rows_of(self, *keys: int, most: int) -> list[Row]:
        """Return the newest rows of each key, oldest first. A few of them may belong to another key."""
        [found], _ = self.find([Question(array("Q", keys), most)])
        return [*chain.from_iterable(found.rows.values())]

    def size(self, kind: str) -> int:
        """Return the number of committed documents or of visits of URLs, depending on the kind."""

    def writers(self) -> set[int]:
        """Return the code of each run that has written documents."""
        return set()

    def count(self, key: int) -> int:
        """Return the number of rows that the index has for a key. Deleted rows may be counted too."""

    def hold(self, entry: Entry, seen: bytes) -> bool:
        """Hold a document as pending. Return False if rows with its keys are newer than the lookup that gave `seen`."""

    def release(self, entry: Entry) -> None:
        """Delete a pending document."""

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        """Write `entries` and delete `deleted` in one transaction. Writing a pending document commits it."""

    def flush(self, *, wait: bool) -> None:
        """Start to write all buffered rows. With `wait`, return once they are durable.

        Raise StoreError if a write failed, or a server is known to be down. Then the rows stay in the buffer.
        """
        return

    def reach(self) -> None:
        """If the server is down, wait some seconds for it to come back."""
        return

    def news(self, *, documents: bool = False) -> tuple[list[Row], bool]:
        """Return rows that were written since the last call, and whether more remain.

        A server returns only rows of runs and hosts and, with `documents`, new documents.
        """
        return [], False

    def hold_run(self, run: str) -> bool:
        """Lock a run. Return False if another living process has locked it."""
        return True

    def is_held(self, run: str) -> bool:
        """Return whether a living process, including this one, holds the lock of a run."""
        return False

    def release_run(self, run: str) -> None:
        """Release the lock of a run, if this back end has it."""
        return

    def meet(self) -> None:
        """From now on, share pending documents with each other back end of the file and thread that called this too."""
        return

    def describe(self) -> dict[str, object]:
        """Return figures about the back end by name, such as sizes in bytes."""
        return {}

    def close(self) -> None:
        """Close the back end at once, as if the process died. Unflushed rows are lost."""


class Lookup:
    """Builds the lookups of the detectors: by equal keys, by SimHash distance, or in an index in RAM."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.names = [detector.name for detector in detectors]
        self.schemes = {detector.name: detector.scheme for detector in detectors}
        indexes = {detector.name: detector.index() for detector in detectors}
        self._newest = {n: each.newest for n, each in indexes.items() if isinstance(each, Equal)}
        self._most = max(self._newest.values(), default=0)
        self._distance = next((each.distance for each in indexes.values() if isinstance(each, Near)), None)
        self.in_ram: dict[str, Index[Any]] = {n: e for n, e in indexes.items() if not isinstance(e, (Equal, Near))}
        """The indexes in RAM, by name of the detector."""

    def question(self, signature: Signature) -> Question:
        """Return the question by which the back end finds documents like this one."""
        keys = signature.index_keys
        if self.in_ram:  # leave out the keys of detectors with such an index
            keys = array("Q", chain.from_iterable(signature.keys.get(name, ()) for name in self._newest))
        return Question(keys, self._most, None if self._distance is None else signature.simhash, self._distance or 0)

    def proposed(self, name: str, signature: Signature, found: Found) -> set[Key]:
        """Return the keys of the rows in `found` that the detector `name` proposes."""
        rows: Iterable[Row] = found.near if name == SIMHASH else ()
        if newest := self._newest.get(name):
            keys = filter(found.rows.__contains__, signature.keys.get(name, ()))
            rows = chain.from_iterable(found.rows[key][-newest:] for key in keys)
        return {row.key for row in rows}

    def enter(self, signature: Signature) -> None:
        """Add a document to the indexes in RAM, in place of its old entries."""
        self.remove(signature)
        for name, index in self.in_ram.items():
            index.add(signature.own.get(name, ()), signature)

    def remove(self, signature: Signature) -> None:
        for name, index in self.in_ram.items():
            index.remove(signature.own.get(name, ()), signature)
