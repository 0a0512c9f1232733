"""Every way in which the commands fail: one line on stderr, exit code 2, no traceback, and nothing is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from cli import refused, write
from feed_files import write_feed
from helpers import text, write_labelled, write_rows

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands import VERBS
from scrapy_neardup.stores.transfer import export_rows

URL = "http://a.example/1"
# What each verb can't do without; {} stands for what the error is about.
ON_STORES = {
    "stats": "",
    "clusters": "",
    "mirrors": "",
    "runs": "",
    "verify": "",
    "compact": "",
    "resolve": URL,
    "explain": URL,
    "forget": "--host a.example",
    "export": "-o x.jsonl",
    "report": "-o r.html",
}
ON_FEEDS = {
    "dedupe": "{} -o out.jsonl",
    "cluster": "{} -o out.jsonl",
    "lexicon": "{} -o out.lexicon",
    "import": "{} --store new.sqlite",
}
ON_LABELS = {"evaluate": "{}", "calibrate": "{} --precision 0.9"}
READ_BY_DETECTORS = ("stats", "clusters", "mirrors", "resolve", "explain", "report")
WITHOUT_SETTINGS = ("verify", "compact")  # of all namespaces, whatever the settings


def stores() -> Iterable[tuple[str, str]]:
    """Yield calls on stores that are none."""
    for verb, rest in ON_STORES.items():
        yield f"{verb} {rest}", "which store? Give --store, or call this inside a Scrapy project"
        yield f"{verb} {rest} --store missing.sqlite", "store 'missing.sqlite' does not exist"
        yield f"{verb} {rest} --store in.jsonl", "in.jsonl"
        yield f"{verb} {rest} --store ftp://host/x", "'ftp://host/x'"
        yield f"{verb} {rest} --store redis://127.0.0.1:1", "127.0.0.1:1"
        yield f"{verb} {rest} --store", "--store"
        if verb not in WITHOUT_SETTINGS:
            yield f"{verb} {rest} --store held.sqlite -s NEARDUP_MIN_TOKENS=many", "NEARDUP_MIN_TOKENS"
            spider = "-s NEARDUP_NAMESPACE={spider}"
            yield f"{verb} {rest} --store held.sqlite {spider}", "NEARDUP_NAMESPACE = '{spider}': of which spider?"
    for verb in READ_BY_DETECTORS:
        yield f"{verb} {ON_STORES[verb]} --store other.sqlite", "NEARDUP_IMATCH_LEXICONS"
    yield "dedupe in.jsonl -o out.jsonl --store other.sqlite", "NEARDUP_IMATCH_LEXICONS"
    yield "dedupe in.jsonl -o out.jsonl --store in.csv", "in.csv"
    yield "dedupe in.jsonl -o out.jsonl --store missing/held.sqlite", "missing"
    yield "import held.jsonl --store in.csv", "in.csv"
    yield "import held.jsonl", "which store?"


def feeds() -> Iterable[tuple[str, str]]:
    """Yield calls on feeds and sets that can't be read."""
    for verb, rest in ON_FEEDS.items():
        yield f"{verb} {rest}".format("missing.jsonl"), "missing.jsonl: can't be read: No such file"
        bad = "bad_export.jsonl" if verb == "import" else "bad.jsonl"
        yield f"{verb} {rest}".format(bad), f"{bad}, line 3: no JSON"
        yield f"{verb} {rest}".format("in.xlsx"), "in.xlsx: no such kind of file; allowed is .jsonl"
        yield f"{verb} {rest}".format("cut.jsonl.gz"), "cut.jsonl.gz: can't be read"
        yield f"{verb} {rest}".format("folder.jsonl"), "folder.jsonl: can't be read"
        yield f"{verb} {rest}".format(""), "IN" if verb != "import" else "FILE"
        yield f"{verb} {rest} -s NEARDUP_MIN_TOKENS=many".format("in.jsonl"), "NEARDUP_MIN_TOKENS"
    for verb in ("dedupe", "cluster", "lexicon"):
        rest = ON_FEEDS[verb]
        for name, why in (("bad.json", "row 2, line 3: no JSON"), ("bad.csv", "line 3: 1 fields; allowed are 2")):
            output = name.replace("bad", "out") if verb == "dedupe" else rest.split()[-1]
            yield f"{verb} {name} -o {output}", f"{name}, {why}"
        yield f"{verb} {rest}".format("in.jsonl in.csv"), "feeds of several kinds, JSON lines and CSV"
        yield f"{verb} {rest} --text-field absent".format("in.jsonl"), "absent"
        yield f"{verb} {rest} --bad-rows bad.txt".format("in.jsonl"), "bad.txt: the feeds are JSON lines"
        yield f"{verb} {rest} --bad-rows in.jsonl".format("in.jsonl"), "can't be both a feed and the file of bad rows"
        yield f"{verb} {rest} --bad-rows missing/bad.jsonl".format("in.jsonl"), "missing/bad.jsonl: can't be written"
    for verb, rest in ON_LABELS.items():
        yield f"{verb} {rest}".format("missing"), "missing/docs.jsonl: can't be read"
        yield f"{verb} {rest}".format("broken"), "broken/docs.jsonl, line 3: no JSON"
        yield f"{verb} {rest}".format("fields"), "fields/docs.jsonl, row 1: there is no field 'id'"
        yield f"{verb} {rest}".format(""), "DIR"
        yield f"{verb} {rest} -s NEARDUP_MIN_TOKENS=many".format("news"), "NEARDUP_MIN_TOKENS"


