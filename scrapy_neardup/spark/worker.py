"""Sign and decide the rows of a partition in Spark's workers. Imports no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from ..deduplicator import Deduplicator
from ..detectors.detector import build_detectors
from ..detectors.processes import Signer
from ..document import Document
from ..feeds import FeedError, Row, json_text, parse_object, row_id
from ..fingerprints.hashes import hash_text
from ..fingerprints.record import EXACT, SIMHASH, Head, keys_in, keys_of
from ..matching.matcher import Rule, compare
from ..settings import Config
from ..signature import Signature
from ..store import open_store
from ..text.urls import canonical_url, host

BATCH = 256  # rows that are signed in one go
RECORDS = "number long, record binary, page long, site long, exact long, keys array<long>, simhash long"
"""The columns of a document. `number` is its place in the order of `dedupe`; `page`: the hash of its canonical URL;
`site`: that of its host; `exact`: the key of the whole text or, if that is too short to prove anything, of the whole
record; `keys`: the keys of all other detectors."""
PAIRS = "a long, b long, site long"
"""The numbers of two documents, the earlier one first, and their site if both are pages of one site."""
DUPLICATES = "number long, value string"
"""The number of a row that repeats an earlier one, and the line of `dedupe --duplicates` about it."""


@dataclass(frozen=True)
class Worker:
    """Signs rows, compares pairs, and decides on components, as a configuration requires."""

    config: Config
    id_field: str | None

    def sign(self, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the columns `RECORDS` of each row that is a document. Raise FeedError for a row that can't be read."""
        for batch in self._signed(rows, Signer(self.config, build_detectors(self.config))):
            for row, document, record in batch:
                row_id(row, self.id_field, self.config.url_field)
                yield row.number, *self._shared(document, record)

    def compare(self, pairs: Iterable[Any]) -> Iterator[tuple[int, int, int | None]]:
        """Yield the columns `PAIRS` of those pairs of documents that may be copies or siblings."""
        rule = Rule.from_config(self.config)
        for pair in pairs:
            same_page = pair.page_a is not None and pair.page_a == pair.page_b
            if same_page or _may_repeat(rule, Head.of(bytes(pair.record_a)), Head.of(bytes(pair.record_b))):
                yield pair.a, pair.b, pair.site_a if pair.site_a == pair.site_b and not same_page else None

    def decide(self, rows: Iterable[Any]) -> Iterator[tuple[int, str]]:
        """Yield the columns `DUPLICATES`. Rows must be sorted by component, and by number in it."""
        signer = Signer(self.config, build_detectors(self.config))
        config = replace(self.config, store=None, learn_hosts=False)
        for _, members in groupby(rows, itemgetter("component")):
            store, ids = open_store(None, signer.detectors), dict[Signature, Any]()
            dedup = Deduplicator(store, signer.detectors, config)
            for batch in self._signed(members, signer):
                _, documents, records = zip(*batch, strict=True)
                for (row, _, _), claim in zip(batch, dedup.decide(documents, records), strict=True):
                    name = row_id(row, self.id_field, self.config.url_field)
                    if claim.match:
                        verdict = {**claim.verdict.tag(), "duplicate_of": ids[claim.match.signature]}
                        yield row.number, json_text({"id": name, **verdict})
                    else:
                        ids[claim.signature] = name

    def _signed(self, rows: Iterable[Any], signer: Signer) -> Iterator[list[tuple[Row, Document, bytes]]]:
        """Yield the documents among rows, in batches."""
        read = map(_read, rows)
        while batch := list(islice(read, BATCH)):
            documents, made = signer.sign([row[:2] for row in batch])
            records = iter(made)
            if made:
                yield [(row, d, next(records)) for row, d in zip(batch, documents, strict=True) if d]

    def _shared(self, document: Document, record: bytes) -> tuple[Any, ...]:
        """Return the columns `RECORDS` after the number."""
        head, url, site = Head.of(record), document.url, host(document.url or "")
        exact, keys, simhash = head.identity, set[int](), None
        if head.tokens >= (1 if self.config.short_text == "exact" else max(self.config.min_tokens, 1)):
            found = keys_in(record, head)
            exact, keys = head.digest, {key for name in found.keys() - {EXACT} for key in found[name] if key}
            if head.has_simhash:
                simhash = head.simhash
                keys.update(keys_of(SIMHASH, [simhash]))
        places = hash_text(canonical_url(url)) if url else None, hash_text(site) if site else None
        return record, *map(_as_long, (*places, exact or None)), [*map(_as_long, keys)], _as_long(simhash)


def _read(row: Any) -> Row:
    """Return a numbered row as a row of a feed."""
    number, data = row["number"], row["row"]
    if not isinstance(data, (bytes, bytearray)):
        columns = data.asDict(recursive=True).items()  # with bytes or bytearrays, depending on Spark's version
        return Row(number, {n: bytes(v) if isinstance(v, bytearray) else v for n, v in columns}, f"row {number}")
    place = f"{row['file']}, row {number} of all"
    try:
        return Row(number, parse_object(bytes(data)), place)
    except ValueError as error:
        raise FeedError(f"{place}: {error}") from error


def _may_repeat(rule: Rule, a: Head, b: Head) -> bool:
    same, found = a.digest == b.digest != 0 or a.identity == b.identity != 0, compare(a.sketch, b.sketch)
    # Without form, which is not known here, the texts may resemble each other more.
    return same or (rule.may_accept(found) and rule.accepts(found._replace(resemblance=1.0)))


def _as_long(value: int | None) -> int | None:
    """Return the signed integer with the bits of an unsigned one of 64 bits. Spark has no unsigned integers."""
    return value and value - (value >> 63 << 64)
