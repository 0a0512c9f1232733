"""`scrapy neardup dedupe`: remove duplicates from feeds."""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import IO, Any

from scrapy.settings import BaseSettings

from ..deduplicator import Claim, Deduplicator
from ..feeds import Feeds, JsonLines, Row, Warc, writing_rows
from ..files import FileError, json_text, writing
from ..processes import ProcessError, RowSigner, Signed, signed
from ..settings import Config
from ..stats import plural
from . import options

WORTH = 16 << 20  # bytes of feeds above which worker processes save time
MOST = 8  # the maximum number of workers by default
RARELY = 50_000  # new objects between two garbage collections
BATCH, SIZE = 256, 1 << 20  # a batch ends after so many rows, or so many characters


def add_dedupe(parser: argparse.ArgumentParser) -> None:
    options.add_feeds(parser)
    add = parser.add_argument
    add("-o", "--output", required=True, metavar="OUT", help="write the kept rows to OUT; - for standard output")
    text = "write a line for each dropped row to FILE: its id, original and reason"
    add("--duplicates", metavar="FILE", help=text)
    text = "processes that extract texts and compute fingerprints; 0 or 1: only this process; the result does not"
    text += " depend on N (default: 1; above 16 MB half of the cores, or all for WARC; at most 8)"
    add("--workers", type=options.whole, metavar="N", help=text)
    options.add_store(parser, "none; with one, documents are remembered between calls")


def run_dedupe(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Remove duplicates from feeds.

    example:
      scrapy neardup dedupe items.jsonl -o unique.jsonl --duplicates duplicates.jsonl

    The ending of a file's name gives its format: JSON lines, a JSON array, CSV, Parquet (pip install
    'scrapy-neardup[parquet]') or WARC. OUT may have another format than the feeds, but Parquet is written only from
    Parquet, and WARC only from WARC. Rows without text are kept, unless all their fields repeat an earlier row
    (docs/items.md has the rules). Unreadable rows are left out, the first ten are reported, and the exit code is 1.
    """
    outputs = {"the_output": opts.output, "the_file_of_duplicates": opts.duplicates}
    options.check_apart(the_store=opts.store, a_feed=opts.feeds, **outputs, the_result="-" if opts.json else None)
    feeds, bad = Feeds(opts.feeds), options.BadRows()
    # Not the project's store: that belongs to its crawls.
    stored = options.with_store(opts, settings, exists=False) if opts.store else Config.from_settings(settings)
    config = options.with_fields(replace(stored, store=opts.store), opts, feeds.kind)
    # Few of the many new objects refer to each other in circles. To look for these rarely saves a fifth of the time.
    gc.set_threshold(RARELY)
    gc.freeze()
    with ExitStack() as stack:
        dedup = stack.enter_context(Deduplicator.from_config(config, writer="neardup dedupe"))
        output = stack.enter_context(writing_rows(opts.output, feeds))
        report = stack.enter_context(writing(opts.duplicates, JsonLines.endings)) if opts.duplicates else None
        job = Job(config, dedup, output, report, opts.id_field)
        signer, batches = RowSigner(config, dedup.detectors), _batches(feeds.rows(bad))
        ready = stack.enter_context(closing(signed(batches, signer, _workers(opts, feeds))))
        try:
            for rows, made in options.with_bar(feeds, ready):
                job.take(rows, made)
        except ProcessError as error:
            raise FileError(str(error)) from error
        options.check_fields(opts, job.rows, job.documents, job.located)
        dedup.flush()  # an error of the store must come before the output is replaced
        dedup.store.stats = {"documents": job.documents, "duplicates": job.dropped}
    return bad.answer(opts, job.outcome(), job.summary())


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch, size = list[Row](), 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.data.values() if isinstance(value, (str, bytes)))
        if len(batch) == BATCH or size >= SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _workers(opts: argparse.Namespace, feeds: Feeds) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A thread makes records of plain rows as fast as another decides on them. Pages of archives must be parsed first.
    useful = min(cores if feeds.kind is Warc else cores // 2, MOST) if feeds.size > WORTH else 1
    workers = useful if opts.workers is None else opts.workers
    return int(workers) if workers > 1 else 0


@dataclass
class Job:
    """Decides on rows, and writes each kept row to the output and a line for each dropped one to the report."""

    config: Config
    dedup: Deduplicator
    output: Callable[[Row], object]
    report: IO[bytes] | None
    id_field: str | None
    rows: int = 0
    documents: int = 0  # rows with text
    located: int = 0  # rows with a URL
    dropped: int = 0
    nowhere: int = 0  # rows with facts, but without a URL that has a host
    ids: dict[int, Any] = field(default_factory=dict)
    """By the id of a document: the id of the kept row with it. Those of new documents are noted only for the report."""

    def take(self, rows: Sequence[Row], made: Signed) -> None:
        """Decide on a batch of rows, given their documents and records. Write the kept rows and the report."""
        documents, records = made
        claims = iter(self.dedup.decide([*filter(None, documents)], records))
        for row, document in zip(rows, documents, strict=True):
            self.rows += 1
            if document is None or self._is_kept(row, next(claims)):
                self.output(row)
            else:
                self.dropped += 1

    def _is_kept(self, row: Row, claim: Claim) -> bool:
        name = row.id(self.id_field, self.config.url_field)
        self.documents += claim.signature.head.tokens > 0
        self.located += claim.signature.url is not None
        self.nowhere += not claim.signature.home and bool(claim.signature.facts)
        if claim.match is None:
            if self.report and name != claim.signature.url:
                self.ids[claim.signature.id] = name
            return True
        held = claim.match.signature
        # Without "keep", every URL that changed to a document of an earlier call is kept, as in a crawl.
        is_again = self.config.revisit == "keep" and held.id in self.ids
        if not claim.verdict.is_dropped(self.config.revisit, is_written=self.dedup.store.is_new(held) or is_again):
            self.ids.setdefault(held.id, name)
            return True
        if self.report:
            verdict = claim.verdict.tag()
            entry = {"id": name, **verdict, "duplicate_of": self.ids.get(held.id, verdict["duplicate_of"])}
            self.report.write(f"{json_text(entry)}\n".encode())
        return False

    def outcome(self) -> dict[str, int]:
        """Return the numbers of rows by name. `summary` relies on their order."""
        return {
            "rows": self.rows,
            "kept": self.rows - self.dropped,
            "duplicates": self.dropped,
            "without_text": self.rows - self.documents,
        }

    def summary(self) -> str:
        rows, kept, duplicates, without = self.outcome().values()
        line = f"{plural(rows, 'row')}, {kept} kept, {plural(duplicates, 'duplicate')}"
        line += f", {without} without text" if without else ""
        if self.documents and self.nowhere:
            some = f"of {plural(self.nowhere, 'row')} without a whole URL, the"
            line += f"; {some if self.located else 'no row has a URL, so their'} other fields did not count"
            line += " (see --url-field)"
        return line
