"""Verify the rows of a namespace, one by one and against each other. No I/O.

For each row, only one or two numbers are kept in memory. Ten million documents take half a gigabyte.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, replace
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from . import records
from .checks import check
from .records import (
    COUNTS,
    DAMAGE,
    DOCUMENT,
    HOST,
    MADE,
    META,
    RUN,
    VISIT,
    Run,
    id_of,
    is_at,
    is_hash,
    is_id,
    is_place,
    kind_of,
    links_key,
    place_of,
)

COPY = "restore a backup of the store, or begin another one with NEARDUP_STORE"
_NOTHING = "nothing: the store is readable"
_COSTS = {
    DOCUMENT: "lookups that find the row fail, and their items pass; its page is stored again",
    VISIT: "lookups that read the row fail, and their items pass; the last visit of its URL is lost",
    **dict.fromkeys((HOST, RUN, META), "the store is refused"),
}
_VALID = {DOCUMENT: is_place, HOST: is_place, VISIT: is_hash, RUN: is_id}
_COUNTED = {DOCUMENT: ["documents"], VISIT: ["visits"], RUN: ["runs"]}
_UNKNOWN = "its content, if it was a row of the store, is lost"


@dataclass(frozen=True)
class Finding:
    """A kind of damage or inconsistency."""

    what: str
    costs: str
    to_do: str = COPY
    harmless: bool = False
    """True if the store is complete in spite of this finding."""


class Survey:
    """The counts and findings of a verified store."""

    def __init__(self) -> None:
        self.read = Counter(rows=0, documents=0, visits=0, runs=0)
        """The number of rows by kind."""
        self._found: dict[Finding, tuple[int, str]] = {}

    def note(self, finding: Finding, count: int = 0, example: object = "") -> None:
        """Add a finding. If an equal finding exists, add `count` to its count, and keep the first example."""
        before, first = self._found.get(finding, (0, str(example)))
        self._found[finding] = before + count, first

    @property
    def findings(self) -> list[Finding]:
        """The distinct findings, each with its count and first example."""
        return [replace(finding, what=_said(finding.what, *found)) for finding, found in self._found.items()]

    @property
    def whole(self) -> bool:
        """True if there are no findings, or only harmless ones."""
        return all(finding.harmless for finding in self._found)


def _said(what: str, count: int, example: str) -> str:
    first = "; the first: " if count > 1 else ": "
    return " ".join(f"{count or ''} {what}{first if example else ''}{example}".split())


class Verification:
    """Checks the rows of one namespace, and adds findings to a survey."""

    def __init__(self, survey: Survey, namespace: str) -> None:
        self._survey = survey
        self._suffix = f" (namespace {namespace!r})" if namespace else ""
        self._is_all_read = True
        self._runs: dict[str, Run] = {}
        self._writers: set[str] = set()
        self._meta: dict[str, Any] = {}
        self._documents, self._targets, self._urls = array("Q"), array("Q"), 0

    def note(self, what: str, costs: str, to_do: str = COPY, *, count: int = 0, example: object = "") -> None:
        """Add a finding: what was found, what the damage costs, and what to do."""
        self._survey.note(Finding(what + self._suffix, costs, to_do), count, example)

    def lose(self, why: object, key: str = "") -> None:
        """Add a finding for a row that can't be read. `key` is its key, or "" if the key is unknown."""
        self._is_all_read = False
        kind = kind_of(key)
        what = f"rows of kind {kind!r} can't be read" if kind in _COSTS else "rows can't be read"
        self.note(what, _COSTS.get(kind, _UNKNOWN), count=1, example=f"{key[:80]!r}: {why}" if key else why)

    def take(self, key: str, value: object) -> Any:
        """Check a single row. Return its record, or None if the row is damaged."""
        try:
            record = _record(key, value)
        except DAMAGE as error:
            self.lose(error, key)
            return None
        self._add(key, record)
        return record

    def _add(self, key: str, record: Any) -> None:
        kind = kind_of(key)
        self._survey.read.update(["rows", *_COUNTED.get(kind, ())])
        if kind == META:
            self._meta[key] = record
        elif kind == RUN:
            self._runs[record.id] = record
        else:
            self._writers.add(place_of(record.at if kind == VISIT else id_of(key))[0])
        if kind == DOCUMENT:
            self._documents.append(links_key(record.id))
        if kind == VISIT:
            self._urls += not record.name
            self._targets.extend([links_key(record.target)] if record.target is not None else [])

    # All rows together

    def check(self) -> None:
        """If all rows could be read, compare them with each other. No process may write meanwhile."""
        if self._is_all_read:
            self._check_records()
            self._check_visits()

    def _check_records(self) -> None:
        if self._runs and MADE not in self._meta:
            self.note("the record of the schemes of the store is missing", "the store is refused")
        if missing := sorted(self._writers - self._runs.keys()):
            costs = "`export` and `stats` leave out the rows of these runs, and it is unknown whether they closed"
            self.note("records of runs are missing", costs, count=len(missing), example=missing[0])
        else:
            self._check_count("documents", len(self._documents))
            self._check_count("urls", self._urls)

    def _check_count(self, name: str, count: int) -> None:
        """Compare the recorded number of documents or URLs with the number found in the rows.

        Fewer documents than recorded are a loss. Other differences are harmless: two crawls that fetch a URL at the
        same time both count it, and a killed process may leave rows that it has not counted.
        """
        said = sum(getattr(run, name) for run in self._runs.values()) + self._meta.get(COUNTS, {}).get(name, 0)
        what = f"the runs count {said} {name}, but there are {count}{self._suffix}"
        if name == "documents" and count < said:
            self._survey.note(Finding(what, "their pages are stored again"))
        elif count != said:
            self._survey.note(Finding(what, "`stats` shows wrong figures", _NOTHING, harmless=True))

    def _check_visits(self) -> None:
        if lost := int((~np.isin(_numbers(self._targets), _numbers(self._documents))).sum()):
            costs, to_do = "these URLs are fetched again", f"nothing, since each fetch writes its visit anew; or {COPY}"
            self.note("visits lead to documents that do not exist", costs, to_do, count=lost)


def _numbers(values: array[int]) -> npt.NDArray[np.uint64]:
    return np.frombuffer(values, np.uint64)


def _record(key: str, value: object) -> Any:
    """Decode and check a row. Return its record. Raise one of the exceptions in `DAMAGE` if the row is invalid."""
    kind, rest = kind_of(key), id_of(key)
    is_valid = _VALID.get(kind)
    if not (is_valid(rest) if is_valid else key in (MADE, COUNTS)):
        raise ValueError("a store has no rows of this kind")
    if not isinstance(value, bytes):
        raise ValueError("its value is not bytes")
    record = records.load(key, value)
    if kind == VISIT and not is_at(key, record):
        raise ValueError("it is of another URL than its key, or of no run")
    if kind != META:
        check(record)
    elif key == MADE:
        records.merged(record, {})
    elif key == COUNTS:
        _ = sum(map(index, record.values()))
    return record
