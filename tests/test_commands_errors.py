"""Every way in which commands fail: one line on stderr, exit code 2, no traceback, and nothing is written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from cli import environment, write
from feed_files import write_feed
from forks import FORKS
from helpers import text, write_labelled, write_rows

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands import VERBS
from scrapy_neardup.settings import Config
from scrapy_neardup.store.transfer import export_rows

URL = "http://a.example/1"
# What each verb can't do without; {} stands for what the error is about.
ON_STORES = {
    "stats": "",
    "clusters": "",
    "mirrors": "",
    "changes": "",
    "explain": URL,
    "forget": "--host a.example",
    "export": "-o x.jsonl",
    "report": "-o r.html",
}
ON_FEEDS = {
    "dedupe": "{} -o out.jsonl",
    "lab cluster": "{} -o out.jsonl",
    "lab lexicon": "{} -o out.lexicon",
    "import": "{} --store new.sqlite",
}
FEED_NAMES = {"import": "FILE"}
ON_LABELS = {"lab evaluate": "{}", "lab calibrate": "{} --precision 0.9"}
OTHERS = {"doctor": "", "judge": f"{URL} http://b.example/ different"}
MIN_TOKENS = "NEARDUP_MIN_TOKENS = 'many' is not allowed; allowed is a whole number from 0 up"
OTHER = "other.sqlite' does not fit: 'imatch' was made as"


def stores() -> Iterable[tuple[str, str]]:
    """Yield calls on stores that are none."""
    for verb, rest in {**ON_STORES, "stats --runs": "", "stats --check": ""}.items():
        yield f"{verb} {rest}", "no store: name one with --store, or run this in a Scrapy project"
        yield f"{verb} {rest} --store missing.sqlite", "store 'missing.sqlite' does not exist"
        yield f"{verb} {rest} --store in.jsonl", "in.jsonl' is not a store: its file is not a database"
        yield f"{verb} {rest} --store ftp://host/x", "store 'ftp://host/x': no such kind of store; allowed are"
        yield f"{verb} {rest} --store redis://127.0.0.1:1", "store 'redis://127.0.0.1:1' can't be used: "
        yield f"{verb} {rest} --store held.sqlite -s NEARDUP_MIN_TOKENS=many", MIN_TOKENS
    for verb in ("stats", "forget"):
        named = f"{verb} {ON_STORES[verb]} --store"
        yield named, "argument --store: expected one argument"
        yield f"{named} held.sqlite -s NEARDUP_NAMESPACE={{spider}}", "{spider} has a value only in a crawl"
    yield f"stats --store {'a' * 256}", f"store '{'a' * 256}' does not exist"
    yield f"explain {URL} --store other.sqlite", OTHER
    yield "dedupe in.jsonl -o out.jsonl --store other.sqlite", OTHER
    yield ("dedupe in.jsonl -o out.jsonl --store in.csv", "in.csv' is not a store: its file is not a database")
    yield "dedupe in.jsonl -o out.jsonl --store missing/held.sqlite", "missing'; create it first"
    yield "import held.jsonl --store in.csv", "in.csv' is not a store: its file is not a database"
    yield "import held.jsonl", "no store: name one"


def feeds() -> Iterable[tuple[str, str]]:
    """Yield calls on feeds and sets that can't be read."""
    for verb, rest in ON_FEEDS.items():
        yield f"{verb} {rest}".format("missing.jsonl"), "missing.jsonl: can't be read: No such file"
        if verb == "import":
            yield f"{verb} {rest}".format("bad_export.jsonl"), "bad_export.jsonl, line 3: no JSON"
        yield f"{verb} {rest}".format("in.xlsx"), "in.xlsx: unknown file format; allowed is .jsonl"
        yield f"{verb} {rest}".format("cut.jsonl.gz"), "cut.jsonl.gz: can't be read"
        yield f"{verb} {rest}".format("folder.jsonl"), "folder.jsonl: can't be read"
        yield (f"{verb} {rest}".format(""), f"the following arguments are required: {FEED_NAMES.get(verb, 'IN')}")
        yield f"{verb} {rest} -s NEARDUP_MIN_TOKENS=many".format("in.jsonl"), MIN_TOKENS
    for verb in ("dedupe", "lab cluster", "lab lexicon"):
        rest = ON_FEEDS[verb]
        yield f"{verb} {rest}".format("in.jsonl in.csv"), "feeds of several formats, JSON lines and CSV"
        yield f"{verb} {rest} --text-field absent".format("in.jsonl"), "no row has text in "
    for verb, rest in ON_LABELS.items():
        yield f"{verb} {rest}".format("missing"), "missing/docs.jsonl: can't be read"
        yield f"{verb} {rest}".format("x" * 256), "/docs.jsonl: can't be read: File name too long"
        yield f"{verb} {rest}".format("broken"), "broken/docs.jsonl, line 3: no JSON"
        yield f"{verb} {rest}".format("fields"), "fields/docs.jsonl, line 1: there is no field 'id'"
        yield f"{verb} {rest}".format(""), "the following arguments are required: DIR"
        yield f"{verb} {rest} -s NEARDUP_MIN_TOKENS=many".format("news"), MIN_TOKENS


