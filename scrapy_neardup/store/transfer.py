"""Export a store as JSON lines, and import lines into a store of any kind.

Every line has a `type`. The first line has the type `store`, the `format`, the `schemes`, and the counts of `documents`
and `urls`; the last one has the type `end`. Each line between them is a row. Its `type` is the kind of the row, its
`key` the key without the kind. Its other fields are those of the record (see `records`). Bytes are `{"base64": …}`.
Integers that other programs would round are `{"hex": …}`.

An import writes in chunks, which a running crawl sees as rows of another process. If the import is killed, the chunks
written so far stay. To import the same lines again changes nothing, since rows that are held or forgotten are skipped.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, TypeAlias, cast

from ..signature import Signature, Visit
from . import open_backend, records
from .backend import Entry
from .records import DAMAGE, DOCUMENT, FIELDS, HOST, RUN, VISIT, Key, Record, Run
from .store import Store

CHUNK = 200  # rows in a chunk; each run among them needs an open lock file
Line: TypeAlias = dict[str, Any]  # as JSON data
END: Line = {"type": "end"}  # the last line


@dataclass
class Imported:
    """The numbers of imported documents and URLs, and of documents that the store had before or has forgotten."""

    documents: int = 0
    urls: int = 0
    known: int = 0


def export_rows(address: str, namespace: str) -> Generator[Line, None, None]:
    """Yield the lines of a store's export. The store stays open until the generator is closed."""
    with closing(open_backend(address, namespace, writes=False)) as backend:
        session = Store(backend, (), run=None).session
        runs = dict(session.runs)
        yield {"type": "store", **session.made, "documents": backend.size(DOCUMENT), "urls": backend.size(VISIT)}
        yield from (line_of(f"{RUN}/{run.id}", run) for run in runs.values())
        for row in chain(*map(backend.scan, (DOCUMENT, VISIT, HOST))):
            record = session.load(row)
            # A run that began after the export has no line, so its rows are left out.
            if records.code_of(records.origin(row.key, record)) in runs:
                yield line_of(row.key, record)
        yield END


def line_of(key: Key, record: Record) -> Line:
    kind = records.kind_of(key)
    fields = zip(FIELDS[kind], records.body_of(key, record), strict=True)
    return {"type": kind, "key": _told(records.name_of(key)), **{name: _told(value) for name, value in fields}}


def _told(value: Any) -> Any:
    """Return a value as JSON data that any program can read and write without loss."""
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [_told(each) for each in value]
    return {"hex": f"{value:x}"} if isinstance(value, int) and abs(value) >> 53 else value


def import_rows(address: str, namespace: str, lines: Iterable[Line], *, chunk: int = CHUNK) -> Imported:
    """Import lines into a store, which is created if it does not exist.

    Raise ValueError for an invalid line and for truncated input, StoreError if the store has other schemes.
    """
    lines = iter(lines)
    head = next(lines, {})
    if head.get("type") != "store":
        raise ValueError("it is not an export: the first row must have the type 'store'")
    schemes, rows = records.merged(head, {})["schemes"], _read(lines)
    first = [*islice(rows, chunk)]  # read first, so that invalid input creates no store
    with closing(open_backend(address, namespace, writes=True)) as backend:
        store, counts = Store(backend, (), run=None), Imported()
        store.session.agree(schemes, writes=True)
        for some in chain([first], iter(lambda: [*islice(rows, chunk)], [])):
            store.catch_up()
            _add_runs(store, [record for _, record in some if isinstance(record, Run)])
            _add_rows(store, [*_wanted(store, some, counts)], counts)
            backend.flush(wait=True)
    return counts


def _read(lines: Iterable[Line]) -> Iterator[tuple[Key, Record]]:
    """Yield the key and record of each line. Raise ValueError if a line is invalid, or the last one is not END."""
    line: Line = {}
    for line in lines:
        if line.get("type") != "end":
            yield _row(line)
    if line.get("type") != "end":
        raise ValueError("it is truncated: there is no row of type 'end'; import the whole file")


