"""`scrapy neardup dedupe`: remove duplicates from feeds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import IO, Any

from scrapy.settings import BaseSettings

from ..crawl.garbage import collecting_rarely, frozen
from ..deduplicator import Deduplicator
from ..feeds import FORMATS, Feeds, Line, writing, writing_rows
from ..feeds.json_text import json_text
from ..feeds.signing import Made, Signer, ready_rows
from ..fingerprints.hashes import hash_bytes
from ..matching.claim import Claim
from ..settings import Config
from ..signature import Signature
from ..stats import plural
from .bars import through
from .feed_options import BadRows, add_feeds, add_fields, check_fields, taking_bad_rows, with_fields
from .options import add_json, add_store, check_apart, print_outcome, read_config, whole

WORTH = 16 << 20  # bytes of feeds from which worker processes save time
MOST = 8  # the maximum number of workers by default

EXAMPLES = """examples:
  scrapy neardup dedupe items.jsonl -o unique.jsonl --duplicates duplicates.jsonl
  scrapy neardup dedupe monday.jsonl.gz tuesday.jsonl.gz -o unique.jsonl.gz --text-field body --id-field id
  scrapy neardup dedupe today.jsonl -o new.jsonl --store held.sqlite
  scrapy neardup dedupe items.csv -o unique.csv --bad-rows bad.csv
  scrapy neardup dedupe CC-MAIN-*.warc.gz -o unique.warc.gz --workers 8

OUT has the format of the feeds: JSON lines, a JSON array, CSV, Parquet (pip install 'scrapy-neardup[parquet]') or WARC
(pip install 'scrapy-neardup[warc]'). Rows without text are kept. Each record of a WARC file is a row. HTML responses
with status 200 have text, and so do the plain texts of WET files.
By default, an unreadable row is an error, and nothing is written. With --bad-rows, unreadable rows are written to FILE,
unchanged and in the same format, and the first ten are reported.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_feeds(parser)
    add_fields(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="write the kept rows to OUT, unchanged")
    parser.add_argument("--duplicates", metavar="FILE", help="write each dropped row to FILE, with the reason")
    parser.add_argument("--detectors", metavar="A,B", help="detectors to use instead of the defaults")
    parser.add_argument(
        "--workers",
        type=whole(0),
        metavar="N",
        help="the number of processes that read rows and compute fingerprints; 0 or 1: only this process; the result"
        " does not depend on N (default: 1; for feeds above 16 MB the number of cores, up to 8)",
    )
    add_store(parser, "the store that remembers documents between calls: a path, or redis://… (default: none)")
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    outputs = {"the_file_of_duplicates": opts.duplicates, "the_file_of_bad_rows": opts.bad_rows}
    check_apart(the_store=opts.store, a_feed=opts.feeds, the_output=opts.output, **outputs)
    feeds = Feeds(opts.feeds)
    config = _config(opts, settings, feeds)
    with ExitStack() as stack:
        dedup = stack.enter_context(Deduplicator.from_config(config, writer="neardup dedupe"))
        output = stack.enter_context(writing_rows(opts.output, feeds.kind))
        report = stack.enter_context(writing(opts.duplicates, FORMATS)) if opts.duplicates else None
        bad = stack.enter_context(taking_bad_rows(opts, feeds))
        job = _Job(config, dedup, output, report, bad)
        signer = Signer(config, dedup.detectors, opts.id_field, passes_bad=opts.bad_rows is not None)
        stack.enter_context(frozen())
        stack.enter_context(collecting_rarely())
        rows = stack.enter_context(closing(ready_rows(feeds.lines(), signer, _workers(opts, feeds))))
        for lines, batch in through(feeds, rows, lambda each: len(each[1])):
            job.take(lines, batch)
        check_fields(opts, job.rows, job.documents, job.located)
        dedup.flush()  # an error of the store must come before the output is replaced
        dedup.store.stats = {"documents": job.documents, "duplicates": job.dropped}
    print_outcome(job.outcome(), job.summary(), as_json=opts.json)


