"""`scrapy neardup dedupe`: feeds in, the rows that are no duplicates out."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from scrapy.settings import BaseSettings
from tqdm import tqdm

from ..config import Config
from ..dedup import Claim, Deduplicator
from ..feeds import FeedError, Row, read_feeds, writing
from ..items import item_document
from ..signature import Signature
from .options import add_feeds, add_store, read_config, row_id, with_fields

EXAMPLES = """examples:
  scrapy neardup dedupe items.jsonl -o unique.jsonl --duplicates duplicates.jsonl
  scrapy neardup dedupe monday.jsonl.gz tuesday.jsonl.gz -o unique.jsonl.gz --text-field body --id-field id
  scrapy neardup dedupe today.jsonl -o new.jsonl --store held.sqlite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_feeds(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="where the rows go that are kept, untouched"
    )
    parser.add_argument("--duplicates", metavar="FILE", help="where it says what was dropped, and why")
    parser.add_argument("--detectors", metavar="A,B", help="detectors to use instead of the default ones")
    add_store(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = _config(opts, settings)
    if opts.duplicates and Path(opts.duplicates).absolute() == Path(opts.output).absolute():
        raise FeedError(f"{opts.duplicates}: can't be both the output and the file of duplicates")
    with ExitStack() as stack:
        dedup = stack.enter_context(Deduplicator.from_config(config))
        output = stack.enter_context(writing(opts.output))
        report = stack.enter_context(writing(opts.duplicates)) if opts.duplicates else None
        job = _Job(config, dedup, opts.id_field, output, report)
        for row in tqdm(read_feeds(opts.feeds), unit=" docs", disable=None):
            job.take(row)
        if opts.text_field and job.rows and not job.documents:
            raise FeedError(f"--text-field {opts.text_field}: no row has text in it")
        dedup.store.stats = {"documents": job.documents, "duplicates": job.dropped}
    print(f"{job.rows} rows, {job.rows - job.dropped} kept, {job.dropped} duplicates", file=sys.stderr)


def _config(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    # Without --store nothing is remembered: a project's crawl store is not the place for a feed.
    config = with_fields(replace(read_config(opts, settings), store=opts.store), opts)
    return replace(config, detectors=opts.detectors) if opts.detectors else config


class _Job:
    """One pass over the rows: decides, writes, and knows which row each document held came from."""

    def __init__(
        self, config: Config, dedup: Deduplicator, id_field: str | None, output: IO[bytes], report: IO[bytes] | None
    ) -> None:
        self.rows = self.documents = self.dropped = 0
        self._config = config
        self._dedup = dedup
        self._id_field = id_field
        self._output = output
        self._report = report
        self._ids: dict[Signature, Any] = {}

    def take(self, row: Row) -> None:
        self.rows += 1
        document = item_document(row.data, self._config)
        claim = self._dedup.claim(document) if document else None
        if claim:
            self.documents += 1
            claim.commit()
        if claim and claim.match and self._is_dropped(claim):
            self.dropped += 1
            self._write_report(row, claim)
            return
        if claim:
            self._ids.setdefault(
                claim.match.signature if claim.match else claim.signature,
                row_id(row, self._id_field, self._config.url_field),
            )
        self._output.write(row.raw)

    def _is_dropped(self, claim: Claim) -> bool:
        """A row's URL again drops it within these feeds; where it was held before them, as NEARDUP_REVISIT says."""
        assert claim.match
        again = claim.verdict.status == "revisit" and claim.match.signature not in self._ids
        return not again or self._config.revisit != "keep"

    def _write_report(self, row: Row, claim: Claim) -> None:
        if self._report and claim.match:
            verdict = claim.verdict.tag()
            original = self._ids.get(claim.match.signature, verdict["duplicate_of"])
            entry = {"id": row_id(row, self._id_field, self._config.url_field), **verdict, "duplicate_of": original}
            self._report.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
