"""Read and append judgements of people on pairs of documents, which are stored as a labelled set in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from ..document import Document
from ..feeds import Feeds
from ..files import FileError, json_text
from ..settings import Config, ConfigError
from ..text.urls import canonical_url

SAME, DIFFERENT = "dup", "different"  # labels
_LABELS = (SAME, DIFFERENT, "partial", "rewrite", "template")
_DOCUMENTS, _PAIRS = "docs.jsonl", "pairs.jsonl"
WHY_APART = "a person judged them different"


def reviews_folder(config: Config) -> str | None:
    """Return the folder of judgements beside the store; None if the store is no file."""
    return f"{config.store}.reviewed" if config.store and "://" not in config.store else None


class Reviews:
    """The judgements of people on pairs of documents, by URL."""

    def __init__(self, config: Config) -> None:
        """Read the judgements, if there are any. Raise ConfigError for an invalid row."""
        self._config = config
        self._folder = reviews_folder(config)
        self._ids: dict[str, Any] = {}  # the ids of the judged documents, by canonical URL
        self._labels: dict[frozenset[str], str] = {}
        try:
            if self._folder:
                os.stat(pairs := os.path.join(self._folder, _PAIRS))
                self._read(pairs)
        except FileNotFoundError:  # no pair was judged yet
            return
        except (FileError, OSError) as error:
            raise ConfigError(f"judgements can't be read: {error}") from error

    def _read(self, pairs: str) -> None:
        for row in Feeds([pairs]).rows():
            ids = {canonical_url(str(id)): id for side in "ab" if (id := row.field(side))}
            if len(ids) < 2:
                raise FileError(f"{row.place}: allowed is a pair of two ids")
            if (label := row.field("label")) not in _LABELS:
                raise FileError(f"{row.place}: label {label!r}; allowed are {', '.join(_LABELS)}")
            self._ids |= ids
            self._labels[frozenset(ids)] = label

    def differ(self, a: str | None, b: str | None) -> bool:
        """Return whether a person judged the documents at two URLs to be different."""
        if not (a and b and self._labels):
            return False
        return self._labels.get(frozenset((canonical_url(a), canonical_url(b)))) == DIFFERENT

    def append(self, first: Document, second: Document, label: str) -> None:
        """Write the judgement `label` on two documents that have URLs. Raise FileError if it can't be written."""
        a, b = (canonical_url(document.url or "") for document in (first, second))
        # Pairs without a label count as different, so a copy is paired with each known copy of its original too.
        pairs = product(self._same(a), self._same(b)) if label == SAME else [(a, b)]
        labels = {pair: label for pair in map(frozenset, pairs) if len(pair) == 2 and pair not in self._labels}
        labels[frozenset((a, b))] = label  # the last judgement on a pair counts
        documents = {canonical_url(each.url or ""): each for each in (first, second)}
        fresh = {url: each for url, each in documents.items() if url not in self._ids}
        self._ids.update((url, each.url) for url, each in fresh.items())
        self._labels.update(labels)
        self._write(map(self._row, fresh.values()), map(self._judgement, labels))

    def _same(self, url: str) -> list[str]:
        """Return `url`, and the URLs of all documents that people judged to be the same as the document at `url`."""
        return [url, *(other for pair, label in self._labels.items() if label == SAME for other in pair - {url}
                       if url in pair)]  # fmt: skip

    def _row(self, document: Document) -> dict[str, Any]:
        """Return a document as a row of a feed. Read with this configuration, it gives the same URL, title and text."""
        config = self._config
        fields = config.fields or ("text",)
        title = {} if config.title_field in fields else {config.title_field: document.title}
        return {"id": document.url, config.url_field: document.url, **title, fields[0]: document.text}

    def _judgement(self, pair: frozenset[str]) -> dict[str, Any]:
        a, b = sorted(pair)
        return {"a": self._ids[a], "b": self._ids[b], "label": self._labels[pair]}

    def _write(self, documents: Iterable[Mapping[str, Any]], pairs: Iterable[Mapping[str, Any]]) -> None:
        assert self._folder
        try:
            os.makedirs(self._folder, exist_ok=True)
            for name, rows in ((_DOCUMENTS, documents), (_PAIRS, pairs)):  # pairs refer to documents
                _append(os.path.join(self._folder, name), rows)
        except OSError as error:
            raise FileError(f"{self._folder}: can't be written: {error.strerror or error}") from error


def _append(file: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a file of JSON lines. First add a missing line end, since an editor may have removed it."""
    with open(file, "ab+") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            lines.write(b"" if lines.read(1) == b"\n" else b"\n")
        lines.write("".join(f"{json_text(row)}\n" for row in rows).encode())