def _row(line: Line) -> tuple[Key, Record]:
    kind = str(line.get("type"))
    if kind not in FIELDS:
        raise ValueError(f"a row of type {kind!r:.80}; allowed are {', '.join(FIELDS)}")
    try:
        key, record = records.key_of(kind, _value(line["key"])), [_value(line[name]) for name in FIELDS[kind]]
        records.check(key, row := records.READERS[kind](key, record))
    except KeyError as error:
        raise ValueError(f"a {kind} without {error}") from error
    except DAMAGE as error:
        raise ValueError(f"no {kind}: {error}") from error
    return key, row


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(each) for each in value]
    [(how, told)] = value.items() if isinstance(value, dict) and len(value) == 1 else [("", "")]
    if how == "base64" and isinstance(told, str):
        return b64decode(told, validate=True)
    return int(told, 16) if how == "hex" and isinstance(told, str) else value


def _add_runs(store: Store, runs: list[Run]) -> None:
    """Write records of runs that are new or changed, except for runs that are alive in this store."""
    session, backend = store.session, store.backend
    new = [(run, session.runs.get(records.code(run.id))) for run in runs]
    ids: dict[int, str] = {}
    for run, known in new:
        other = ids.setdefault(records.code(run.id), known.id if known else run.id)
        if other != run.id:
            why = f"the runs {other!r} and {run.id!r} have one code, so no store can have both"
            raise ValueError(f"{why}; import it into another store or NEARDUP_NAMESPACE")
    held = [run for run, known in new if _merged(run, known) != known and backend.hold_run(run.id)]
    try:
        session.update_runs(backend.get(f"{RUN}/{run.id}" for run in held))
        for run in held:
            session.save(_merged(run, session.runs.get(records.code(run.id))))
        backend.flush(wait=True)
    finally:
        for run in held:
            backend.release_run(run.id)


def _wanted(store: Store, rows: list[tuple[Key, Record]], counts: Imported) -> Iterator[tuple[Key, Record]]:
    """Yield the rows to import. Skip records of runs, forgotten rows, and rows of runs alive in this store."""
    runs = store.session.runs
    alive = {code for code, run in runs.items() if run.closed is None and store.backend.is_held(run.id)}
    for key, record in rows:
        if isinstance(record, Run):
            continue
        run = records.code_of(id := records.origin(key, record))
        if run not in runs:
            raise ValueError(f"row {key!r} is of a run that has no row before it")
        if store.session.has_forgotten(id):
            counts.known += isinstance(record, Signature)
        elif run not in alive:
            yield key, record


def _add_rows(store: Store, rows: list[tuple[Key, Record]], counts: Imported) -> None:
    """Write documents and host news that are new to the store, and visits that are new or newer."""
    known = {row.key: row for row in store.backend.get(key for key, _ in rows) if not row.is_pending}
    of_visits = [cast(int, key) for key, record in rows if isinstance(record, Visit)]
    store.urls.take(of_visits, (known[key] for key in of_visits if key in known))
    for key, record in rows:
        if isinstance(record, Visit):
            counts.urls += store.urls.adopt(cast(int, key), record) and not record.name
        elif key in known:
            counts.known += isinstance(record, Signature)
        else:
            counts.documents += isinstance(record, Signature)
            store.backend.write([Entry(key, record, *records.postings(record))])


def _merged(run: Run, known: Run | None) -> Run:
    """Merge the imported record of a run with that of this store, if any. The run must not be alive here."""
    if known is None:
        return run
    # The run continued in the other store. If it is resumed here, it must not use the same row numbers again.
    if run.sealed > known.sealed:
        return replace(run, forgotten=tuple(dict.fromkeys(known.forgotten + run.forgotten)))
    # If the imported run is open, open it here too. Then it is ended as a dead run, and its rows with it.
    return replace(known, closed=None if run.closed is None else known.closed)
