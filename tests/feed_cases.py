"""Feeds with odd or broken content, each with the rows or the messages that it must give."""

from __future__ import annotations

import gzip
import json
from typing import Any, TypeAlias

from feed_files import record

BOM = b"\xef\xbb\xbf"
LINES = [b'{"url": "http://a.example/", "n": 1.50}\n', '{ "text":"\u9e64\\u9e64",  "b": [1,2] }\n'.encode()]
INFO = record("warcinfo", "", b"software: x\r\n", "application/warc-fields")

Rows: TypeAlias = list[dict[str, Any]]

ONE, TWO = b'{"a": 1}', b'{"a": 2}'
NESTED: dict[str, Any] = {"a": {"b": [{}, {"c": "]"}]}}
BOTH: Rows = [{"a": 1}, {"a": 2}]
ARRAYS = {  # a crawl that was killed leaves a file of no bytes
    **{f"no array, {data!r}": (data, []) for data in (b"", BOM, b" \n\n", b"[]", b" [\n\n] \n")},
    "array with a mark": (BOM + b'[{"a": 1}]', BOTH[:1]),
    "arrays of two crawls": (b'[\n{"a": 1}\n][\n{"a": 2}\n]', BOTH),
    "empty array first": (b'[][{"a": 1}]', BOTH[:1]),
    "comma missing": (b'[{"a": 1}\n{"a": 2}]', BOTH),
    "lines in place of an array": (b'{"a": 1}\n{"a": 2}\n', BOTH),
    "array without an end": (b'[{"a": 1},\n{"a": 2}', BOTH),
    "many escapes": (b'[{"a": "' + b"\\n" * 5000 + b'"}]', [{"a": "\n" * 5000}]),
    "rows on many lines": (json.dumps([NESTED] * 99, indent=2).encode(), [NESTED] * 99),
    "half a surrogate pair in an array": (b'[{"a": "\\ud800"}]', [{"a": "\ud800"}]),
}  # fmt: skip
# The name of a file, its bytes and its rows.
READ: dict[str, tuple[str, bytes, Rows]] = {
    "lines": ("x.jsonl", b"".join(LINES), [{"url": "http://a.example/", "n": 1.5}, {"text": "鹤鹤", "b": [1, 2]}]),
    "blank lines, and ends of both kinds": ("x.jsonl", b'\n{"a": 1}\r\n  \n{"a": 2}', BOTH),
    "mark": ("x.jsonl", BOM + ONE + b"\n" + BOM + TWO, BOTH),
    "half a surrogate pair": ("x.jsonl", b'{"a": "\xed\xa0\x80"}\n', [{"a": "\ud800"}]),
    "gzipped, whatever its name": ("x.jsonl", gzip.compress(ONE) + gzip.compress(b"\n" + TWO), BOTH),
    **{name: ("x.json", *case) for name, case in ARRAYS.items()},
    "ends of lines in fields and behind rows": (
        "x.csv",
        b'u,t\r\na,"one\ntwo\r\n""three"""\r\n\r\nb,plain\nc,"last, without end"',
        [{"u": "a", "t": 'one\ntwo\r\n"three"'}, {"u": "b", "t": "plain"}, {"u": "c", "t": "last, without end"}],
    ),
    "CSV with a mark": ("x.csv", BOM + b'"url",text\na,b\n', [{"url": "a", "text": "b"}]),
    "a large field": ("x.csv", b"t\n" + b"x" * 200_000, [{"t": "x" * 200_000}]),
}


