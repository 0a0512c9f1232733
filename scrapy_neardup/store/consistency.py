"""Consistency of the rows of one namespace: each for itself, and all of them together. No I/O.

Of each row only some numbers are kept, in arrays: ten million documents take a gigabyte. A row is called by its place,
the ordinal of its run and its number in 64 bits.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..signature import Link, Signature
from . import meta, records
from .base import DOCUMENT, HOST, LINK, META, RUN
from .damage import DAMAGE
from .findings import COPY, NOTHING, Notes
from .postings import url_key
from .runs import Run, is_id
from .session import COUNTS, INDEX

_COSTS = {
    DOCUMENT: "crawls that come upon it fail, and pass items; its page is stored once more",
    LINK: "crawls that come upon it fail, and pass items; what its URL led to is unknown",
    HOST: "the store is refused",
    RUN: "the store is refused",
    META: "the store is refused",
}
_UNKNOWN = "what it held, if it was a row of the store, is unknown"
_FIGURES = "`stats` shows wrong figures"
_NUMBER = 36  # bits
_NONE = (1 << 64) - 1  # in place of a document


class Consistency:
    """Reads rows, and says what is wrong with them."""

    def __init__(self, notes: Notes) -> None:
        self.read: Counter[str] = Counter()
        """How many rows there are, by kind."""
        self._notes = notes
        self._lost: set[str] = set()
        """The kinds of rows of which some can't be read."""
        self._runs: dict[str, Run] = {}
        self._ordinals: dict[str, int] = {}
        self._highest: Counter[str] = Counter()
        self._counts: dict[str, Any] = {}
        self._documents = array("Q")
        self._targets = array("Q")
        self._urls, self._led = array("Q"), array("Q")
        """Of each row that tells of a URL, the URL's key, and the document that it led to with a bit for a mirror."""

    def take(self, key: str, value: object, *, is_pending: bool = False) -> None:
        """Read a row."""
        try:
            self._check_key(key)
            if not isinstance(value, bytes):
                raise ValueError("its value is no bytes")
            self._take(key, records.load(key, value), is_pending=is_pending)
            self.read.update({"rows": 1})
        except DAMAGE as error:
            self.give_up(key, error)

    def give_up(self, key: str, why: object) -> None:
        """Note that a row can't be read."""
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

    def _check_key(self, key: str) -> None:
        """Raise ValueError for a key that no row has."""
        kind, rest = records.kind_of(key), records.id_of(key)
        if kind == META and key in (meta.KEY, COUNTS, INDEX):
            return
        if kind == RUN and is_id(rest):
            return
        if kind in (DOCUMENT, LINK, HOST):
            run, number = records.place_of(rest)
            if is_id(run) and number < 1 << _NUMBER and records.key_of(kind, run, number) == key:
                return
        raise ValueError("a store has no rows of this kind")

    def _take(self, key: str, record: Any, *, is_pending: bool) -> None:
        kind = records.kind_of(key)
        if kind == META:
            self._take_meta(key, record)
        elif kind == RUN:
            self._runs[record.id] = record
            self.read.update(runs=1)
        else:
            self._take_numbered(key, record, is_pending=is_pending)

    def _take_meta(self, key: str, record: dict[str, Any]) -> None:
        if key == meta.KEY:
            meta.merged(record, {})
        elif key == COUNTS:
            self._counts = {name: int(count) for name, count in record.items()}
        self.read[key] += 1

    def _take_numbered(self, key: str, record: Any, *, is_pending: bool) -> None:
        run, number = records.place_of(records.id_of(key))
        if isinstance(record, Signature):
            _ = [tuple(values) for values in record.fingerprints.values()]
            self._documents.append(self._place(record.id))
            self.read.update(pending=1) if is_pending else self.read.update(documents=1)
            if record.own and record.url and not is_pending:
                self._tell(record.url, record.id, is_mirror=False)
        elif isinstance(record, Link):
            self.read.update(links=1)
            if record.target is not None:
                self._targets.append(self._place(record.target))
            if record.url:
                self._tell(record.url, record.target, is_mirror=record.mirror)
        if not is_pending:
            self._highest[run] = max(self._highest[run], number)

    def _place(self, id: str) -> int:
        run, number = records.place_of(id)
        if not 0 <= number < 1 << _NUMBER:
            raise ValueError(f"{id!r} is no document")
        return self._ordinals.setdefault(run, len(self._ordinals)) << _NUMBER | number

    def _tell(self, url: str, target: str | None, *, is_mirror: bool) -> None:
        self._urls.append(url_key(url))
        self._led.append(_NONE if target is None else self._place(target) << 1 | is_mirror)

    # All of them

    def check(self, *, is_quiet: bool) -> None:
        """Note what the rows say together; `is_quiet`: while they were read nobody wrote."""
        if self.read["rows"] and not self.read[meta.KEY] and META not in self._lost:
            self._notes.add("the record of what the store was made with is missing", "the store is refused")
        if not is_quiet:
            return
        self._check_runs()
        self._check_links()
        if not self._lost:
            self._check_counts()

    def _check_runs(self) -> None:
        missing = [name for name in self._highest if name not in self._runs and RUN not in self._lost]
        for name in missing:
            costs = "nothing says what of the run is forgotten, or whether it closed"
            self._notes.add("# records of runs are missing", costs, name)
            self._lost.add(RUN)
        for name, highest in self._highest.items():
            run = self._runs.get(name)
            if run and run.closed is not None and highest > run.sealed:
                costs = "who goes on with the run writes over rows"
                self._notes.add("# closed runs have rows that came after their end", costs, name)

    def _check_links(self) -> None:
        documents = np.unique(_numbers(self._documents))
        if DOCUMENT not in self._lost:
            lost = int((~np.isin(_numbers(self._targets), documents)).sum())
            costs, to_do = "as many URLs are fetched again", f"nothing, they are told anew; or {COPY}"
            self._notes.add("# links lead to documents that do not exist", costs, to_do=to_do, count=lost)
        urls, led = _numbers(self._urls), _numbers(self._led)
        order = np.lexsort((led, urls))
        urls, led = urls[order], led[order]
        several = len(np.unique(urls[1:][(urls[1:] == urls[:-1]) & (led[1:] != led[:-1])]))
        # Crawls that fetch a URL at once can't see each other's rows of it yet.
        costs = "nothing: of a URL the newest row counts"
        self._notes.add("# URLs have several rows that differ", costs, to_do=NOTHING, count=several, harmless=True)

    def _check_counts(self) -> None:
        """Compare sums with what there is.

        Too few rows are a loss. Other differences are no damage: two crawls that fetch a URL at once both count it,
        and a process that is killed may leave rows that it has not counted yet.
        """
        there = {"documents": self.read["documents"], "urls": len(np.unique(_numbers(self._urls)))}
        for name, count in there.items():
            said = sum(getattr(run, name) for run in self._runs.values()) + int(self._counts.get(name, 0))
            if said != count:
                lost = name == "documents" and count < said
                costs = "their pages are stored once more" if lost else _FIGURES
                what = f"the runs tell of {said} {name}, and there are {count}"
                self._notes.add(what, costs, to_do=COPY if lost else NOTHING, harmless=not lost)


def _numbers(values: array[int]) -> npt.NDArray[np.uint64]:
    return np.frombuffer(values, np.uint64)