def _workers(opts: argparse.Namespace, feeds: Feeds) -> int:
    if opts.workers is not None:
        return int(opts.workers)
    from loky import cpu_count  # here, since the import takes longer than a small feed

    return min(cpu_count(), MOST) if feeds.size > WORTH else 1


def _config(opts: argparse.Namespace, settings: BaseSettings, feeds: Feeds) -> Config:
    # Not the project's store: that belongs to its crawls.
    config = with_fields(replace(read_config(opts, settings), store=opts.store), opts, feeds.kind)
    return replace(config, detectors=opts.detectors) if opts.detectors else config


class _Job:
    """Decides on each row, writes the row or a line about its drop, and records the row ids of originals."""

    def __init__(
        self,
        config: Config,
        dedup: Deduplicator,
        output: Callable[[Line], object],
        report: IO[bytes] | None,
        bad: BadRows,
    ) -> None:
        self.rows = self.documents = self.located = self.dropped = 0
        self._config = config
        self._dedup = dedup
        self._output = output
        self._report = report
        self._bad = bad
        self._ids: dict[int, Any] = {}
        """The ids of kept rows by the hash of the held document, so that documents need not stay in memory.

        It has only rows that repeat a document held before these feeds, and rows with another id than their URL."""

    def take(self, lines: Sequence[Line], rows: Sequence[Made]) -> None:
        """Decide on a batch of rows."""
        pairs = [(made.document, made.record) for made in rows if made.document and made.record]
        claims = self._dedup.claim_all([document for document, _ in pairs], [record for _, record in pairs])
        for line, made in zip(lines, rows, strict=False):
            if made.fault:
                self._bad(line, made.fault)
            else:
                self._take(line, made, next(claims) if made.document else None)

    def _take(self, line: Line, made: Made, claim: Claim | None) -> None:
        self.rows += 1
        if claim:
            self.documents += claim.signature.head.tokens > 0
            self.located += claim.signature.url is not None
            claim.commit()
        if claim and claim.match and self._is_dropped(claim):
            self.dropped += 1
            self._write_report(made, claim)
            return
        if claim and claim.match:
            self._ids.setdefault(_hashed(claim.match.signature), made.id)
        elif claim and self._report and made.id != claim.signature.url:
            self._ids[_hashed(claim.signature)] = made.id
        self._output(line)

    def outcome(self) -> dict[str, int]:
        """Return the counts by name."""
        return {
            "rows": self.rows,
            "kept": self.rows - self.dropped,
            "duplicates": self.dropped,
            "without_text": self.rows - self.documents,
            "bad_rows": self._bad.count,
        }

    def summary(self) -> str:
        """Return the summary line."""
        rows, kept, duplicates, without, _ = self.outcome().values()
        line = f"{plural(rows, 'row')}, {kept} kept, {plural(duplicates, 'duplicate')}"
        return line + (f", {without} without text" if without else "") + self._bad.summary()

    def _is_dropped(self, claim: Claim) -> bool:
        """Return whether a row with a match is dropped.

        With NEARDUP_REVISIT = "keep", a revisit is dropped only if an earlier row of these feeds has the document.
        """
        assert claim.match
        if claim.verdict.status != "revisit" or self._config.revisit != "keep":
            return True
        held, store = claim.match.signature, self._dedup.store
        return store.run_of(held) == store.run or _hashed(held) in self._ids

    def _write_report(self, made: Made, claim: Claim) -> None:
        if self._report and claim.match:
            verdict = claim.verdict.tag()
            original = self._ids.get(_hashed(claim.match.signature), verdict["duplicate_of"])
            entry = {"id": made.id, **verdict, "duplicate_of": original}
            self._report.write(f"{json_text(entry)}\n".encode())


def _hashed(signature: Signature) -> int:
    """Return a hash that identifies a held document: no two of them have the same URL, sketch and facts."""
    return hash_bytes(signature.record + repr(signature.url).encode())