def options() -> Iterable[tuple[str, str]]:
    """Yield calls with an option that does not exist, or is not given what it needs."""
    for verb in VERBS:
        needed = {**ON_STORES, **ON_FEEDS, **ON_LABELS, **OTHERS}[verb].format("in.jsonl")
        yield f"{verb} {needed} --colour", "unrecognized arguments: --colour"
    yield "stats --store held.sqlite -s NEARDUP_MINTOKENS", "Invalid -s value, use -s NAME=VALUE"
    # Options are not to be shortened: another may come that begins so.
    yield "stats --store held.sqlite --jso", "unrecognized arguments: --jso"


DEDUPE, CLUSTER, LEXICON = (
    f"{verb} {ON_FEEDS[verb]}".format("in.jsonl") for verb in ("dedupe", "lab cluster", "lab lexicon")
)
REQUIRED = "the following arguments are required: -o/--output"
FROM_0 = "is not allowed; allowed is a whole number from 0"
SHARE = "is not allowed; allowed is a number from 0 to 1"
JUDGE = f"judge {OTHERS['judge']}"
FORGET, REPORT = "forget --store held.sqlite", "report --store held.sqlite"
PARTICULAR = [
    ("--colour stats", "'--colour' is not an option; see scrapy neardup --help"),
    ("dedup in.jsonl", "there is no verb 'dedup'; did you mean 'dedupe'?"),
    ("lab evalute news", "did you mean 'lab evaluate'?"),
    ("lab explain", "there is no verb 'lab explain'"),
    ("frobnicate", "there is no verb 'frobnicate'; see scrapy neardup --help"),
    ("stats --runs --check --store held.sqlite", "argument --check: not allowed with argument --runs"),
    # dedupe
    ("dedupe in.jsonl", REQUIRED),
    ("dedupe in.jsonl -o out.xlsx", "out.xlsx: unknown file format; allowed is .jsonl"),
    ("dedupe in.csv -o out.warc", "out.warc: WARC is written only from WARC, but the feeds are CSV"),
    ("dedupe in.jsonl -o missing/out.jsonl", "missing/out.jsonl: can't be written: No such file"),
    ("dedupe in.jsonl -o pipe.jsonl", "pipe.jsonl: can't be written: not a regular file"),
    (f"{DEDUPE} --duplicates pipe.jsonl", "pipe.jsonl: can't be written: not a regular file"),
    (f"{DEDUPE} --id-field absent", "in.jsonl, line 1: there is no field 'absent'"),
    (f"{DEDUPE} -s NEARDUP_DETECTORS=simmhash", "not 'simmhash'; did you mean 'simhash'?"),
    (f"{DEDUPE} --duplicates", "argument --duplicates: expected one argument"),
    (f"{DEDUPE} --duplicates out.jsonl", "out.jsonl: can't be both the output and the file of duplicates"),
    (f"{DEDUPE} --duplicates in.jsonl", "in.jsonl: can't be both a feed and the file of duplicates"),
    (f"{DEDUPE} --duplicates d.csv", "d.csv: unknown file format"),
    (f"{DEDUPE} --workers -1", f"argument --workers: '-1' {FROM_0}"),
    (f"{DEDUPE} -s NEARDUP_MINTOKENS=5", "not a setting of scrapy-neardup; did you mean NEARDUP_MIN_TOKENS?"),
    (f"{DEDUPE} -s NEARDUP_EXTRACTOR=nodots", "NEARDUP_EXTRACTOR = 'nodots' is not allowed; allowed is "),
    ("dedupe pages.jsonl -o out.jsonl -s NEARDUP_EXTRACTOR=builtins.len", "len returned int"),
    (f"{DEDUPE} --url-field link", "--url-field link: no row with text has a URL in it"),
    (f"{CLUSTER} --url-field link", "--url-field link: no row with text has a URL in it"),
    ("dedupe bad.parquet -o out.parquet", "bad.parquet: can't be read"),
    # cluster
    ("lab cluster in.jsonl", REQUIRED),
    ("lab cluster in.jsonl -o missing/out.jsonl", "missing/out.jsonl: can't be written: No such file"),
    ("lab cluster in.jsonl -o out.txt", "out.txt: unknown file format; allowed is .jsonl"),
    ("lab cluster in.jsonl -o ./in.jsonl", "both a feed and the output"),
    (f"{CLUSTER} --method kmeans", "argument --method: invalid choice: 'kmeans'"),
    (f"{CLUSTER} --id-field number", "in.jsonl, line 1: there is no field 'number'"),
    (f"{CLUSTER} -s NEARDUP_RESEMBLANCE=2", "NEARDUP_RESEMBLANCE = '2' is not allowed; allowed is a number"),
    # lexicon
    ("lab lexicon in.jsonl", REQUIRED),
    ("lab lexicon in.jsonl -o missing/out.lexicon", "missing/out.lexicon: can't be written: No such file"),
    ("lab lexicon in.jsonl -o pipe.jsonl --band 0 1", "pipe.jsonl: can't be written: not a regular file"),
    ("lab lexicon in.jsonl -o in.jsonl", "both a feed and the output"),
    (f"{LEXICON} --band 0 many", "--band: 'many' is not allowed; allowed is a number from 0 to 1"),
    (f"{LEXICON} --band 0.7 0.2", "--band 0.7 0.2: a band of normalized IDF needs 0 <= low <= high <= 1"),
    (f"{LEXICON} --band 0.999 1", "no term is in the band 0.999 to 1.0 of 3 documents"),
    (f"{LEXICON} --text-field nope", "--text-field nope: no row has text in it"),
    ("lab lexicon empty.jsonl -o out.lexicon", "no term is in the band 0.5 to 0.7 of 0 documents"),
    ("lab lexicon pages.jsonl -o out.lexicon -s NEARDUP_EXTRACTOR=math.sqrt", "sqrt failed on a page"),
    # judge
    (JUDGE, "no store: name one with --store, or run this in a Scrapy project"),
    (f"{JUDGE} --store missing.sqlite", "store 'missing.sqlite' does not exist"),
    (f"{JUDGE} --store redis://127.0.0.1:1", "judgements are kept beside a store in a file"),
    (f"{JUDGE} --store judged.sqlite", "judged.sqlite.reviewed/pairs.jsonl, line 1: there is no "),
    (f"{JUDGE} --store held.sqlite --texts missing.jsonl", "missing.jsonl: can't be read: No such file"),
    (f"judge {URL} {URL}#x same --store held.sqlite", "are one page; allowed are two"),
    (f"judge {URL} b.txt same --store held.sqlite", "b.txt: can't be read: No such file"),
    (f"judge {URL} empty.jsonl same --store held.sqlite", "'same' needs the texts of both pages"),
    (f"{JUDGE} --store held.sqlite", "neither the store nor a feed knows http://b.example/; allowed is a URL"),
    (f"judge {URL} http://b.example/ alike", "invalid choice: 'alike'"),
    # evaluate, calibrate
    ("lab evaluate news --detectors simmhash", "not 'simmhash'; did you mean 'simhash'?"),
    ("lab evaluate news --detectors exact,exact", "is not allowed; allowed is each name once"),
    ("lab evaluate news --detectors no.such", "'no.such' can't be used as a detector"),
    ('lab evaluate news -s NEARDUP_DETECTORS=[{"name":"simhash","distnce":3}]', "do not fit; allowed are distance=3"),
    ('stats --store held.sqlite -s NEARDUP_DETECTORS=[{"nam":"simhash"}]', "NEARDUP_DETECTORS = "),
    ("lab calibrate news", "the following arguments are required: --precision"),
    ("lab calibrate news --precision 1.5", f"argument --precision: '1.5' {SHARE}"),
    ("lab calibrate other --precision 0.9", "no pair is labelled 'dup'"),
    # explain, clusters
    ("explain", "the following arguments are required: A"),
    (f"explain in.jsonl {URL}", "allowed are two URLs or two files"),
    ("explain in.jsonl missing.txt", "missing.txt: can't be read: No such file"),
    ("explain http://unknown.example/ --store held.sqlite", "the store does not know http://unknown.example/"),
    ("clusters --store held.sqlite --limit -1", f"argument --limit: '-1' {FROM_0}"),
    ("stats more", "unrecognized arguments: more"),
    ("-s NEARDUP_MIN_TOKENS=many stats --store held.sqlite", MIN_TOKENS),
    (f"stats --store {'x' * 300}.sqlite", "x.sqlite' does not exist"),
    # forget
    (FORGET, "one of the arguments URL --host --run --before is required"),
    (f"{FORGET} {URL} --host a.example", "argument --host: not allowed with argument URL"),
    (f"{FORGET} --run 20200101-000000-1 --dry-run", "has no run '20200101-000000-1'; `scrapy neardup stats --runs`"),
    (f"{FORGET} --host {URL}", f"--host: '{URL}' is not allowed; allowed is a host, with its port or without"),
    *((f"{FORGET} --before {when}", "90 days") for when in ("soon", "5", "20261121", "2026-10-01", "3fortnights")),
    # export, import, report
    ("export --store held.sqlite", REQUIRED),
    ("export --store held.sqlite -o missing/out.jsonl", "missing/out.jsonl: can't be written"),
    ("export --store held.sqlite -o out.csv", "out.csv: unknown file format"),
    ("import in.csv --store new.sqlite", "in.csv, row 1: it is not an export"),
    (f"{REPORT} -o r.txt", "r.txt: unknown file format; allowed is .html"),
    (REPORT, REQUIRED),
    (f"{REPORT} -o pipe.html", "pipe.html: can't be written: not a regular file"),
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
    for name in ("bad.parquet", "bad.warc", "cut.jsonl.gz", "in.xlsx"):
        (made / name).write_bytes(b"no such thing")
    for name in ("empty.jsonl", "in.warc"):
        (made / name).touch()
    (made / "folder.jsonl").mkdir()
    os.mkfifo(made / "pipe.jsonl")
    for name in ("pipe.html", "pipe.json"):
        (made / name).symlink_to("pipe.jsonl")
    write_labelled(made / "news")
    pairs = (write_labelled(made / "other") / "pairs.jsonl").read_text()
    (made / "other" / "pairs.jsonl").write_text(pairs.replace('"dup"', '"copy"'))
    for name in ("broken", "fields"):
        write_labelled(made / name)
    (made / "broken" / "docs.jsonl").write_bytes((made / "bad.jsonl").read_bytes())
    for name in ("docs", "pairs"):
        write_rows(made / "fields" / f"{name}.jsonl", [{"text": "no id"}])
    (made / "judged.sqlite").touch()
    (made / "judged.sqlite.reviewed").symlink_to("fields")
    for name, imatch in (("held", "imatch"), ("other", {"name": "imatch", "randomized": 3})):
        with Deduplicator.open(str(made / f"{name}.sqlite"), detectors=[imatch, *Config().detectors[2:]]) as dedup:
            dedup.claim(Document(URL, text(1))).commit()
    with closing(export_rows(str(made / "held.sqlite"), "")) as exported:
        write_rows(made / "held.jsonl", exported)
    lines = (made / "held.jsonl").read_text().splitlines()
    (made / "bad_export.jsonl").write_text("\n".join([*lines[:2], "{", *lines[2:]]))
    return made


ALL = [*stores(), *feeds(), *options(), *PARTICULAR]


def test_each_verb_is_in_the_table() -> None:
    assert {*ON_STORES, *ON_FEEDS, *ON_LABELS, *OTHERS} == set(VERBS)
    assert len({arguments for arguments, _ in ALL}) == len(ALL)


CALLS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from scrapy.cmdline import execute

def everything():
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}

