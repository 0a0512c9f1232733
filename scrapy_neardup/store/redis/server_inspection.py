"""Verify the rows of all namespaces of a server, and their index. Read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ...progress import watched
from .. import records
from ..interface import StoreError
from ..records import DAMAGE, DOCUMENT, HOST, META, RUN, VISIT, Record, postings
from ..verification import Survey, Verification
from .backend import RedisBackend
from .encoding import KEY, PLACE, SIMHASH, packed, pieces, place
from .namespaces import namespaces
from .server import Server

AT_ONCE = 200  # rows to verify at a time
_KINDS = (META, RUN, VISIT, DOCUMENT, HOST)  # visits before documents, since a document is written before them
_HASHES = ("names", "last", "pending", "run", "meta", "host")
_TYPES = {**dict.fromkeys(_HASHES, "hash"), "news": "stream"}


def inspect(address: str, survey: Survey) -> None:
    """Verify all namespaces of a server. Raise StoreError if it can't be reached."""
    names = namespaces(address)
    survey.read["namespaces"] = len(names)
    for name in names:
        backend = RedisBackend(address, name, writes=False)
        try:
            _inspect_namespace(backend, Verification(survey, name))
        finally:
            backend.abandon()


def _inspect_namespace(backend: RedisBackend, rows: Verification) -> None:
    _check_types(backend.server, rows)
    is_quiet = _is_quiet(backend)
    for kind in _KINDS:
        try:
            _inspect_kind(backend, kind, rows)
        except (StoreError, *DAMAGE) as error:
            backend.server.run([("PING",)])  # raises if the server is down
            rows.lose(error, f"{kind}/…")
    if is_quiet and _is_quiet(backend):
        rows.check()


def _is_quiet(backend: RedisBackend) -> bool:
    """Return whether no living process has a run open."""
    try:
        return not any(map(backend.is_held, backend.names()))
    except (StoreError, *DAMAGE):
        return False


def _check_types(server: Server, rows: Verification) -> None:
    """Add findings for Redis keys of a wrong type."""
    told = server.run([("TYPE", server.key(name)) for name in _TYPES])
    for (name, wanted), found in zip(_TYPES.items(), told, strict=True):
        if found.decode() not in (wanted, "none"):
            what = f"key {server.key(name)!r} is a {found.decode()}, not a {wanted}"
            rows.note(what, "the store is refused, or can't be written")


# Rows


def _inspect_kind(backend: RedisBackend, kind: str, rows: Verification) -> None:
    scanned = iter(watched(backend.scan(kind), "rows"))
    while some := list(islice(scanned, AT_ONCE)):
        taken = {row.key: rows.take(row.key, row.value) for row in some}
        if kind in (DOCUMENT, VISIT):
            _inspect_lists(backend, {key: record for key, record in taken.items() if record}, rows)


def _inspect_lists(backend: RedisBackend, taken: Mapping[str, Record], rows: Verification) -> None:
    """Add findings for rows that the index does not find.

    These rows are read again first, since another process may have rewritten or deleted them.
    """
    if lost := _unfound(backend.server, taken):
        again = {row.key: records.load(row.key, row.value) for row in backend.get(lost) if isinstance(row.value, bytes)}
        costs = "copies of their pages are stored again, or their URLs are fetched again"
        for key in _unfound(backend.server, again):
            rows.note("rows are missing in their index", costs, count=1, example=repr(key))


def _unfound(server: Server, rows: Mapping[str, Record]) -> list[str]:
    """Return the keys of rows that are missing in at least one of their lists in the index."""
    leading = {key: dict(_leading(key, record)) for key, record in rows.items()}
    lists = _lists(server, list({name for each in leading.values() for name in each}))
    return [key for key, each in leading.items() if not all(entry in lists[name] for name, entry in each.items())]


def _leading(key: str, record: Record) -> Iterator[tuple[bytes, bytes]]:
    """Yield, for each list of the index that must contain a row, the name of the list and the row's entry in it."""
    (keys, simhash), at = packed(postings(record)), place(key)
    yield from ((b"k" + each, at) for each in pieces(keys, KEY))
    yield from ((b"n" + bytes([n]) + block, at + simhash) for n, block in enumerate(pieces(simhash, 2)))


def _lists(server: Server, names: Sequence[bytes]) -> dict[bytes, set[bytes]]:
    """Return the entries of each list by the name of the list. A list that can't be read counts as empty."""
    root = server.root.encode()
    asked = [("HGET", root + name[:4], name[4:]) if name[:1] == b"k" else ("GET", root + name) for name in names]
    found = dict(zip(names, server.run(asked, checks=False), strict=True))
    long = [name for name, told in found.items() if told == b""]
    found |= zip(long, server.run([("GET", root + b"K" + name[1:]) for name in long], checks=False), strict=True)
    sizes = {b"k": PLACE, b"n": PLACE + SIMHASH}
    return {
        name: {*pieces(told, sizes[name[:1]])} if isinstance(told, bytes) else set() for name, told in found.items()
    }
