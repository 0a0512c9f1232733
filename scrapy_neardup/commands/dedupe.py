"""`scrapy neardup dedupe`: feeds in, the rows that are no duplicates out."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from loky import cpu_count
from scrapy.settings import BaseSettings
from tqdm import tqdm

from ..config import Config
from ..dedup import Claim, Deduplicator
from ..feeds import FeedError, read_lines, writing
from ..parallel import ready_rows
from ..ready import Ready, Signer
from ..signature import Signature
from .options import add_feeds, add_store, read_config, with_fields

WORTH, MOST = 8 << 20, 8  # bytes of feeds that are worth the start of processes; so many by default

EXAMPLES = """examples:
  scrapy neardup dedupe items.jsonl -o unique.jsonl --duplicates duplicates.jsonl
  scrapy neardup dedupe monday.jsonl.gz tuesday.jsonl.gz -o unique.jsonl.gz --text-field body --id-field id
  scrapy neardup dedupe today.jsonl -o new.jsonl --store held.sqlite
  scrapy neardup dedupe archive.jsonl.gz -o unique.jsonl.gz --workers 8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_feeds(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="where the rows go that are kept, untouched"
    )
    parser.add_argument("--duplicates", metavar="FILE", help="where it says what was dropped, and why")
    parser.add_argument("--detectors", metavar="A,B", help="detectors to use instead of the default ones")
    parser.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        help="processes that read rows and make fingerprints; the result is the same for every N; 0 or 1: none but this"
        " one (default: 1; for feeds of more than 8 MB the number of cores, at most 8)",
    )
    add_store(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = _config(opts, settings)
    if opts.duplicates and Path(opts.duplicates).absolute() == Path(opts.output).absolute():
        raise FeedError(f"{opts.duplicates}: can't be both the output and the file of duplicates")
    with ExitStack() as stack:
        dedup = stack.enter_context(Deduplicator.from_config(config))
        output = stack.enter_context(writing(opts.output))
        report = stack.enter_context(writing(opts.duplicates)) if opts.duplicates else None
        job = _Job(config, dedup, output, report)
        signer = Signer(config, dedup.detectors, opts.id_field)
        rows = stack.enter_context(closing(ready_rows(read_lines(opts.feeds), signer, _workers(opts))))
        for row in tqdm(rows, unit=" docs", disable=None):
            job.take(row)
        if opts.text_field and job.rows and not job.documents:
            raise FeedError(f"--text-field {opts.text_field}: no row has text in it")
        dedup.store.stats = {"documents": job.documents, "duplicates": job.dropped}
    print(f"{job.rows} rows, {job.rows - job.dropped} kept, {job.dropped} duplicates", file=sys.stderr)


def _count(value: str) -> int:
    if not value.isdecimal():
        raise argparse.ArgumentTypeError(f"{value!r} is not allowed; allowed is a whole number from 0")
    return int(value)


def _workers(opts: argparse.Namespace) -> int:
    if opts.workers is not None:
        return int(opts.workers)
    size = sum(Path(feed).stat().st_size for feed in opts.feeds if Path(feed).is_file())
    return min(cpu_count(), MOST) if size > WORTH else 1


def _config(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    # Without --store nothing is remembered: a project's crawl store is not the place for a feed.
    config = with_fields(replace(read_config(opts, settings), store=opts.store), opts)
    return replace(config, detectors=opts.detectors) if opts.detectors else config


class _Job:
    """One pass over the rows: decides, writes, and knows which row each document held came from."""

    def __init__(self, config: Config, dedup: Deduplicator, output: IO[bytes], report: IO[bytes] | None) -> None:
        self.rows = self.documents = self.dropped = 0
        self._config = config
        self._dedup = dedup
        self._output = output
        self._report = report
        self._ids: dict[Signature, Any] = {}

    def take(self, row: Ready) -> None:
        self.rows += 1
        claim = self._dedup.claim(row.document) if row.document else None
        if claim:
            self.documents += 1
            claim.commit()
        if claim and claim.match and self._is_dropped(claim):
            self.dropped += 1
            self._write_report(row, claim)
            return
        if claim:
            self._ids.setdefault(claim.match.signature if claim.match else claim.signature, row.id)
        self._output.write(row.line.raw)

    def _is_dropped(self, claim: Claim) -> bool:
        """A row's URL again drops it within these feeds; where it was held before them, as NEARDUP_REVISIT says."""
        assert claim.match
        again = claim.verdict.status == "revisit" and claim.match.signature not in self._ids
        return not again or self._config.revisit != "keep"

    def _write_report(self, row: Ready, claim: Claim) -> None:
        if self._report and claim.match:
            verdict = claim.verdict.tag()
            original = self._ids.get(claim.match.signature, verdict["duplicate_of"])
            entry = {"id": row.id, **verdict, "duplicate_of": original}
            self._report.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
