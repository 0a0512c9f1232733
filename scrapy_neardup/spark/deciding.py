"""Decisions on documents that may repeat one another, in their order, as `dedupe` makes them. No Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgpack

from ..config import Config
from ..dedup import Deduplicator
from ..detectors import Detector
from ..detectors.build import build_detectors
from ..fingerprints import sketch
from ..signature import Link, Signature
from ..signed import Signed
from ..store import MemoryStore
from ..stores.absorbing import hashed_keys
from ..stores.interchange import END, Head, Record, document_row, head_row, host_row, link_row, run_row
from ..stores.records import KEPT, decode_text
from ..store.runs import Run
from ..text import tokens
from ..text.jsons import json_text
from ..verdict import Verdict
from ..verify import Rule
from .signing import unpack_sketch

Row = Mapping[str, Any]
"""The fields of a `signing.Record`, with `component` and, where it is needed, `text`."""

VERDICT, DOCUMENT, LINK, HOST = "verdict", "document", "link", "host"
SCHEMA = "kind string, number long, value string"
TICK = 1e-6  # seconds from one document to the next, so that each has a moment of its own
PLACES = 1 << 16  # in a segment


class Said(NamedTuple):
    """What came of a document, as JSON."""

    kind: str
    """`verdict`: a row as `dedupe --duplicates` writes them; `document`, `link`, `host`: rows of an export."""
    number: int
    value: str


def decide(rows: Iterable[Row], config: Config, began: float, run: str) -> Iterator[Said]:
    """Decide of documents that come component by component, in each by number.

    `began`: when the first document counts as seen; `run`: of the export, "" for no export.
    """
    detectors = build_detectors(config)
    for _, members in groupby(rows, itemgetter("component")):
        yield from _decided(members, lambda: _Component(config, detectors, began, run), alone=not run)


def _decided(members: Iterator[Row], make: Callable[[], _Component], *, alone: bool) -> Iterator[Said]:
    """Decide of a component; `alone`: one of a single document needs none, as there is nothing it could repeat."""
    first = next(members)
    second = next(members, None)
    if second is None and alone:
        yield Said(VERDICT, first["number"], _verdict(first, Verdict("unique").tag()))
    else:
        yield from make().decided(chain([first], [] if second is None else [second], members))


class _Component:
    """Documents that may repeat one another, and none other."""

    def __init__(self, config: Config, detectors: Sequence[Detector], began: float, run: str) -> None:
        self._began = began
        self._run = run
        self._now = began
        self._store = MemoryStore(detectors)
        rule = Rule.from_config(config)
        self._dedup = Deduplicator(
            self._store, detectors, rule, scope=config.scope, learns_hosts=False, clock=lambda: self._now
        )
        self._ids: dict[Signature, Any] = {}

    def decided(self, rows: Iterable[Row]) -> Iterator[Said]:
        """Yield the verdicts of all documents, then what is to be exported."""
        for row in rows:
            self._now = self._began + row["number"] * TICK
            yield Said(VERDICT, row["number"], self._decided(row))
        if self._run:
            yield from self._exported()

    def _decided(self, row: Row) -> str:
        claim = self._dedup.claim(_document(row))
        claim.commit()
        verdict = claim.verdict.tag()
        if claim.match:
            return _verdict(row, {**verdict, "duplicate_of": self._ids[claim.match.signature]})
        self._ids[claim.signature] = json.loads(row["id"])
        number = row["number"]
        claim.signature.key = (self._run, number // PLACES, number % PLACES)
        return _verdict(row, verdict)

    def _exported(self) -> Iterator[Said]:
        numbers = {}
        for signature in self._store.signatures():
            _, segment, place = signature.key or ("", 0, 0)
            numbers[signature] = segment * PLACES + place
            yield Said(DOCUMENT, numbers[signature], _line(_document_row(signature)))
        for link in self._store.all_links():
            if link.signature:
                yield Said(LINK, numbers[link.signature], _line(_link_row(link, link.signature)))
        for name, met in self._store.hosts.met():
            yield Said(HOST, 0, _line(host_row(name, met)))


def _document(row: Row) -> Signed:
    return Signed(
        None if row["url"] is None else bytes(row["url"]).decode(errors="surrogatepass"),
        msgpack.unpackb(row["fingerprints"], use_list=False),
        unpack_sketch(row["sketch"]),
        row["layout"] % (1 << 64),
        decode_text(bytes(row["title"])),
        row["identity"] % (1 << 64),
        row["thin"],
        text=lambda: bytes(row["text"] or b"").decode(errors="surrogatepass"),
    )


def _document_row(signature: Signature) -> Record:
    return document_row(signature, KEPT, hashed_keys(signature, frozenset()))


def _link_row(link: Link, signature: Signature) -> Record:
    assert signature.key
    return link_row(link, signature.key, signature.key[:2])


def _verdict(row: Row, verdict: Mapping[str, Any]) -> str:
    return json_text({"id": json.loads(row["id"]), **verdict})


def _line(row: Record) -> str:
    return json.dumps(row, separators=(",", ":"))


def export(run: Run, detectors: Iterable[Detector], said: Iterable[str], documents: int, links: int) -> Iterator[str]:
    """Yield the lines of an export, given those of its documents, then of its links, then of its hosts."""
    schemes = {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **{d.name: d.scheme for d in detectors}}
    yield _line(head_row(Head(schemes, (), documents, links)))
    yield _line(run_row(run))
    yield from said
    yield _line(END)
