"""Decide on documents that may repeat one another, in order, as `dedupe` does. Imports no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from ..deduplicator import Deduplicator
from ..detectors import Detector
from ..detectors.registry import build_detectors
from ..document import Document
from ..feeds.json_text import json_text
from ..fingerprints import sketch
from ..fingerprints.record import Head, facts_in
from ..matching.evidence import Rule
from ..matching.preference import Preference
from ..settings import Config
from ..signature import Signature, Visit
from ..store import memory_store
from ..store.records import DOCUMENT, HOST, RUN, VISIT, HostNews, Run, id_of, key_of, visit_key
from ..store.transfer import END, Line, head_line, line_of
from ..text import tokens
from ..verdict import Verdict
from .codec import decode_text

Row = Mapping[str, Any]
"""The fields of a `signatures.Record`, plus `component` and, if needed, `text`."""

VERDICT, URLS = "verdict", "urls"
SCHEMA = "kind string, number long, value string"
TICK = 1e-6  # seconds between documents, so that each has its own time
HOSTS = 1000  # the hosts in one row of an export


class Said(NamedTuple):
    """A result of deciding on documents, with its value as JSON."""

    kind: str
    """`verdict`: a row of `dedupe --duplicates`. `document`, `visit`: a row of an export. `host`: the name of a host,
    and the time of its first page. `urls`: the number of known URLs."""
    number: int
    value: str


def decide(rows: Iterable[Row], config: Config, began: float, run: str) -> Iterator[Said]:
    """Decide on documents, and yield the results. Rows must be grouped by component, and sorted by number within it.

    `began`: the time of the first document, in seconds since the epoch. `run`: the id of the exported run; "" for no
    export.
    """
    detectors = build_detectors(config)
    for _, members in groupby(rows, itemgetter("component")):
        yield from _decided(members, lambda: _Component(config, detectors, began, run), alone=not run)


def _decided(members: Iterator[Row], make: Callable[[], _Component], *, alone: bool) -> Iterator[Said]:
    """Decide on the documents of one component. With `alone`, a single document is unique without a comparison."""
    first = next(members)
    second = next(members, None)
    if second is None and alone:
        yield Said(VERDICT, first["number"], _verdict(first, Verdict("unique").tag()))
    else:
        yield from make().decided(chain([first], [] if second is None else [second], members))


class _Component:
    """A deduplicator for the documents of one component, which may repeat one another."""

    def __init__(self, config: Config, detectors: Sequence[Detector], began: float, run: str) -> None:
        self._began = began
        self._run = run
        self._now = began
        self._store = memory_store(detectors)
        rule = Rule.from_config(config)
        self._dedup = Deduplicator(
            self._store, detectors, rule, scope=config.scope, preference=Preference(config.preferred_hosts),
            learns_hosts=False, clock=lambda: self._now,
        )  # fmt: skip
        self._ids: dict[Signature, Any] = {}
        self._numbers: dict[str, int] = {}  # the numbers of the held documents, by their ids

    def decided(self, rows: Iterable[Row]) -> Iterator[Said]:
        """Yield the verdicts on all documents, then the rows to export."""
        for row in rows:
            self._now = self._began + row["number"] * TICK
            yield Said(VERDICT, row["number"], self._decided(row))
        if self._run:
            yield from self._exported()

    def _decided(self, row: Row) -> str:
        claim = self._dedup.claim(_document(row), bytes(row["record"]))
        claim.commit()
        verdict = claim.verdict.tag()
        if claim.match:
            return _verdict(row, {**verdict, "duplicate_of": self._ids[claim.match.signature]})
        self._ids[claim.signature] = json.loads(row["id"])
        self._numbers[claim.signature.id] = row["number"]
        return _verdict(row, verdict)

    def _exported(self) -> Iterator[Said]:
        for signature in self._store.signatures():
            number = self._numbers[signature.id]
            yield Said(DOCUMENT, number, _line(line_of(key_of(DOCUMENT, self._run, number), signature)))
        for row in self._store.backend.scan(VISIT):
            visit = self._store.session.load(row)
            if isinstance(visit, Visit) and visit.target:
                number = self._numbers[visit.target]
                yield Said(VISIT, number, _line(_visit_line(row.key, visit, key_of(DOCUMENT, self._run, number))))
        for name, met in self._store.hosts.met():
            yield Said(HOST, 0, json.dumps({"name": name, "met": met}))
        yield Said(URLS, 0, str(self._store.session.urls))


def _visit_line(key: str, visit: Visit, document: str) -> Line:
    """Return the line of a visit, given its key in the component and the key of its document in the export."""
    target, name = id_of(document), visit.name
    if name.startswith("copy "):  # other components have the same names
        name = f"copy {target}{visit.at}"
        key = visit_key(name)
    return line_of(key, replace(visit, target=target, at=target, before=None, name=name))


def _document(row: Row) -> Document:
    record = bytes(row["record"])
    head = Head.of(record)
    return Document(
        None if row["url"] is None else decode_text(bytes(row["url"])),
        decode_text(bytes(row.get("text") or b"")),
        decode_text(bytes(row["title"])),
        layout=head.layout,
        facts=facts_in(record, head),
        thin=row["thin"],
    )


def _verdict(row: Row, verdict: Mapping[str, Any]) -> str:
    return json_text({"id": json.loads(row["id"]), **verdict})


def _line(line: Line) -> str:
    return json.dumps(line, separators=(",", ":"))


def export(
    run: Run, detectors: Iterable[Detector], documents: Iterable[str], visits: Iterable[str], hosts: Iterable[str]
) -> Iterator[str]:
    """Yield the lines of an export, given the rows of documents, visits and hosts."""
    schemes = {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **{d.name: d.scheme for d in detectors}}
    yield _line(head_line(schemes, run.documents, run.urls))
    yield _line(line_of(f"{RUN}/{run.id}", run))
    yield from documents
    yield from visits
    met = ((host["name"], host["met"]) for host in map(json.loads, hosts))
    for number, some in enumerate(iter(lambda: dict(islice(met, HOSTS)), {}), 1):
        yield _line(line_of(key_of(HOST, run.id, number), HostNews([], some)))
    yield _line(END)
