"""`scrapy_neardup.spark` on two cores of this machine: the decisions are those of `dedupe`."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli import rows as read_rows
from cli import succeeded
from helpers import edited, text, write_rows

from scrapy_neardup import Deduplicator
from scrapy_neardup.files import FileError
from scrapy_neardup.items import item_document
from scrapy_neardup.settings import Config, ConfigError

pytest.importorskip("pyspark")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark.sql import Row, SparkSession

from scrapy_neardup.spark import dedupe
from scrapy_neardup.spark.__main__ import main
from scrapy_neardup.spark.job import read

# Spark is started once: with --dist loadgroup one worker has all of these tests.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # For a hundred rows Spark would spend most of the time on making its plans fast.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def one_after_another(rows: Rows, **settings: Any) -> dict[Any, dict[str, Any]]:
    """Return by id the verdicts that are made in this process; the original by its id."""
    found, ids = {}, {}
    config = Config.from_keywords(settings).ignoring("id")
    with Deduplicator.from_config(config) as dedup:
        for row in rows:
            if document := item_document(row, config):
                claim = dedup.claim(document)
                claim.commit()
                ids.setdefault(claim.match.signature if claim.match else claim.signature, row["id"])
                original = ids[claim.match.signature] if claim.match else None
                found[row["id"]] = {**claim.verdict.tag(), "duplicate_of": original}
    return found


def on_spark(spark: SparkSession, rows: Rows, **settings: Any) -> dict[Any, dict[str, Any]]:
    names = {name for row in rows for name in row}
    columns = [{name: row.get(name) for name in names} for row in rows]
    given = spark.createDataFrame([Row(crawl_order=n, **each) for n, each in enumerate(columns)])
    verdicts = dedupe(given.repartition(3), id_field="id", order="crawl_order", **settings).collect()
    return {row["id"]: row["neardup"].asDict() for row in verdicts if row["neardup"]}


def feed(seed: int) -> Rows:
    """Return documents of all kinds in random order: copies, chains of edits, families, revisits, short and empty."""
    chosen = random.Random(seed)
    made: Rows = []
    for number in range(12):
        version = text(100 * seed + number, chosen.choice((25, 60, 200)))
        for _ in range(chosen.randrange(1, 8)):
            url = f"http://{chosen.choice('abc')}.example/{number}/{chosen.randrange(4)}"
            made.append({"text": version, "url": chosen.choice((url, url, None))})
            if chosen.random() < 0.7:
                size = len(version.split())
                version = edited(version, *chosen.sample(range(size), size // 12)).replace("changed", f"c{seed}n")
    made += [{"text": t, "url": None} for t in ("", "too short", "too short", "。", text(seed, 19), text(seed, 19))]
    made += [{"text": text(seed, 19), "url": "http://a.example/short"}] * 2
    chosen.shuffle(made)
    return [{"id": f"d{n}", "title": "a title", **row} for n, row in enumerate(made)]


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (1, {}),
        (2, {"short_text": "exact", "resemblance": 0.2, "scope": "host"}),
        (3, {"detectors": [{"name": "simhash", "distance": 10}], "resemblance": {0: 0.3}}),
        (4, {"detectors": ["imatch", "shingle"], "min_tokens": 0}),
    ],
)
def test_decides_as_one_after_another(spark: SparkSession, seed: int, settings: dict[str, Any]) -> None:
    rows = feed(seed)
    expected = one_after_another(rows, **settings)
    assert {verdict["status"] for verdict in expected.values()} >= {"unique", "duplicate"}
    assert on_spark(spark, rows, **settings) == expected


def test_a_family_larger_than_what_one_key_finds(spark: SparkSession) -> None:
    # All versions share keys with the first, and each is compared only with those that came last before it.
    origin = text(1, 300)
    rows = [{"id": f"d{n}", "text": edited(origin, n, n + 60)} for n in range(60)]
    rows += [{"id": f"e{n}", "text": text(n, 100)} for n in range(2, 6)]
    expected = one_after_another(rows)
    assert sum(verdict["duplicate_of"] == "d0" for verdict in expected.values()) == 59
    assert on_spark(spark, rows) == expected


def test_short_texts_and_records_without_text(spark: SparkSession) -> None:
    rows = [
        {"text": note, "url": f"http://a.example/{n}", "sku": f"X-{n % 2}", "name": f"chair {n % 2}"}
        for note in ("", "a short note")
        for n in range(6)
    ]
    rows = [{"id": f"d{n}", **row} for n, row in enumerate(rows)]
    expected = one_after_another(rows)
    assert sum(verdict["status"] == "duplicate" for verdict in expected.values()) == 8
    assert {name: verdict["duplicate_of"] for name, verdict in on_spark(spark, rows).items()} == {
        name: verdict["duplicate_of"] for name, verdict in expected.items()
    }  # the resemblance of two texts without a word is no number in JSON


def page(form: str, own: str, number: int, host: str = "news") -> dict[str, Any]:
    return {"id": f"{host}{number}", "url": f"http://{host}.example/{number}", "text": f"{form}\n{own}"}


def test_a_row_that_changes_back_is_kept_with_drop(spark: SparkSession) -> None:
    rows = [{"id": n, "url": "http://a.example/1", "text": text(kind, 60)} for n, kind in enumerate((1, 2, 1, 1))]
    for revisit, originals in (("keep", [None, None, "0", "0"]), ("drop", [None, None, None, "0"])):
        found = on_spark(spark, rows, revisit=revisit)
        assert [found[n]["duplicate_of"] for n in range(4)] == originals


def test_template_text_is_told_from_copies(spark: SparkSession) -> None:
    form = "\n".join(text(n, 30) for n in range(20, 28))
    rows = [page(form, text(n, 60), n) for n in range(6)]  # a form with other texts in it
    rows += [page(text(50 + n, 200), text(40, 30), 10 + n) for n in range(3)]
    story = text(60, 200)
    rows += [page(story, text(61, 20), 20), page(story, text(70, 20), 30, host="elsewhere")]  # beside other teasers
    expected = one_after_another(rows)
    assert {expected[f"news{n}"]["status"] for n in range(6)} == {"unique"}
    assert expected["elsewhere30"]["duplicate_of"] == "news20"
    assert on_spark(spark, rows) == expected


def test_html_is_read_as_a_crawl_reads_it(spark: SparkSession) -> None:
    def html(own: str, teaser: str) -> str:
        return f"<html><body><nav><a href='/'>{teaser}</a></nav><article><p>{own}</p></article></body></html>"

    rows = [{"id": n, "html": html(text(1, 150), text(n, 20))} for n in range(2, 4)]
    expected = one_after_another(rows, fields=["html"])
    assert expected[3]["kind"] == "full"
    assert on_spark(spark, rows, fields=["html"]) == {2: expected[2], 3: {**expected[3], "duplicate_of": "2"}}


def test_rows_come_in_the_order_of_the_frame(spark: SparkSession) -> None:
    rows = [(f"d{n}", text(n % 10, 100)) for n in range(40)]
    found = dedupe(spark.createDataFrame(rows, "id string, text string"), id_field="id").collect()
    assert {row.id: row.neardup.duplicate_of for row in found} == {
        f"d{n}": f"d{n % 10}" * (n > 9) or None for n in range(40)
    }


def test_a_detector_with_an_index_of_its_own_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="'feature_code' has its own index"):
        dedupe(spark.createDataFrame([("a", "b")], "id string, text string"), detectors=["exact", "feature_code"])


def test_rows_of_several_files_are_numbered_as_dedupe_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    lines = [json.dumps({"n": n}) for n in range(200)]
    (tmp_path / "z.jsonl").write_text("\n".join(lines[:100]) + "\n\n \n")
    (tmp_path / "folder.jsonl" / "b").write_text("\r\n".join(lines[150:]))
    (tmp_path / "folder.jsonl" / "a").write_text("\n".join(lines[100:150]))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "300")  # so that files are split
    try:
        frame, count = read(spark, [str(tmp_path / name) for name in ("z.jsonl", "folder.jsonl")])
        found = sorted((row.number, bytes(row.row).decode()) for row in frame.collect())
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert found == list(enumerate(lines, 1))
    assert count == 200


def test_inputs_of_an_unknown_or_of_two_formats_are_refused(spark: SparkSession) -> None:
    with pytest.raises(FileError, match="archive: unknown format"):
        read(spark, ["archive"])
    with pytest.raises(FileError, match="two formats, jsonl and parquet"):
        read(spark, ["a.jsonl", "b.parquet"])


def told(capsys: pytest.CaptureFixture[str], code: int, *arguments: str | Path) -> str:
    """Run the command in this process, on the session of all tests, and return the line that it says."""
    assert main([str(argument) for argument in arguments]) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said.rstrip("\n")


def parts(folder: Path) -> list[str]:
    return [line for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a feed, what `dedupe` made of it, and what Spark did."""
    folder = tmp_path_factory.mktemp("done")
    write_rows(folder / "in.jsonl", feed(9))
    succeeded(folder, "dedupe", "in.jsonl", "--id-field", "id", "-o", "unique.jsonl", "--duplicates", "why.jsonl")
    files = {"-o": "unique", "--duplicates": "why"}
    options = [part for option, name in files.items() for part in (option, str(folder / name))]
    assert main([str(folder / "in.jsonl"), "--id-field", "id", *options]) == 0
    return folder


