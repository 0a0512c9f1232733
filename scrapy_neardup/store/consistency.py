"""Consistency of the rows of one namespace: each for itself, and all of them together. No I/O.

Of each row only some numbers are kept, in arrays: ten million documents take half a gigabyte.
"""

from __future__ import annotations

from array import array
from collections import Counter

import numpy as np

from ..signature import Link, Signature
from . import meta, records
from .base import DOCUMENT, HOST, LINK, META, RUN, Record
from .checks import check
from .damage import DAMAGE
from .findings import COPY, NOTHING, Notes
from .postings import links_key, url_key
from .runs import Run, is_id
from .session import COUNTS, INDEX

_COSTS = {
    DOCUMENT: "crawls that come upon it fail, and pass items; its page is stored once more",
    LINK: "crawls that come upon it fail, and pass items; what its URL led to is unknown",
    **dict.fromkeys((HOST, RUN, META), "the store is refused"),
}
_UNKNOWN = "what it held, if it was a row of the store, is unknown"


class Consistency:
    """Reads rows, and says what is wrong with them."""

    def __init__(self, notes: Notes) -> None:
        self.read: Counter[str] = Counter()
        """How many rows there are, by kind."""
        self._notes = notes
        self._lost: set[str] = set()  # kinds of which some rows can't be read
        self._runs: dict[str, Run] = {}
        self._writers: set[str] = set()
        self._beyond: Counter[str] = Counter()  # what is held beyond what the runs tell of
        self._documents, self._targets, self._urls = array("Q"), array("Q"), array("Q")

    def take(self, key: str, value: object, *, is_pending: bool = False) -> None:
        """Take in a row."""
        try:
            _check_key(key)
            if not isinstance(value, bytes):
                raise ValueError("its value is no bytes")
            record = records.load(key, value)
            self._add_meta(key, record) if key.startswith(META) else check(record)
        except DAMAGE as error:
            self._give_up(key, error)
        else:
            self.read.update(rows=1)
            self._add(key, record, is_pending=is_pending)

    def _give_up(self, key: str, why: object) -> None:
        kind = records.kind_of(key)
        known = kind in _COSTS
        self._lost.add(kind if known else "")
        what = f"# rows of kind {kind!r} can't be read" if known else "# rows can't be read"
        self._notes.add(what, _COSTS.get(kind, _UNKNOWN), f"{key[:80]!r}: {why}")

    def lose_kind(self, kind: str, why: object) -> None:
        """Note that some rows of a kind can't be read."""
        self._lost.add(kind)
        self._notes.add(f"rows of kind {kind!r} can't be read", _COSTS[kind], why)

    def lose(self, count: int, why: object) -> None:
        """Note that rows can't be read of which nothing else is known."""
        self._lost.update(_COSTS)
        self._notes.add("# rows can't be read", _UNKNOWN, why, count=count)

    # One row

    def _add_meta(self, key: str, record: Record) -> None:
        assert isinstance(record, dict)
        if key == meta.KEY:
            meta.merged(record, {})
        elif key == COUNTS:
            self._beyond.update({name: int(count) for name, count in record.items()})
        self.read[key] += 1

    def _add(self, key: str, record: Record, *, is_pending: bool) -> None:
        if isinstance(record, Run):
            self._runs[record.id] = record
            self.read.update(runs=1)
        elif isinstance(record, Signature):
            self.read.update(["pending" if is_pending else "documents"])
            self._documents.append(links_key(record.id))
            if record.own and record.url and not is_pending:
                self._urls.append(url_key(record.url))
        elif isinstance(record, Link):
            self.read.update(links=1)
            if record.target is not None:
                self._targets.append(links_key(record.target))
            if record.url:
                self._urls.append(url_key(record.url))
        if not is_pending and records.kind_of(key) in (DOCUMENT, LINK, HOST):
            self._writers.add(records.place_of(records.id_of(key))[0])

    # All of them

    def check(self, *, is_quiet: bool) -> None:
        """Note what the rows say together; `is_quiet`: while they were read nobody wrote."""
        if self.read["rows"] and not self.read[meta.KEY] and META not in self._lost:
            self._notes.add("the record of what the store was made with is missing", "the store is refused")
        if is_quiet:
            self._check_runs()
            self._check_links()
            if not self._lost:
                self._check_counts()

    def _check_runs(self) -> None:
        missing = sorted(self._writers - self._runs.keys()) if RUN not in self._lost else ()
        for name in missing:
            costs = "nothing says what of the run is forgotten, or whether it closed"
            self._notes.add("# records of runs are missing", costs, name)
            self._lost.add(RUN)

    def _check_links(self) -> None:
        if DOCUMENT not in self._lost:
            documents, targets = (np.frombuffer(each, np.uint64) for each in (self._documents, self._targets))
            lost = int((~np.isin(targets, documents)).sum())
            costs, to_do = "as many URLs are fetched again", f"nothing, they are told anew; or {COPY}"
            self._notes.add("# links lead to documents that do not exist", costs, to_do=to_do, count=lost)

    def _check_counts(self) -> None:
        """Compare sums with what there is.

        Too few rows are a loss. Other differences are no damage: two crawls that fetch a URL at once both count it,
        and a process that is killed may leave rows that it has not counted yet.
        """
        urls = len(np.unique(np.frombuffer(self._urls, np.uint64)))
        for name, count in (("documents", self.read["documents"]), ("urls", urls)):
            said = sum(getattr(run, name) for run in self._runs.values()) + self._beyond[name]
            if said != count:
                lost = name == "documents" and count < said
                costs = "their pages are stored once more" if lost else "`stats` shows wrong figures"
                what = f"the runs tell of {said} {name}, and there are {count}"
                self._notes.add(what, costs, to_do=COPY if lost else NOTHING, harmless=not lost)


def _check_key(key: str) -> None:
    """Raise ValueError for a key that no row has."""
    kind, rest = records.kind_of(key), records.id_of(key)
    is_numbered = kind in (DOCUMENT, LINK, HOST) and records.is_place(rest)
    if not (is_numbered or (kind == RUN and is_id(rest)) or key in (meta.KEY, COUNTS, INDEX)):
        raise ValueError("a store has no rows of this kind")