before = everything()
for arguments in json.load(open(sys.argv[1])):
    code, out, err = None, StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            execute(["scrapy", "neardup", *arguments.split()])
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, out.getvalue(), err.getvalue(), everything() == before]), flush=True)
"""


@pytest.fixture(scope="module")
def outcomes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str, bool]]:
    """Return of each call its exit code, stdout, stderr, and that all files are as they were; one process does all."""
    calls = tmp_path_factory.mktemp("calls") / "calls.json"
    calls.write_text(json.dumps([arguments for arguments, _ in ALL]))
    said, errors = FORKS.start(folder, ["code", CALLS, str(calls)], environment()).communicate()
    assert said.count("\n") == len(ALL), errors
    return {call: json.loads(line) for (call, _), line in zip(ALL, said.splitlines(), strict=True)}


@pytest.mark.parametrize(("arguments", "said"), ALL, ids=[re.sub(r"\W+", " ", arguments) for arguments, _ in ALL])
def test_error_is_one_line_and_nothing_is_written(
    outcomes: dict[str, tuple[int, str, str, bool]], arguments: str, said: str
) -> None:
    for extra, name in (("method som", "minisom"), ("parquet", "pyarrow"), ("warc", "warcio")):
        if extra in arguments:
            pytest.importorskip(name)
    code, out, err, is_left = outcomes[arguments]
    assert (code, out, err.count("\n"), is_left) == (2, "", 1, True), err
    assert said in err
    assert err.startswith(("scrapy neardup", "usage: scrapy neardup"))