def _add_table(name: str, head: str, row: str, *cells: str) -> None:
    """Add a table with one row. `cells`: the names of its columns, then the values of its row."""
    names, said = cells[: len(cells) // 2], cells[len(cells) // 2 :]
    READ[f"{name}, {head!r}"] = (name, f"{head}\n{row}\n".encode(), [dict(zip(names, said, strict=True))])


for each in ",;\t|":
    _add_table("x.csv", f"url{each}text", f'"a{each}"{each}b', "url", "text", f"a{each}", "b")
_add_table("x.csv", "text", '"one, two"', "text", "one, two")
_add_table("x.csv", '"price, EUR, incl. tax";url', "1;2", "price, EUR, incl. tax", "url", "1", "2")
_add_table("x.tsv", "url\ttext, clean", "a, b\tc, d", "url", "text, clean", "a, b", "c, d")

UTF_16 = '{"a": 7, "b": "x"}'.encode("utf-16")
DEEP = b"[" * 100_000
DIGITS = b'{"a": ' + b"1" * 5000 + b"}"
TABLE: Rows = [{"u": "a", "t": "1\n2"}, {"u": "c", "t": "3"}]
RECORDS = [record("request", f"http://a.example/{n}", b"x" * (99 + n), "text/plain") for n in range(4)]
OTHERS: Rows = [
    {"id": each[each.index(b"<urn") : each.index(b">") + 1].decode(), "url": f"http://a.example/{n}",
     "date": "2026-11-21T10:00:00Z", "text": None}
    for n, each in enumerate(RECORDS)
]  # fmt: skip
# The name of a file, its bytes, its rows, and the beginning of each message.
BAD_ROWS: list[tuple[str, bytes, Rows, list[str]]] = [
    *(
        ("x.jsonl", b'{"a": 1}\n\n' + raw + b'\n{"a": 2}\n', BOTH, [f"line 3: {why}"])
        for raw, why in [
            (b'{"a": ', "no JSON: Expecting value, column 6"),
            (b'{"a": "\x00"}', "no JSON: Invalid control character"),
            (b'{"a": 1}\r{"a": 2}', "no JSON: Extra data"),
            (b"[1, 2]", "no JSON object"),
            (b'"text"', "no JSON object"),
            (b"null", "no JSON object"),
            (b'{"a": "\xff"}', "'utf-8' codec"),
            (UTF_16, "'utf-8' codec"),
            (DEEP, "no JSON: too deep"),
            (DIGITS, "Exceeds the limit"),
        ]
    ),
    ("x.jsonl", b'{"a": 1}\n{"a": \n{"a": 2}\n\xff\n', BOTH, ["line 2: no JSON", "line 4: 'utf-8'"]),
    ("x.json", b'[\n{"a": 1},\n7,\n{"a": 2}\n]', BOTH, ["row 2: no JSON object"]),
    ("x.json", b'[{"a": 1}, null, {"a": 2}]', BOTH, ["row 2: no JSON object"]),
    ("x.json", b'[{"a": 1}, {"a": "\xff"}, {"a": 2}]', BOTH, ["row 2: 'utf-8'"]),
    ("x.json", b'[{"a": 1}, {"a": 2}, {"a": },\n{"a": 3}]', BOTH, ["after row 2: can't be read: no JSON: Expecting"]),
    ("x.json", b'[{"a": 1}, {"a": 2},\n{"a": "lo', BOTH, ["after row 2: can't be read: no JSON: Unterminated"]),
    ("x.json", b'[{"a": 1}, {"a": 2}, {"b": ' + DEEP, BOTH, ["after row 2: can't be read: no JSON: "]),
    ("x.json", b'[{"a": 1}, {"a": 2}, ' + DIGITS + b"]", BOTH, ["after row 2: can't be read: no JSON: Exceeds"]),
    ("x.json", b'[{"a": 1}, {"a": 2}] more', BOTH, ["after row 2: can't be read: no JSON: Expecting value"]),
    ("x.csv", b'u,t\na,"1\n2"\nb\nc,3\n', TABLE, ["line 4: 1 fields; allowed are 2"]),
    ("x.csv", b'u,t\na,"1\n2"\nb,2,x\nc,3\n', TABLE, ["line 4: 3 fields; allowed are 2"]),
    ("x.csv", b'u,t\na,"1\n2"\nb,\xff\nc,3\n', TABLE, ["line 4: no UTF-8"]),
    ("x.csv", b'u,t\na,"1\n2"\nb,"x" y\nc,3\n', TABLE, ["line 4: no CSV"]),
    ("x.csv", b'u,t\na,"1\n2"\nb,x\ry\nc,3\n', TABLE, ["line 4: no CSV"]),
    ("x.csv", b'u,t\na,"1\n2"\nc,3\nb,"2\n3', TABLE, ["line 5: no CSV: unexpected end of data"]),
    *(
        (
            f"x.warc{gz}",
            pack(b"".join([RECORDS[0], RECORDS[1].replace(old, new), *RECORDS[2:]])),
            OTHERS[:1] + OTHERS[2:],
            [f"record 2: {why}"],
        )
        for gz, pack in (("", bytes), (".gz", gzip.compress))
        for old, new, why in [
            (b"Length: 100", b"Length: 99", "its Content-Length does not match its end"),
            (b"Length: 100", b"Length: x", "its Content-Length is 'x'; allowed is a number"),
            (b"Length: 100", b"Length: 999999999", "its Content-Length is '999999999'"),
            (b"Content-Length", b"Length", "its Content-Length is ''"),
            (b"WARC/1.0", b"warc/1.0", "'warc/1.0"),
        ]
    ),
    ("x.warc", b"".join(RECORDS)[:-50], OTHERS[:3], ["after record 3: can't be read: the file ends before the record"]),
    ("x.jsonl.gz", gzip.compress(ONE + b"\n" + TWO + b"\n")[:-8], BOTH, ["after line 2: can't be read: Compressed"]),
]  # fmt: skip

DAMAGED = gzip.compress(ONE * 999, mtime=0)[:20] + b"\xff" * 500
# The name of a file, its bytes, and the message.
NO_FEEDS: list[tuple[str, bytes, str]] = [
    *((name, b"", "unknown file format") for name in ("x.xlsx", "x", "x.jsonl.bz2")),
    *((f"x.{ending}.gz", DAMAGED, "can't be read: Error -3") for ending in ("jsonl", "json", "csv")),
    ("x.json", b'text [{"a": 1}]', "can't be read: no JSON: Expecting value"),
    ("x.json", b'"text"', "row 1: no JSON object"),
    ("x.csv", b"url,text,url\na,b,c\n", "two columns have one name"),
    ("x.csv", b"url,\xff\na,b\n", "no UTF-8"),
    ("x.csv", "url,text\r\na,b\r\n".encode("utf-16"), "no UTF-8"),
    ("x.csv", b'"url,text\na,b\n', "no CSV"),
    ("x.parquet", b"no such thing", "can't be read: "),
    ("x.parquet", b"PAR1" + bytes(100) + b"PAR1", "can't be read: "),
    ("x.warc", b"no such thing", "record 1: 'no such thing' in place of a record"),
    *((f"x.{ending}.gz", ONE, "can't be read: Not a gzipped file") for ending in ("jsonl", "json", "csv", "warc")),
]
