"""Feeds of odd or broken content, as bytes, with the rows or the messages that they lead to."""

from __future__ import annotations

import gzip
from typing import Any, TypeAlias

from feed_files import record

BOM = b"\xef\xbb\xbf"
LINES = [b'{"url": "http://a.example/", "n": 1.50}\n', '{ "text":"\u9e64\\u9e64",  "b": [1,2] }\n'.encode()]
INFO = record("warcinfo", "", b"software: x\r\n", "application/warc-fields")
PACKED = gzip.compress(INFO, mtime=0)

Rows: TypeAlias = list[dict[str, Any]]


def array(*rows: bytes) -> bytes:
    """Return a JSON array as the feeds write it."""
    return b"[\n" + b"".join(b",\n".join(rows) + b"\n" for _ in rows[:1]) + b"]\n"


ONE, TWO, ESCAPES = b'{"a": 1}', b'{"a": 2}', b'{"a": "' + b"\\n" * 5000 + b'"}'
# The name of a file, its bytes, its rows, and the bytes of the feed that is written from them.
READ: dict[str, tuple[str, bytes, Rows, bytes]] = {
    "lines": (
        "x.jsonl",
        b"".join(LINES),
        [{"url": "http://a.example/", "n": 1.5}, {"text": "鹤鹤", "b": [1, 2]}],
        b"".join(LINES),
    ),
    "blank lines": ("x.jsonl", b'\n{"a": 1}\r\n  \n{"a": 2}', [{"a": 1}, {"a": 2}], ONE + b"\n" + TWO + b"\n"),
    "mark": ("x.jsonl", BOM + ONE + b"\n", [{"a": 1}], ONE + b"\n"),
    "half a surrogate pair": ("x.jsonl", b'{"a": "\xed\xa0\x80"}\n', [{"a": "\ud800"}], b'{"a": "\xed\xa0\x80"}\n'),
    # A crawl that was killed leaves a file of no bytes.
    **{f"none, {data!r}": ("x.json", data, [], array()) for data in (b"", BOM, b" \n\n", b"[]", b" [\n\n] \n")},
    "array with a mark": ("x.json", BOM + b'[{"a": 1}]', [{"a": 1}], array(ONE)),
    "arrays of two crawls": ("x.json", array(ONE) + array(TWO), [{"a": 1}, {"a": 2}], array(ONE, TWO)),
    "empty array first": ("x.json", b'[][{"a": 1}]', [{"a": 1}], array(ONE)),
    "comma missing": ("x.json", b'[{"a": 1}\n{"a": 2},{"a": 1}]', [{"a": n} for n in (1, 2, 1)], array(ONE, TWO, ONE)),
    "many escapes": ("x.json", b"[" + ESCAPES + b"]", [{"a": "\n" * 5000}], array(ESCAPES)),
    "ends of lines in fields and behind rows": (
        "x.csv",
        b'u,t\r\na,"one\ntwo\r\n""three"""\r\n\r\nb,plain\nc,"last, without end"',
        [{"u": "a", "t": 'one\ntwo\r\n"three"'}, {"u": "b", "t": "plain"}, {"u": "c", "t": "last, without end"}],
        b'u,t\r\na,"one\ntwo\r\n""three"""\r\nb,plain\nc,"last, without end"\r\n',
    ),
    "CSV with a mark": ("x.csv", BOM + b'"url",text\na,b\n', [{"url": "a", "text": "b"}], BOM + b'"url",text\na,b\n'),
}  # fmt: skip