def options() -> Iterable[tuple[str, str]]:
    """Yield calls with an option that does not exist, or is not given what it needs."""
    for verb in VERBS:
        needed = {**ON_STORES, **ON_FEEDS, **ON_LABELS, "doctor": ""}[verb].format("in.jsonl")
        yield f"{verb} {needed} --colour", "--colour"
        yield f"{verb} {needed} -s NEARDUP_MINTOKENS", "-s"
    for verb in (*ON_STORES, "dedupe", "cluster", "lexicon", "doctor"):
        needed = {**ON_STORES, **ON_FEEDS, "doctor": ""}[verb].format("in.jsonl")
        yield f"{verb} {needed} --jso", "--jso"  # options are not to be shortened: another may come that begins so


DEDUPE, CLUSTER, LEXICON = (f"{verb} {ON_FEEDS[verb]}".format("in.jsonl") for verb in ("dedupe", "cluster", "lexicon"))
FORGET, REPORT = "forget --store held.sqlite", "report --store held.sqlite"
PARTICULAR = [
    ("", "VERB"),
    ("dedup in.jsonl", "dedup"),
    # dedupe
    ("dedupe in.jsonl", "--output"),
    ("dedupe in.jsonl -o out.xlsx", "out.xlsx: the feeds are JSON lines, and so is the output; allowed is .jsonl"),
    ("dedupe in.csv -o out.jsonl", "out.jsonl: the feeds are CSV, and so is the output; allowed is .csv"),
    ("dedupe in.jsonl -o missing/out.jsonl", "missing/out.jsonl"),
    (f"{DEDUPE} --id-field absent", "absent"),
    (f"{DEDUPE} --detectors simmhash", "simmhash"),
    (f"{DEDUPE} --duplicates", "--duplicates"),
    (f"{DEDUPE} --duplicates out.jsonl", "out.jsonl: can't be both the output and the file of duplicates"),
    (f"{DEDUPE} --duplicates in.jsonl", "in.jsonl: can't be both a feed and the file of duplicates"),
    (f"{DEDUPE} --duplicates d.csv", "d.csv: no such kind of file"),
    (f"{DEDUPE} --workers -1", "--workers"),
    (f"{DEDUPE} --workers two", "--workers"),
    (f"{DEDUPE} --workers 1.5", "--workers"),
    (f"{DEDUPE} -s NEARDUP_MINTOKENS=5", "NEARDUP_MIN_TOKENS"),
    (f"{DEDUPE} -s NEARDUP_EXTRACTOR=nodots", "NEARDUP_EXTRACTOR = 'nodots'"),
    ("dedupe pages.jsonl -o out.jsonl -s NEARDUP_EXTRACTOR=builtins.len", "len returned int"),
    ("dedupe in.warc -o out.warc --text-field main", "--text-field main: WARC has no fields to choose from"),
    ("dedupe in.warc -o out.warc --url-field link", "--url-field link: WARC has no fields"),
    ("dedupe bad.parquet -o out.parquet", "bad.parquet: can't be read"),
    ("dedupe bad.warc -o out.warc", "bad.warc, record 1: can't be read"),
    # cluster
    ("cluster in.jsonl", "--output"),
    ("cluster in.jsonl -o out.txt", "out.txt"),
    ("cluster in.jsonl -o missing/out.jsonl", "missing/out.jsonl"),
    ("cluster in.jsonl -o ./in.jsonl", "both a feed and the output"),
    (f"{CLUSTER} --method kmeans", "kmeans"),
    (f"{CLUSTER} --id-field number", "number"),
    (f"{CLUSTER} --class-field kind", "--method som only"),
    (f"{CLUSTER} --seed 0", "--method som only"),
    (f"{CLUSTER} -s NEARDUP_RESEMBLANCE=2", "NEARDUP_RESEMBLANCE"),
    (f"{CLUSTER} --method som --class-field genre", "genre"),
    (f"{CLUSTER} --method som --title-weight -1", "-1"),
    (f"{CLUSTER} --method som --title-weight nan", "nan"),
    (f"{CLUSTER} --method som --title-weight much", "much"),
    (f"{CLUSTER} --method som --similarity 1.1", "from 0 to 1"),
    (f"{CLUSTER} --method som --seed -1", "--seed"),
    # lexicon
    ("lexicon in.jsonl", "--output"),
    ("lexicon in.jsonl -o missing/out.lexicon", "missing/out.lexicon"),
    ("lexicon in.jsonl -o in.jsonl", "both a feed and the output"),
    (f"{LEXICON} --band 0.7 0.2", "0.7"),
    (f"{LEXICON} --band 0.999 1 --min-documents 50", "no term"),
    (f"{LEXICON} --text-field nope --bad-rows bad_rows.jsonl", "'nope'"),
    ("lexicon empty.jsonl -o out.lexicon", "no row has text"),
    ("lexicon pages.jsonl -o out.lexicon -s NEARDUP_EXTRACTOR=math.sqrt", "sqrt failed"),
    # evaluate, calibrate
    ("evaluate news --detectors simmhash", "simmhash"),
    ("evaluate news --detectors exact,exact", "exact"),
    ("evaluate news --detectors no.such", "no.such"),
    ("evaluate news --json figures.txt", "figures.txt"),
    ("evaluate news --json missing/figures.json", "missing"),
    ("evaluate news --shuffle much", "much"),
    ("calibrate news", "--precision"),
    ("calibrate news --precision 1.5", "1.5"),
    ("calibrate news --precision high", "high"),
    ("calibrate news --precision 0.9 --labels kind", "kind"),
    ("calibrate other --precision 0.9", "no pair is labelled 'dup'"),
    # explain, resolve, clusters
    ("explain", "--files"),
    ("explain --files in.jsonl", "--files"),
    ("explain --files in.jsonl missing.txt", "missing.txt"),
    ("explain http://unknown.example/ --store held.sqlite", "unknown.example"),
    ("resolve --store held.sqlite", "URL"),
    ("clusters --store held.sqlite --limit -1", "--limit -1: allowed is a number from 0"),
    ("clusters --store held.sqlite --limit many", "many"),
    ("stats more", "more"),
    # forget
    (FORGET, "--before"),
    (f"{FORGET} --url {URL} --host a.example", "--host"),
    (f"{FORGET} --host {URL}", "a host"),
    *((f"{FORGET} --before {when}", "90 days") for when in ("soon", "5", "20261121", "2026-13-01", "3fortnights")),
    # export, import, report
    ("export --store held.sqlite", "--output"),
    ("export --store held.sqlite -o out.csv", "out.csv: no such kind of file"),
    ("export --store held.sqlite -o missing/out.jsonl", "missing/out.jsonl: can't be written"),
    ("import in.csv --store new.sqlite", "in.csv: no such kind of file"),
    ("import in.jsonl --store new.sqlite", "in.jsonl, row 1"),
    (f"{REPORT}", "-o/--output"),
    (f"{REPORT} -o r.txt", "r.txt: no such kind of file; allowed is .html"),
    (f"{REPORT} -o no/r.html", "no/r.html: can't be written"),
    (f"{REPORT} -o held.sqlite", "can't be both the store and the report"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a bit of everything; nothing that is refused changes it."""
    made = tmp_path_factory.mktemp("errors")
    rows = [{"id": n, "url": f"http://a.example/{n}", "text": text(n)} for n in range(3)]
    write(made / "in.jsonl", rows)
    write_feed(made / "in.csv", [{"url": row["url"], "text": row["text"]} for row in rows])
    write_rows(made / "pages.jsonl", [{"text": f"<html><p>{text(1)}</p></html>"}])
    good, other = json.dumps({"id": "a", "text": "one"}), json.dumps({"id": "b", "text": "two"})
    (made / "bad.jsonl").write_text(f'{good}\n{other}\n{{"text": \n')
    (made / "bad.json").write_text(f'[\n{good},\n{{"text": }}\n]')
    (made / "bad.csv").write_text("id,text\n1,one\ntwo\n")
    for name in ("bad.parquet", "bad.warc", "cut.jsonl.gz", "in.xlsx"):
        (made / name).write_bytes(b"no such thing")
    for name in ("empty.jsonl", "in.warc"):
        (made / name).touch()
    (made / "folder.jsonl").mkdir()
    write_labelled(made / "news")
    pairs = (write_labelled(made / "other") / "pairs.jsonl").read_text()
    (made / "other" / "pairs.jsonl").write_text(pairs.replace('"dup"', '"copy"'))
    for name in ("broken", "fields"):
        write_labelled(made / name)
    (made / "broken" / "docs.jsonl").write_bytes((made / "bad.jsonl").read_bytes())
    write_rows(made / "fields" / "docs.jsonl", [{"text": "no id"}])
    for name, lexicons in (("held", 10), ("other", 3)):
        with Deduplicator.open(str(made / f"{name}.sqlite"), imatch_lexicons=lexicons) as dedup:
            dedup.claim(Document(URL, text(1))).commit()
    with export_rows(str(made / "held.sqlite"), "") as exported:
        write_rows(made / "held.jsonl", exported)
    lines = (made / "held.jsonl").read_text().splitlines()
    (made / "bad_export.jsonl").write_text("\n".join([*lines[:2], "{", *lines[2:]]))
    return made


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ALL = [*stores(), *feeds(), *options(), *PARTICULAR]


def test_each_verb_is_in_the_table() -> None:
    assert {*ON_STORES, *ON_FEEDS, *ON_LABELS, "doctor"} == set(VERBS)
    assert len({arguments for arguments, _ in ALL}) == len(ALL)


@pytest.mark.parametrize(("arguments", "said"), ALL, ids=[re.sub(r"\W+", " ", arguments) for arguments, _ in ALL])
def test_error_is_one_line_and_nothing_is_written(folder: Path, arguments: str, said: str) -> None:
    for extra, name in (("method som", "minisom"), ("parquet", "pyarrow"), ("warc", "warcio")):
        if extra in arguments:
            pytest.importorskip(name)
    before = everything(folder)
    assert said in refused(folder, *arguments.split())
    assert everything(folder) == before


def test_error_leaves_an_earlier_output_as_it_was(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("earlier\n")
    refused(tmp_path, "dedupe", str(folder / "in.jsonl"), "-o", "out.jsonl", "--id-field", "absent")
    assert (tmp_path / "out.jsonl").read_text() == "earlier\n"