def test_the_command_writes_what_dedupe_writes(done: Path) -> None:
    assert sorted(parts(done / "unique")) == sorted((done / "unique.jsonl").read_text().splitlines())
    assert [json.loads(line) for line in parts(done / "why")] == read_rows(done / "why.jsonl")


def test_parquet_comes_out_as_it_went_in(
    spark: SparkSession, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "id string, url string, text binary, at timestamp, share decimal(8,2), more struct<a:int,b:array<string>>"
    at = datetime(2026, 11, 21, 12)
    rows = [
        (row["id"], row["url"], row["text"].encode(), at + timedelta(n), Decimal(n) / 100, (n, ["x", None]))
        for n, row in enumerate(read_rows(done / "in.jsonl"))
    ]
    for name, some in (("a.parquet", rows[:20]), ("b.parquet", rows[20:])):
        spark.createDataFrame(some, columns).coalesce(1).write.parquet(str(tmp_path / name))
    said = told(capsys, 0, tmp_path / "[ab].parquet", "--id-field", "id", "-o", tmp_path / "out", "--duplicates",
                tmp_path / "why", "-s", "NEARDUP_IGNORE_FIELDS=at,share,more*")  # fmt: skip
    why = read_rows(done / "why.jsonl")
    assert said == f"{len(rows)} rows, {len(rows) - len(why)} kept, {len(why)} duplicates"
    assert [json.loads(line) for line in parts(tmp_path / "why")] == why
    kept, given = spark.read.parquet(str(tmp_path / "out")), spark.read.parquet(str(tmp_path / "a.parquet"))
    assert kept.schema == given.schema
    dropped = {row["id"] for row in why}
    assert sorted(map(repr, kept.collect())) == sorted(
        repr(row) for row in spark.createDataFrame(rows, columns).collect() if row["id"] not in dropped
    )


@pytest.fixture(scope="module")
def bad(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    spark.createDataFrame([("a", 1)], "id string, text int").write.parquet(str(folder / "in.parquet"))
    spark.createDataFrame([("a", "b")], "id string, title string").write.parquet(str(folder / "other.parquet"))
    (folder / "broken.parquet").write_text("no Parquet at all")
    (folder / "list.jsonl").write_text('{"text": "one"}\n[1]\n')
    return folder


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["in.parquet", "--text-field", "text"], "--text-field text: no row has text in it$"),
        (["in.parquet", "--text-field", "body"], "--text-field body: no row has text in it$"),
        (
            ["in.parquet", "--text-field", "id", "--url-field", "link"],
            "--url-field link: no row with text has a URL in it$",
        ),
        (["in.parquet", "--text-field", "id", "--id-field", "name"], "row 1: there is no field 'name'$"),
        (["in.parquet", "other.parquet"], ".*/other.parquet: its columns differ from those of .*/in.parquet$"),
        (["in.parquet", "list.jsonl"], "inputs of two formats, jsonl and parquet; allowed is one format$"),
        (["broken.parquet"], r".*broken\.parquet is not a Parquet file"),
        (["none.parquet"], r".*Path does not exist: file:/.*/none\.parquet"),
        (["in.parquet", "--duplicates", "list.jsonl"], ".*list.jsonl: exists already; allowed is a new folder$"),
        (["list.jsonl"], "file:.*list.jsonl, row 2 of all: no JSON object but \\[1\\]$"),
    ],
)
def test_the_command_refuses_in_a_line(
    bad: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    paths = [str(bad / argument) if "." in argument else argument for argument in arguments]
    before = sorted(os.listdir(bad))
    said = told(capsys, 2, *paths, "-o", bad / "out")
    assert re.match(f"scrapy_neardup.spark: {expected}", said), said
    assert sorted(os.listdir(bad)) == before


def test_nothing_stays_behind_in_a_session(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(n, f"http://a.example/{n}", text(n % 4, 100)) for n in range(9)], "n long, url string, text string"
    )
    marked = dedupe(rows, order="n")
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()  # Spark has no way to ask in Python
    assert marked.where("neardup.status = 'duplicate'").count() == 5


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    options = " ".join(f"--conf {name}={value}" for name, value in OPTIONS.items())
    env = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--master local[2] {options} pyspark-shell"}
    return subprocess.run(
        [sys.executable, "-m", "scrapy_neardup.spark", *arguments],
        cwd=folder, env=env, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip


def test_the_command_starts_spark(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").mkdir()
    for name in "ab":
        write_rows(tmp_path / "in.jsonl" / name, [{"text": text(1, 100)}])
    made = command(tmp_path, "in.jsonl", "-o", "out")
    assert made.returncode == 0, made.stderr
    assert made.stderr.splitlines()[-1] == "2 rows, 1 kept, 1 duplicates"
    assert len(parts(tmp_path / "out")) == 1


def test_the_command_asks_for_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["in.jsonl", "--out", "x"])
    required = "scrapy_neardup.spark: the following arguments are required: -o/--output\n"
    assert capsys.readouterr().err == required
    said = told(capsys, 2, "in.jsonl", "-o", "x", "-s", "NEARDUP_RESEMBLANC=1")
    assert said.startswith("scrapy_neardup.spark: NEARDUP_RESEMBLANC is not a setting of scrapy-neardup")
