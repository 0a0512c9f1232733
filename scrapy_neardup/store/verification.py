"""Reading all of a store, of every namespace: what is damaged, what that costs, and what to do. Changes nothing."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..fingerprints.hashing import hash_text
from ..signature import Link, Signature
from ..text.urls import canonical_url
from ..watching import watched
from . import meta, records
from .base import DOCUMENT, HOST, LINK, META, RUN, Row
from .redis.address import is_server
from .runs import Run
from .session import COUNTS

COPY = "bring back a copy of the store, or start another one with NEARDUP_STORE"
STAYS = "nothing: the rest of the store is used in spite of it; bring back a copy to have this again"
_READ = ("namespaces", "rows", "runs", "documents", "links", "bytes")
_COSTS = {
    DOCUMENT: "its page is stored once more",
    LINK: "it is not known what its URL led to: it is fetched again",
    HOST: "some of what was learned of host mirrors is lost, and learned again",
    RUN: "nothing says what of the run is forgotten, or whether it closed",
    META: "nothing says what its fingerprints depend on, so it is refused",
}
_UNKNOWN = "what it held, if it was a row of the store, is unknown"


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    what: str
    costs: str
    to_do: str = COPY
    harmless: bool = False
    """The store is whole in spite of it."""


@dataclass
class Survey:
    """What was read of a store, and all that is wrong with it."""

    read: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_READ, 0)))
    """How much there is of what."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.harmless for finding in self.findings)


def verify(address: str) -> Survey:
    """Read all of a store at a path or on a server. Raise StoreError where it can't be opened, or is none of ours."""
    survey = Survey()
    if is_server(address):
        from .redis.survey import read_server

        read_server(address, survey)
    else:
        from .local.survey import read_file

        read_file(address, survey)
    return survey


class Space:
    """One namespace: takes its rows one by one, and then tells what they say together."""

    def __init__(self, namespace: str, survey: Survey) -> None:
        self._suffix = f" (namespace {namespace!r})" if namespace else ""
        self._survey = survey
        self._runs: dict[str, Run | None] = {}
        self._of_runs: set[str] = set()
        self._has_meta = False
        self._beyond: dict[str, int] = {}
        self._documents, self._targets, self._urls = array("Q"), array("Q"), array("Q")  # hashes
        survey.read["namespaces"] += 1

    def read(self, rows: Iterable[Row], total: int | None = None) -> None:
        """Take in rows."""
        for row in watched(rows, "rows", total):
            self._survey.read["rows"] += 1
            try:
                self._read(row)
            except Exception as error:  # whatever damage, or a stranger, may have brought in
                self.give_up(row.key, " ".join(str(error).split()))

    def give_up(self, key: str, why: str) -> None:
        """Note that a row can't be read."""
        kind, _, name = key.partition("/")
        if kind == RUN:
            self._runs[name] = None
        if kind == DOCUMENT:
            self._documents.append(hash_text(name))  # so that links are not blamed for it
        self._has_meta |= key == meta.KEY
        self.find(f"row {key[:80]!r} can't be read: {why}", _COSTS.get(kind, _UNKNOWN))

    def find(self, what: str, costs: str, to_do: str = COPY, *, harmless: bool = False) -> None:
        """Note something that is not as it should be."""
        self._survey.findings.append(Finding(what + self._suffix, costs, to_do, harmless))

    def _read(self, row: Row) -> None:
        kind, _, id = row.key.partition("/")
        if kind not in _COSTS:
            raise ValueError("a store has no rows of this kind")
        record = records.load(row.key, row.value) if isinstance(row.value, bytes) else row.value
        if isinstance(record, Run):
            self._runs[id] = record
            self._survey.read["runs"] += 1
        elif kind == META:
            self._read_meta(row.key, record)
        else:
            self._of_runs.add(records.place_of(id)[0])
        if isinstance(record, Signature):
            self._documents.append(hash_text(id))
            self._survey.read["documents"] += 1
            if record.own and record.url:
                self._urls.append(_hash_url(record.url))
        elif isinstance(record, Link):
            self._survey.read["links"] += 1
            if record.url:
                self._urls.append(_hash_url(record.url))
            if record.target:
                self._targets.append(hash_text(record.target))

    def _read_meta(self, key: str, record: Any) -> None:
        if key == meta.KEY:
            self._has_meta = True
            meta.merged(record, {})
        elif key == COUNTS:
            self._beyond = record

    def end(self) -> None:
        """Tell what is missing, as far as all that could have it was read."""
        if self._of_runs and not self._has_meta:
            self.find("the record of what the store was made with is missing", _COSTS[META])
        for run in sorted(self._of_runs - self._runs.keys()):
            self.find(f"the record of run {run} is missing", _COSTS[RUN], STAYS)
        targets, documents = (np.frombuffer(each, np.uint64) for each in (self._targets, self._documents))
        if lost := int((~np.isin(targets, documents)).sum()):
            self.find(f"{lost} links lead to documents that do not exist", f"{lost} URLs are fetched again", STAYS)
        self._compare_counts()

    def _compare_counts(self) -> None:
        told = {name: self._beyond.get(name, 0) + sum(getattr(r, name) for r in self._runs.values() if r)
                for name in ("documents", "urls")}  # fmt: skip
        there = {"documents": len(self._documents), "urls": len(np.unique(np.frombuffer(self._urls, np.uint64)))}
        for name, count in there.items():
            if count != told[name] and None not in self._runs.values():
                what = f"there are {count} {name}, and the runs tell of {told[name]}"
                self.find(what, "`stats` shows the latter", "nothing", harmless=True)


def _hash_url(url: str) -> int:
    return hash_text(canonical_url(url))


def rows_of(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that are not pending: these have no place of their own yet."""
    return (row for row in rows if not row.is_pending)
