"""Compute the signatures of rows, each row on its own. Spark distributes this work. Imports no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..detectors import Detector
from ..detectors.registry import build_detectors
from ..detectors.standard import Signer
from ..document import Document
from ..feeds import Row, row_id
from ..fingerprints.hashes import hash_text
from ..fingerprints.record import EXACT
from ..index.kinds import Equal, Near
from ..items import item_document
from ..settings import Config, ConfigError
from ..signature import TITLE, Signature
from ..text.urls import canonical_url, host
from .codec import encode_text, signed


class Record(NamedTuple):
    """A document as a row of a DataFrame. Integers are signed, since Spark has no unsigned integers."""

    number: int
    """The position of the document in the order of `dedupe`."""
    id: str
    """The id of the row, as JSON."""
    url: bytes | None
    page: int | None
    """The hash of the canonical URL."""
    site: int | None
    """The hash of the URL's host."""
    tokens: int
    exact: int | None
    keys: Sequence[int]
    """The keys of all detectors that look up equal fingerprints, except `exact`."""
    near: Sequence[Sequence[int]]
    """The fingerprints of each detector that looks up by Hamming distance."""
    record: bytes
    title: bytes
    thin: bool


SCHEMA = (
    "number long, id string, url binary, page long, site long, tokens int, exact long, keys array<long>,"
    " near array<array<long>>, record binary, title binary, thin boolean"
)


class Ways(NamedTuple):
    """The parameters of the detectors' lookups."""

    keys: Mapping[str, int]
    """For each detector that looks up equal fingerprints: the maximum number of documents for one fingerprint."""
    near: Mapping[str, int]
    """For each detector that looks up by Hamming distance: the maximum distance."""

    @classmethod
    def of(cls, detectors: Iterable[Detector]) -> Ways:
        """Return the parameters of detectors' lookups. Raise ConfigError for a detector with an index of its own."""
        indexes = {detector.name: detector.index() for detector in detectors}
        for name, index in indexes.items():
            if not isinstance(index, (Equal, Near)):
                raise ConfigError(
                    f"NEARDUP_DETECTORS: {name!r} has its own index, which Spark can't use; allowed are detectors"
                    " with the index `Equal`, and `simhash`"
                )
        keys = {name: index.newest for name, index in indexes.items() if isinstance(index, Equal)}
        near = {name: index.distance for name, index in indexes.items() if isinstance(index, Near)}
        return cls(keys, near)


def sign_rows(rows: Iterable[Row], config: Config, id_field: str | None) -> Iterator[Record]:
    """Yield the record of each row that has text. Raise FeedError if a row lacks the field `id_field`."""
    detectors = build_detectors(config)
    ways, signer = Ways.of(detectors), Signer(detectors)
    for row in rows:
        if document := item_document(row.data, config):
            name = json.dumps(row_id(row, id_field, config.url_field), default=str)
            [record] = signer.records([document])
            yield _record(row.number, name, document, Signature(document.url, record, 0.0), ways)


def texts(rows: Iterable[Row], config: Config) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each row that has text."""
    for row in rows:
        if document := item_document(row.data, config):
            yield row.number, document.text.encode(errors="surrogatepass")


def _record(number: int, name: str, document: Document, signature: Signature, ways: Ways) -> Record:
    found, url = signature.keys, document.url
    site = host(url) if url else ""
    return Record(
        number,
        name,
        encode_text(url) if url else None,
        signed(hash_text(canonical_url(url))) if url else None,
        signed(hash_text(site)) if site else None,
        signature.head.tokens,
        signed(found[EXACT][0]) if found[EXACT] else None,
        [signed(key) for name in ways.keys if name != EXACT for key in set(found.get(name, ()))],
        [[] if signature.simhash is None else [signed(signature.simhash)] for _ in ways.near],
        signature.record,
        encode_text(document.title[:TITLE]),
        document.thin,
    )