def _add_table(name: str, head: str, row: str, *cells: str) -> None:
    """Add a table: the first cells are the names of its columns, the others are its one row."""
    names, said = cells[: len(cells) // 2], cells[len(cells) // 2 :]
    data = f"{head}\n{row}\n".encode()
    READ[f"{name}, {head!r}"] = (name, data, [dict(zip(names, said, strict=True))], data)


for each in ",;\t|":
    _add_table("x.csv", f"url{each}text", f'"a{each}"{each}b', "url", "text", f"a{each}", "b")
_add_table("x.csv", "text", '"one, two"', "text", "one, two")
_add_table("x.csv", '"price, EUR, incl. tax";url', "1;2", "price, EUR, incl. tax", "url", "1", "2")
_add_table("x.csv", '"a "", b"", c,, d";url', "1;2", 'a ", b", c,, d', "url", "1", "2")
# TSV is parted by tabs, whatever else is in its first row.
_add_table("x.tsv", "text", "one, two", "text", "one, two")
_add_table("x.tsv", "url\ttext, clean", "a, b\tc, d", "url", "text, clean", "a, b", "c, d")
_add_table("x.tsv", '"text, clean"', "one, two", "text, clean", "one, two")

UTF_16 = [f'{{"a": 7, "b": "{word}"}}'.encode(f"utf-16{end}") for word, end in (("x", ""), ("x", "-le"))]
DEEP = b"[" * 100_000

# The head and the end of the file of bad rows, and the values of the other rows.
AROUND: dict[str, tuple[bytes, bytes, Rows]] = {
    "jsonl": (b"", b"", [{"a": 1}, {"a": 2}]),
    "json": (b"[\n", b"\n]\n", [{"a": 1}, {"a": 2}]),
    "csv": (b"u,t\n", b"", [{"u": "a", "t": "1\n2"}, {"u": "c", "t": "3"}]),
}
# The ending of a file, its bytes, the bytes of its bad rows, and the message on the first of them.
BAD_ROWS: list[tuple[str, bytes, bytes, str]] = [
    *(
        ("jsonl", b'{"a": 1}\n\n' + raw + b'\n{"a": 2}\n', raw + b"\n", f"line 3: {why}")
        for raw, why in [
            (b'{"a": ', "no JSON: Expecting value, column 6"),
            (b"[1, 2]", "a JSON list; allowed is an object"),
            (b'"text"', "a JSON str"),
            (b"null", "a JSON"),
            (b'{"a": "\xff"}', "no JSON"),
            (UTF_16[0], "no JSON: 'utf-8' codec can't decode"),
            (UTF_16[1], "no JSON"),
            (DEEP, "no JSON"),
        ]
    ),
    ("jsonl", b'{"a": 1}\n{"a": \n{"a": 2}\n\xff\n', b'{"a": \n\xff\n', "line 2: no JSON"),
    ("json", b'[\n{"a": 1},\n{"a": },\n{"a": 2}\n]', b'{"a": }', "row 2, line 3: no JSON: Expecting value"),
    ("json", b'[\n{"a": 1},\n\n\n7,\n{"a": 2}\n]', b"7", "row 2, line 5: a JSON int; allowed is an object"),
    ("json", b'[{"a": 1}, [{}, 2], {"a": 2}]', b"[{}, 2]", "row 2, line 1: a JSON list"),
    ("json", b'[{"a": 1},, {"a": 2}]', b"", "row 2, line 1: no JSON"),
    ("json", b'[{"a": 1}, {"a": "\xff"}, {"a": 2}]', b'{"a": "\xff"}', "row 2, line 1: no JSON"),
    ("json", b'[{"a": 1}, {"a": 2} x, {"a": 2}]', b'{"a": 2} x', "row 2, line 1: no JSON: Extra data"),
    ("json", b'[{"a": 1}, }, {"a": 2}]', b"}", "row 2, line 1: no JSON"),
    ("json", b'[{"a": 1}, {"a": 2},]', b"", "row 3, line 1: no JSON"),
    ("json", b'[\n{"a": 1},\n{"a": 2}\n', b"", "row 3, line 4: the file ends before the array;"),
    ("json", b'[\n{"a": 1},\n{"a": 2},\n{"a": "lo', b'{"a": "lo', "row 3, line 4: the file ends before the array"),
    ("json", b'[\n{"a": 1},\n{"a": 2},\n{"a": "lo\\', b'{"a": "lo\\', "row 3, line 4: the file ends before the array"),
    ("json", b'[{"a": 1}, {\n"b" 2}, {"a": 2}]', b'{\n"b" 2}', "row 2, line 2: no JSON: Expecting ':' delimiter, col"),
    ("csv", b'u,t\na,"1\n2"\nb\nc,3\n', b"b\n", "line 4: 1 fields; allowed are 2, the number of columns"),
    ("csv", b'u,t\na,"1\n2"\nb,2,x\nc,3\n', b"b,2,x\n", "line 4: 3 fields; allowed are 2"),
    ("csv", b'u,t\na,"1\n2"\nb,\xff\nc,3\n', b"b,\xff\n", "line 4: no UTF-8"),
    ("csv", b'u,t\na,"1\n2"\nb,"x" y\nc,3\n', b'b,"x" y\n', "line 4: no CSV"),
    ("csv", b'u,t\na,"1\n2"\nb,x\ry\nc,3\n', b"b,x\ry\n", "line 4: no CSV"),
    (
        "csv",
        b'u,t\na,"1\n2"\nc,3\nb,"2\n3',
        b'b,"2\n3\n',
        "line 5: no CSV: unexpected end of data, in line 6: is a quote missing?",
    ),
]  # fmt: skip

DAMAGED = gzip.compress(ONE * 999, mtime=0)[:20] + b"\xff" * 500
# The name of a file, its bytes, and the message.
NO_FEEDS: list[tuple[str, bytes, str]] = [
    *((name, b"", "unknown file format") for name in ("x.xlsx", "x", "x.jsonl.bz2")),
    *((f"x.{ending}.gz", ONE, "can't be read: Not a gzipped file") for ending in ("jsonl", "json", "csv")),
    *((f"x.{ending}.gz", DAMAGED, "can't be read: Error -3") for ending in ("jsonl", "json", "csv")),
    ("x.json", b'\n{"a": 1}\n{"a": 2}', "row 1, line 2: '{' in place of an array; JSON lines need the ending .jsonl"),
    ("x.json", b'[{"a": 1}]\nmore', "row 2, line 2: 'more' in place of an array"),
    ("x.json", b'text [{"a": 1}]', "row 1, line 1: 'text [' in place of an array"),
    ("x.json", b'"text"', "row 1, line 1: '\"text\"' in place"),
    ("x.csv", b"url,text,url\na,b,c\n", "line 1: column 'url' occurs twice"),
    ("x.csv", b"\n\nurl,\xff\na,b\n", "line 3: no UTF-8"),
    ("x.csv", b'"url,text\na,b\n', "line 1: no CSV"),
    ("x.parquet", b"no such thing", "can't be read: "),
    ("x.parquet", b"PAR1" + bytes(100) + b"PAR1", "can't be read: "),
    ("x.warc.gz", b"no such thing", "record 1: can't be read: 'no such thing' in place of a record"),
    (
        "x.warc.gz",
        gzip.compress(INFO + INFO, mtime=0),
        "record 1: can't be read: several records are gzipped together",
    ),
    ("x.warc.gz", gzip.compress(INFO[:-30], mtime=0), "record 1: can't be read: it is shorter than its Content-Length"),
]
# The same of rows that are too long, where 1000 bytes are allowed.
TOO_LONG: list[tuple[str, bytes, str]] = [
    ("x.jsonl", b"{}\n" + b"x" * 2000, "line 2: over 1000 bytes"),
    ("x.csv", b"{}\n" + b"x" * 2000, "line 2: over 1000 bytes"),
    ("x.json", b'[{"a": 1},\n{"a": "' + b"x" * 9000, "row 2, line 2: over 1000 bytes: is a quote or a bracket missing"),
]
