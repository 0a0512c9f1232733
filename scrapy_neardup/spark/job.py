"""Number rows, find the components of documents that may repeat one another, and decide on each component.

Rows are JSON lines, Parquet or a DataFrame, numbered in the order in which `dedupe` decides on them. Numbered rows have
the columns `NUMBER`, `FILE` and `ROW`. `ROW` has the bytes of a line, or a struct of all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, groupby, islice
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..deduplicator import Deduplicator
from ..detectors import build_detectors
from ..document import Document
from ..feeds import JsonLines, Parquet, Row
from ..files import FileError, has_ending, json_text, parse_object
from ..fingerprints.hashes import hash_text
from ..fingerprints.record import EXACT, SIMHASH, Decoded, keys_of
from ..matching.matcher import Rule, compare
from ..processes import RowSigner
from ..row_index import BLOCK_BITS, NEWEST, Equal, Near, flips
from ..settings import Config, ConfigError
from ..signature import Signature
from ..store import open_store
from ..text.urls import canonical_url, home

NUMBER, ROW, FILE = "number", "row", "file"
ENDINGS = {"jsonl": JsonLines.endings, "parquet": Parquet.endings}  # of the formats
_LINE = "trim(TRAILING '\r' FROM value)"
CROWD = 1024  # the maximum values of a bucket to pair; if there are more, they come from a common template
LARGEST = 100_000  # the maximum documents of a component with whole sites; a larger one is split: only similar pages
BATCH = 256  # rows that are signed in one go
RECORDS = "number long, record binary, page long, site long, exact long, keys array<long>, simhash long"
"""The columns of a document. `number`: its place in the order of `dedupe`. `page`: the hash of its canonical URL.
`site`: the hash of its host. `exact`: the hash of the whole text, or of the whole record if the text is too short to
prove anything. `keys`: the hashes by which all other detectors find documents."""
PAIRS = "a long, b long, site long"
"""The numbers of two documents, the earlier one first, and their site if both are pages of one site."""
DUPLICATES = "number long, value string"
"""The number of a row that repeats an earlier one, and the line of `dedupe --duplicates` about it."""


def read(spark: SparkSession, paths: Sequence[str], kind: str | None = None) -> tuple[DataFrame, int]:
    """Return the numbered rows of files, folders or patterns, and the count of rows.

    `kind` is one of `ENDINGS`, or None if the names show the format. Raise FileError if formats or columns differ.
    """
    kinds = {kind or _kind(path) for path in paths}
    if len(kinds) > 1:
        raise FileError(f"inputs of two formats, {' and '.join(sorted(kinds))}; allowed is one format")
    frames: list[DataFrame] = []
    for at, path in enumerate(paths):
        if kinds == {"jsonl"}:
            rows, row = spark.read.text(path, lineSep="\n").where("value rlike '\\\\S'"), F.expr(_LINE).cast("binary")
        else:
            rows, row = spark.read.parquet(path), F.struct("*")
        places = F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start").alias("start")
        frames.append(rows.select(F.lit(at).alias("input"), *places, row.alias(ROW)))
        if frames[at].dtypes != frames[0].dtypes:
            raise FileError(f"{path}: its columns differ from those of {paths[0]}")
    return _numbered(reduce(DataFrame.union, frames), "input", FILE, "start")


def of_frame(frame: DataFrame, order: str | None) -> DataFrame:
    """Return the numbered rows of a DataFrame in their order, or sorted by the column `order`.

    The values of that column must be unique integers, none below 0.
    """
    rows = frame.select(F.struct("*").alias(ROW))
    if order is None:
        return _numbered(rows.withColumn(FILE, F.spark_partition_id()), FILE)[0]
    number = F.col(f"{ROW}.`{order}`").cast("long").alias(NUMBER)
    return rows.select(number, F.lit("").alias(FILE), ROW)


def _kind(path: str) -> str:
    for kind, endings in ENDINGS.items():
        if has_ending(path.rstrip("/"), endings):
            return kind
    raise FileError(f"{path}: unknown format; set --format {' or '.join(ENDINGS)}")


def _numbered(rows: DataFrame, *place: str) -> tuple[DataFrame, int]:
    """Return the rows, numbered from 1 and sorted by the columns `place`, and the count of rows. Rows with equal places
    keep their order."""
    marked = rows.withColumn("at", F.monotonically_increasing_id())
    parts: list[Any] = sorted(map(tuple, marked.groupBy(*place).agg(F.min("at"), F.count("*")).collect()))
    ends = list(accumulate((part[-1] for part in parts), initial=1))
    shifts = [(*part[:-2], end - part[-2]) for part, end in zip(parts, ends, strict=False)]
    types = ", ".join(f"{name} {dict(rows.dtypes)[name]}" for name in place)
    table = rows.sparkSession.createDataFrame(shifts, f"{types}, shift long")
    numbered = marked.join(F.broadcast(table), list(place)).selectExpr(f"at + shift {NUMBER}", FILE, ROW)
    return numbered, ends[-1] - 1


class Job(ExitStack):
    """Decides on numbered rows. Use it in a `with` block; it drops its caches at the end of the block."""

    def __init__(self, rows: DataFrame, config: Config, id_field: str | None = None) -> None:
        super().__init__()
        config = replace(config.ignoring(id_field), store=None)
        indexes = {detector.name: detector.index() for detector in build_detectors(config)}
        if own := [name for name, index in indexes.items() if not isinstance(index, (Equal, Near))]:
            what = "its own index, which Spark can't use; allowed are detectors with the index `Equal`, and `simhash`"
            raise ConfigError(f"NEARDUP_DETECTORS: {own[0]!r} has {what}")
        self._most = max([NEWEST, *(each.newest for each in indexes.values() if isinstance(each, Equal))])
        self._distance = next((each.distance for each in indexes.values() if isinstance(each, Near)), None)
        self._rows = rows
        self._worker = Worker(config, id_field)
        self.records = self._keep(rows.rdd.mapPartitions(self._worker.sign).toDF(RECORDS))

    def duplicates(self) -> DataFrame:
        """Return the columns `DUPLICATES` of documents that repeat earlier ones. All other documents are unique."""
        rows = self._rows.join(self._components(), NUMBER)
        rows = rows.repartition("component").sortWithinPartitions("component", NUMBER)
        return self._keep(rows.rdd.mapPartitions(self._worker.decide).toDF(DUPLICATES))

    def _keep(self, frame: DataFrame) -> DataFrame:
        self.callback(frame.unpersist)
        return frame.persist()

    def _pairs(self) -> DataFrame:
        """Return pairs that connect all documents that may repeat each other. Of several documents with equal texts,
        only the first is compared with documents of other texts."""
        copies = stars(self.records, "exact")
        heads = self.records.join(copies.select(F.col("b").alias(NUMBER)), NUMBER, "left_anti")
        pairs = previous(heads.select(NUMBER, F.explode("keys").alias("value")), self._most)
        if self._distance is not None:
            values = heads.select(NUMBER, F.col("simhash").alias("value")).where("value is not null")
            crowd = max(CROWD, 4 * self.records.count() >> BLOCK_BITS)
            pairs = pairs.union(near(values, self._distance, crowd))
        pairs = pairs.union(copies).union(stars(self.records, "page")).distinct()
        for side in "ab":
            columns = [F.col(name).alias(f"{name}_{side}") for name in ("record", "page", "site")]
            pairs = pairs.join(self.records.select(F.col(NUMBER).alias(side), *columns), side)
        return self._keep(pairs.rdd.mapPartitions(self._worker.compare).toDF(PAIRS))

    def _components(self) -> DataFrame:
        """Return the component of each document that may repeat another document, or be repeated by one.

        If two pages of a site resemble each other, all pages of the site join their component, to recognise siblings.
        """
        pairs = self._pairs()
        members = self._keep(components(pairs))
        sites = self._keep(pairs.where("site is not null").select("site").distinct())
        if sites.isEmpty():
            return members
        of_sites = stars(self.records.join(sites, "site", "left_semi"), "site")
        alike = members.select(F.col("component").alias("a"), F.col(NUMBER).alias("b"))
        joined = components(alike.union(of_sites)).withColumnRenamed("component", "joined")
        sized = joined.selectExpr("*", "count(*) over (partition by joined) size").join(members, NUMBER, "left")
        component = f"if(size <= {LARGEST}, joined, component) component"
        return sized.selectExpr(NUMBER, component).where("component is not null")


def stars(records: DataFrame, column: str) -> DataFrame:
    """Pair each document with the first document that has the same value in a column."""
    first = F.expr(f"min({NUMBER}) over (partition by {column})").alias("a")
    return records.where(F.col(column).isNotNull()).select(first, F.col(NUMBER).alias("b")).where("a < b")


def previous(values: DataFrame, most: int) -> DataFrame:
    """Pair each document with the last `most` earlier documents that have the same value."""
    before = f"(partition by value order by {NUMBER} rows between {most} preceding and 1 preceding)"
    found = values.selectExpr(f"collect_list({NUMBER}) over {before} found", f"{NUMBER} b")
    return found.selectExpr("explode(found) a", "b")


def near(values: DataFrame, distance: int, crowd: int) -> DataFrame:
    """Pair documents whose values differ in 1 to `distance` bits, as `row_index` does.

    Only the first `NEWEST` documents of each value are paired, and only the first `crowd` values of each bucket.
    """
    numbers = F.slice(F.sort_array(F.collect_list(NUMBER)), 1, NEWEST).alias("numbers")
    table = values.sparkSession.createDataFrame(flips(distance), "place int, flip long")
    bits = f"shiftrightunsigned(value, {BLOCK_BITS} * place) & {(1 << BLOCK_BITS) - 1}"
    block = F.expr(f"(({bits}) ^ flip) | shiftleft(place, {BLOCK_BITS})")
    probes = values.groupBy("value").agg(numbers).crossJoin(F.broadcast(table)).withColumn("block", block)
    rank = "row_number() over (partition by block order by numbers[0]) rank"
    entries = probes.where("flip = 0").selectExpr("*", rank).where(f"rank <= {crowd}")
    found = probes.alias("p").join(entries.alias("e"), "block").where("e.numbers[0] < p.numbers[0]")
    found = found.where(f"bit_count(p.value ^ e.value) <= {distance}").selectExpr("p.numbers p", "e.numbers e")
    pairs = found.distinct().selectExpr("explode(p) p", "e").selectExpr("p", "explode(e) e")
    return pairs.selectExpr("least(p, e) a", "greatest(p, e) b")


def components(pairs: DataFrame) -> DataFrame:
    """Return two columns: the `number` of each document in a pair, and the lowest number of its `component`.

    Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, Connected components in MapReduce and beyond. Two steps
    alternate. Large-star links all higher neighbours of each node to the lowest one. Small-star links each node and its
    lower neighbours to the lowest of these.
    """
    links, state = _links(pairs, "greatest(a, b)", "least(a, b)"), None
    while state != (state := links.agg(F.count("*"), F.expr("bit_xor(xxhash64(high, low))")).first()):
        both = links.union(links.select("low", "high")).toDF("node", "other")
        large = both.selectExpr("node", "other", "least(node, min(other) over (partition by node)) lowest")
        links = _links(large.where("other > node"), "other", "lowest")
        small = links.selectExpr("array(high, low) ends", "min(low) over (partition by high) lowest")
        links = _links(small.selectExpr("explode(ends) end", "lowest"), "end", "lowest").localCheckpoint()
    tops = links.selectExpr(f"low {NUMBER}", "low component").distinct()
    return links.selectExpr(f"high {NUMBER}", "low component").union(tops)


def _links(rows: DataFrame, high: str, low: str) -> DataFrame:
    return rows.selectExpr(f"{high} high", f"{low} low").where("high > low").distinct()


@dataclass(frozen=True)
class Worker:
    """Signs rows, compares pairs and decides on components, in the processes of Spark."""

    config: Config
    id_field: str | None

    def sign(self, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the columns `RECORDS` of each row with a document. Raise FileError for a row that can't be read."""
        for batch in self._signed(rows, RowSigner(self.config, build_detectors(self.config))):
            for row, document, record in batch:
                row.id(self.id_field, self.config.url_field)
                yield row.number, *self._shared(document, record)

    def compare(self, pairs: Iterable[Any]) -> Iterator[tuple[int, int, int | None]]:
        """Yield the columns `PAIRS` of those pairs of documents that may be copies or siblings."""
        rule = Rule.from_config(self.config)
        for pair in pairs:
            same_page = pair.page_a is not None and pair.page_a == pair.page_b
            if same_page or _may_repeat(rule, Decoded(bytes(pair.record_a)), Decoded(bytes(pair.record_b))):
                yield pair.a, pair.b, pair.site_a if pair.site_a == pair.site_b and not same_page else None

    def decide(self, rows: Iterable[Any]) -> Iterator[tuple[int, str]]:
        """Yield the columns `DUPLICATES` of rows that repeat earlier ones. Sort `rows` by component and number."""
        signer = RowSigner(self.config, build_detectors(self.config))
        config = replace(self.config, store=None, learn_hosts=False)
        for _, members in groupby(rows, itemgetter("component")):
            store, ids = open_store(None, signer.detectors), dict[Signature, Any]()
            dedup = Deduplicator(store, signer.detectors, config)
            for batch in self._signed(members, signer):
                _, documents, records = zip(*batch, strict=True)
                for (row, _, _), claim in zip(batch, dedup.decide(documents, records), strict=True):
                    name = row.id(self.id_field, self.config.url_field)
                    if claim.match and claim.verdict.is_dropped(config.revisit, is_written=True):
                        said = {"id": name, **claim.verdict.tag(), "duplicate_of": ids[claim.match.signature]}
                        yield row.number, json_text(said)
                    elif not claim.match:
                        ids[claim.signature] = name

    def _signed(self, rows: Iterable[Any], signer: RowSigner) -> Iterator[list[tuple[Row, Document, bytes]]]:
        """Yield batches of (row, document, record). Rows without a document are left out."""
        read = map(_read, rows)
        while batch := list(islice(read, BATCH)):
            documents, made = signer.sign([row[:2] for row in batch])
            records = iter(made)
            if made:
                yield [(row, d, next(records)) for row, d in zip(batch, documents, strict=True) if d]

    def _shared(self, document: Document, record: bytes) -> tuple[Any, ...]:
        """Return the values of a document for the columns `RECORDS`, without the number."""
        made, url, site = Decoded(record), document.url, home(document.url or "")
        head, exact, keys, simhash = made.head, made.head.identity, set[int](), None
        if head.tokens >= (1 if self.config.short_text == "exact" else max(self.config.min_tokens, 1)):
            found, exact = made.keys, head.digest
            keys = {key for name in found.keys() - {EXACT} for key in found[name] if key}
            if head.has_simhash:
                simhash = head.simhash
                keys.update(keys_of(SIMHASH, [simhash]))
        places = hash_text(canonical_url(url)) if url else None, hash_text(site) if site else None
        return record, *map(_as_long, (*places, exact or None)), [*map(_as_long, keys)], _as_long(simhash)


def _read(row: Any) -> Row:
    """Return a numbered row as a row of a feed. Raise FileError if it can't be read."""
    number, data = row["number"], row["row"]
    if not isinstance(data, (bytes, bytearray)):
        columns = data.asDict(recursive=True).items()  # with bytes or bytearrays, depending on Spark's version
        return Row(number, {n: bytes(v) if isinstance(v, bytearray) else v for n, v in columns}, f"row {number}")
    place = f"{row['file']}, row {number} of all"
    try:
        return Row(number, parse_object(bytes(data)), place)
    except ValueError as error:
        raise FileError(f"{place}: {error}") from error


def _may_repeat(rule: Rule, a: Decoded, b: Decoded) -> bool:
    same = a.head.digest == b.head.digest != 0 or a.head.identity == b.head.identity != 0
    found = compare(a.sketch, b.sketch)
    # The final rule leaves out what the pages of a site have in common. The rest may be more alike than the whole.
    return same or (rule.may_accept(a.sketch, b.sketch) and rule.accepts(found._replace(resemblance=1.0)))


def _as_long(value: int | None) -> int | None:
    """Return the signed integer with the bits of an unsigned one of 64 bits. Spark has no unsigned integers."""
    return value and value - (value >> 63 << 64)
