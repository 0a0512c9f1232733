"""Define the rows of a store: their keys, their records as bytes, and their keys in the index. No I/O.

The key of a document or visit is an integer of 64 bits. A document's key is its *id*: the code of the run that wrote
it (31 bits), and the number of the row in this run (32 bits). A visit's key is negative: a hash of its URL or name.
All other keys are text: `host/ID`, `run/RUN` and `meta/NAME`.

A value is a CRC-32 (4 bytes, big-endian) of the key and the body, then the body in MessagePack. MessagePack holds only
data, so a stranger's file can't run code. The body is a list of the fields in `FIELDS`, or a map for the kind `meta`:

- document: `record` are the bytes that `fingerprints/record.py` describes; `sample` is true for a sample of its host;
- visit (`signature.Visit`): `target` is the id of its document, or nil for a URL to be fetched each time. Without
  `url` and `name`, the URL is the document's own. `at` is an id like that of a document, whose run was the first to see
  the visit's state (see `visits.py`); 0 stands for the id in `target`. `before` has the fields of the visit
  before that run. Fields at the end of the list are left out if they have their default;
- host: `trials` has the fields of each `hosts.Trial`; `met` maps each new host to the time of its first page;
  `counters` has lists `[host, hashed name of a fact, whether it is a counter]`.
"""

from __future__ import annotations

import hashlib
import re
import struct
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import chain
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgpack
from msgpack.exceptions import UnpackException

from ..facts import SIZE
from ..fingerprints.hashes import hash_text
from ..fingerprints.record import Decoded, salt, spread
from ..hosts import Outcome, Trial
from ..signature import Evidence, Signature, Visit
from ..text.urls import canonical_url

DOCUMENT, VISIT, RUN, HOST, META = "document", "visit", "run", "host", "meta"
MADE = "meta/made"  # the key of the record of the store
FORMAT = 22  # the version of the rows and their fields
FIELDS = {
    RUN: ("started", "closed", "sealed", "paused", "forgotten", "lost", "stats", "writer", "fields"),
    DOCUMENT: ("url", "title", "first_seen", "record", "label", "sample"),
    VISIT: ("target", "size", "seen", "url", "is_copy", "loose", "evidence", "at", "before", "name"),
    HOST: ("trials", "met", "counters"),
}
_UNREADABLE = struct.error, UnpackException
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, *_UNREADABLE)
"""Exceptions to catch when reading bytes that may be damaged, such as truncated JSON or `1e999` for a number."""

_DEFAULTS: tuple[Any, ...] = (None, 0, 0, "", False, False, None, 0, None, "")  # of the fields of a visit
_ERRORS = "surrogatepass"  # URLs and titles may contain lone surrogates
_ROWS = 1 << 32  # the maximum number of rows of a run
_IDS = {  # names of rows; that of a run is in a file name too, so a hostile one must not lead out of the folder
    RUN: re.compile(r"[\w.-]{1,200}"),
    HOST: re.compile(r"[0-7][0-9a-f]{15}"),
    META: re.compile("made"),
}
_NAMES = ("copy ", "delivery ", "item ", "own delivery ")  # the beginnings of names of visits; no URL begins so
_OF_NAME = 1 << 62  # this bit is 1 in the hash of a name, and 0 in that of a URL, so that URLs can be counted
Key: TypeAlias = int | str
_END = (1 << 63) - 1  # above the key of any document
COUNTED = {DOCUMENT: range(_END), VISIT: range(-1 << 63, -_OF_NAME)}
"""The keys of the rows that are counted: documents, and visits of URLs. Visits with a name are not counted."""


class FormatError(ValueError):
    """The store is of another version of the package."""


@dataclass(frozen=True)
class Run:
    """The stored record of a run: one opening of a store for writing or, if it was resumed, several.

    Its rows are numbered from 1. Times are in seconds since the epoch.
    """

    id: str
    started: float  # the time of the first opening
    closed: float | None = None  # the time of the end; None for an open or dead run
    sealed: int = 0
    """The highest row number when the run was last closed. Rows up to it are kept if the resumed run dies."""
    paused: float = 0.0  # the time of the last clean end; 0 if there was none
    forgotten: tuple[tuple[int, int], ...] = ()  # ranges of forgotten rows, as first and last number
    lost: tuple[tuple[float, float], ...] = ()  # periods whose rows were lost; deliveries in them do not count
    stats: Mapping[str, int] = field(default_factory=dict)
    """The run's stats in Scrapy, without `neardup/`. For a resumed run, the sums over all openings."""
    writer: str = ""  # the spider or command that last opened the run; "" for another program
    fields: list[str] = field(default_factory=list)  # names of fields with facts, hashed in documents

    def ended(self, last: int, *, forget: bool = False) -> Run:
        """Return this record as ended, ending at row `last`. With `forget`, rows after `sealed` are forgotten."""
        now = max(self.started, time.time())
        lost = ((self.sealed + 1, last),) if forget and last > self.sealed else ()
        paused = self.paused if forget else now
        forgotten = tuple(dict.fromkeys(self.forgotten + lost))  # once each: an earlier end may have been cut off
        periods = (*self.lost, (self.paused, now)) if forget else self.lost
        return replace(
            self, closed=now, sealed=max(self.sealed, last), paused=paused, forgotten=forgotten, lost=periods
        )

    def with_stats(self, stats: Mapping[str, int], fields: Iterable[str] = ()) -> Run:
        """Add the stats and the names of fields of the current opening. Return the new record."""
        sums = {name: self.stats.get(name, 0) + int(count) for name, count in stats.items()}  # a bool becomes a number
        return replace(self, stats={**self.stats, **sums}, fields=sorted({*self.fields, *fields}))


@dataclass
class HostNews:
    """The record of a `host` row: what a run has learned about hosts since its last row of this kind."""

    trials: list[Trial] = field(default_factory=list)
    met: dict[str, float] = field(default_factory=dict)  # the time of the first page of each new host
    counters: list[tuple[str, int, bool]] = field(default_factory=list)  # host, hashed name, whether it is a counter


Record: TypeAlias = Signature | Visit | Run | HostNews | Mapping[str, Any]
"""The content of a row: a document, a visit, a run, host news, or JSON data (kind `meta`)."""


# Keys


def canonical_place(place: str) -> str:
    """Return the canonical form of a URL, or the name of a visit as it is."""
    return place if place.startswith(_NAMES) else canonical_url(place)


@lru_cache(maxsize=1024)
def visit_key(place: str) -> int:
    """Return the key of the visit of a URL, in any spelling, or of the visit with a name."""
    hashed = hash_text(canonical_place(place)) & (_OF_NAME - 1)
    return (hashed | _OF_NAME if place.startswith(_NAMES) else hashed) - (1 << 63)


def kind_of(key: Key) -> str:
    if isinstance(key, int):
        return DOCUMENT if key >= 0 else VISIT
    return str(key).partition("/")[0]  # in a damaged file, a key may have any type


def name_of(key: Key) -> Key:
    """Return a key without its kind, such as RUN for `run/RUN`. Return an integer as it is."""
    return key if isinstance(key, int) else key.partition("/")[2]


def key_of(kind: str, name: Key) -> Key:
    """Return the key of a row, given its kind and name; see `name_of`. Raise ValueError for an impossible key."""
    key = name if kind in (DOCUMENT, VISIT) else f"{kind}/{name}"
    if not (is_key(key) and kind_of(key) == kind):
        raise ValueError(f"its key is {name!r:.80}; allowed is the id of a document or run, or the hash of a visit")
    return key


def is_key(key: object) -> bool:
    """Return whether a store may have a row with this key."""
    if type(key) is int:
        return -1 << 63 <= key < 0 or is_id(key)
    kind, _, name = str(key).partition("/")
    return kind in _IDS and _IDS[kind].fullmatch(name) is not None


def bounds(kind: str, run: str = "") -> tuple[Key, Key]:
    """Return two keys: one before all rows of a kind, and one after them. SQLite sorts integers before text.

    With `run`, the rows are only the documents or host news of this run.
    """
    if kind == VISIT:
        return COUNTED[kind].start, 0
    if kind == DOCUMENT:
        return (code(run) << 32, code(run) + 1 << 32) if run else (0, _END)
    first = f"{kind}/{code(run):08x}" if run else f"{kind}/"
    return first, first[:-1] + chr(ord(first[-1]) + 1)


@cache
def code(run: str) -> int:
    """Return the code of a run: 31 bits of a hash of its id. Two runs of a store can't have the same code."""
    return int.from_bytes(hashlib.blake2b(run.encode(), digest_size=4).digest(), "big") >> 1


def id_of(code: int, number: int) -> int:
    """Return the id of a row, given the code of its run and its number from 1. Raise ValueError for too many rows."""
    if number >= _ROWS:
        raise ValueError(f"the run with the code {code:08x} has too many rows")
    return code << 32 | number


def is_id(value: object) -> bool:
    """Return whether a row may have this id."""
    return type(value) is int and 0 < value < 1 << 63 and number_of(value) > 0


def code_of(id: int) -> int:
    return id >> 32


def number_of(id: int) -> int:
    return id & _ROWS - 1


def id_in(key: Key) -> int:
    """Return the id in the key of a document or of host news."""
    return key if isinstance(key, int) else int(key.partition("/")[2], 16)


def origin(key: Key, record: Record) -> int:
    """Return an id with the code of the run that wrote a document, host news, or the state of a visit."""
    return record.at if isinstance(record, Visit) else id_in(key)


# The index


@lru_cache(maxsize=1024)
def index_key(kind: str, name: str | int) -> int:
    """Return an index key for another lookup than by fingerprint. The kinds of lookups, and what `name` is for each:

    - `page`: the items of a page that gave several, by the canonical URL of the page;
    - `host`: the documents that are samples of a host, by the name of the host;
    - `run`: the visits whose state a run saw first, by the code of the run;
    - `mirrors`: the visits that are copies of a document, by the id of the document;
    - `links`: the visits of a document that are no copies, without that of its own URL, by the id of the document.
    """
    return spread((hash_text(name) if isinstance(name, str) else name) ^ salt(kind))


def visit_keys(visit: Visit) -> array[int]:
    """Return the index keys of a stored visit; none if the visit and its document have one URL and one run."""
    is_own, run = not (visit.url or visit.name), code_of(visit.at)
    if is_own and code_of(visit.target or 0) == run:
        return array("Q")
    keys = array("Q", [index_key("run", run)])
    if visit.target and not is_own:
        keys.append(index_key("mirrors" if visit.is_copy else "links", visit.target))
    return keys


def postings(record: Record) -> tuple[array[int], int | None]:
    """Return the keys and the SimHash by which the index finds a record. Only documents and visits have any."""
    if isinstance(record, Signature):
        # These include the keys of detectors with an index in RAM, which are never looked up.
        keys = array("Q", record.index_keys)
        if record.url and record.label:
            keys.append(index_key("page", canonical_url(record.url)))
        if record.url and record.sample:
            keys.append(index_key("host", record.home))
        return keys, record.simhash
    return visit_keys(record) if isinstance(record, Visit) else array("Q"), None


# Bytes


def dump(key: Key, record: Record) -> bytes:
    """Encode a record as the value of the row with this key."""
    fields = _visit_body(record) if isinstance(record, Visit) else body_of(key, record)
    body: bytes = msgpack.packb(fields, unicode_errors=_ERRORS)
    return _checksum(key, body) + body


def _checksum(key: Key, body: bytes | memoryview) -> bytes:
    return zlib.crc32(body, zlib.crc32(str(key).encode(errors=_ERRORS))).to_bytes(4, "big")


def is_intact(key: Key, value: object) -> bool:
    return isinstance(value, bytes) and value[:4] == _checksum(key, value[4:])


def load(key: Key, value: bytes) -> Any:
    """Decode the value of the row with this key. Return the record. Raise ValueError for a damaged row.

    A visit is returned as it is stored: without its document, and without its URL if that is the document's own.
    """
    body = memoryview(value)[4:]
    if value[:4] != _checksum(key, body):
        raise ValueError(f"row {key!r} is damaged: its checksum does not match")
    try:
        return READERS[kind_of(key)](key, msgpack.unpackb(body, unicode_errors=_ERRORS, strict_map_key=False))
    except DAMAGE as error:  # the checksum matches, so the writer was faulty or hostile
        raise ValueError(f"row {key!r} is damaged: {' '.join(str(error).split())}") from error


def body_of(key: Key, record: Record) -> Any:
    """Return the body of a record, made of values that MessagePack can encode."""
    kind = kind_of(key)
    if kind == META:
        return record
    if isinstance(record, Visit):
        return [*(body := _visit_body(record)), *_DEFAULTS[len(body) :]]
    return [getattr(record, name) for name in FIELDS[kind]]


def _visit_body(visit: Visit) -> list[Any]:
    body = [
        visit.target, visit.size, visit.seen, visit.url, visit.is_copy, visit.loose, visit.evidence,
        0 if visit.at == visit.target else visit.at, visit.before and _visit_body(visit.before), visit.name,
    ]  # fmt: skip
    while body and body[-1] == _DEFAULTS[len(body) - 1]:
        body.pop()
    return body


def _document(key: Any, body: Any) -> Signature:
    url, title, first_seen, packed, label, sample = body
    Decoded(packed).check()
    return Signature(url, packed, first_seen, title, label, key, sample=sample)


def _visit(key: Any, body: Any) -> Visit:
    fields: list[Any] = [*body, *_DEFAULTS[len(body) :]]
    target, size, seen, url, is_copy, loose, evidence, at, before, name = fields
    found, earlier = Evidence(*evidence) if evidence else None, _visit(key, before) if before else None
    return Visit(url, None, is_copy, seen, size, found, loose, name, target, at or target or 0, earlier)


def _host(key: Any, body: Any) -> HostNews:
    trials, met, counters = body
    return HostNews([_trial(*trial) for trial in trials], dict(met), [(host, fact, so) for host, fact, so in counters])


def _trial(sites: Any, prefixes: Any, endings: Any, path: Any, outcome: Any, *rest: Any) -> Trial:
    return Trial(tuple(sites), tuple(prefixes), tuple(endings), path, int(Outcome(outcome)), *rest)


def _run(key: Any, body: Any) -> Run:
    started, closed, sealed, paused, forgotten, lost, *counts = body
    ranges, periods = (tuple((first, last) for first, last in each) for each in (forgotten, lost))
    return Run(str(name_of(key)), started, closed, sealed, paused, ranges, periods, *counts)


READERS: dict[str, Callable[[Key, Any], Record]]
READERS = {DOCUMENT: _document, VISIT: _visit, HOST: _host, RUN: _run, META: lambda key, body: dict(body)}
"""For each kind, the function that makes the record of a row from the key and the body."""


# The record of a store


def merged(stored: Mapping[str, Any] | None, schemes: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of a store with `schemes` added. `stored` is its present record; None for a new store.

    A scheme says how something is made, such as a detector's fingerprints. Raise FormatError if `stored` has another
    format; ValueError if it is damaged, or has another scheme under the same name.
    """
    try:
        format = int(stored["format"]) if stored else FORMAT
        known = dict(stored["schemes"]) if stored else {}
        "".join(chain.from_iterable(known.items()))  # raises if one is no string
    except DAMAGE as error:
        raise ValueError(f"its record of schemes is damaged: {stored!r:.80}") from error
    if format != FORMAT:
        advice = "begin another store with NEARDUP_STORE, or use the version that wrote this one"
        raise FormatError(f"its format is {format}, of another version; allowed is {FORMAT}; {advice}")
    for name, scheme in known.items():
        if schemes.get(name, scheme) != scheme:
            raise ValueError(
                f"{name!r} was made as {scheme!r:.80}, and is now {schemes[name]!r}; restore its arguments in"
                " NEARDUP_DETECTORS, or begin another store with NEARDUP_STORE or NEARDUP_NAMESPACE; `scrapy neardup"
                " dedupe FEED… -o OUT --store NEW` fills a store from feeds with texts"
            )
    return {"format": FORMAT, "schemes": {**known, **schemes}}


_FAR = 253_370_764_800.0  # the beginning of the year 9999; some time zones can't show later dates
_ALLOWED = f"(int: from 0 to 2**64 - 1; float: from 0 to {_FAR:.0f}, the year 9999)"


def check(key: Key, record: Any) -> None:
    """Raise ValueError if a field of a record has an invalid value. The message names the first such field."""
    kind: Any = type(record)
    for id in (record.at, record.target) if isinstance(record, Visit) else ():
        if not (id is None or is_id(id)):
            raise ValueError(f"it names the row {id!r:.80}; allowed is the id of a document")
    if isinstance(record, Run) and max([record.sealed, *chain(*record.forgotten)]) >= _ROWS:
        raise ValueError(f"it has too many rows for a run; allowed are fewer than {_ROWS}")
    for name, hint in _hints(kind).items():
        if not _fits(value := getattr(record, name), hint):
            raise ValueError(f"its {name} is {value!r:.80}; allowed is {kind.__annotations__[name]} {_ALLOWED}")
    if isinstance(record, Signature) and len(record.facts) % SIZE:
        raise ValueError(f"its facts have {len(record.facts)} bytes; allowed is a multiple of {SIZE}")
    if isinstance(record, Visit):
        place = record.name or record.url
        if visit_key(place) != key if place else record.target is None:
            raise ValueError("its key is not the hash of its URL or name")
    if key == MADE:
        merged(record, {})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    kind, parts = get_origin(hint), get_args(hint)
    if hint is int:
        return type(value) is int and 0 <= value < 1 << 64
    if hint is float:
        return type(value) in (int, float) and 0 <= value < _FAR
    if kind in (UnionType, Union):
        return any(_fits(value, part) for part in parts)
    if kind in (dict, Mapping):
        return isinstance(value, Mapping) and all(_fits(n, str) and _fits(each, parts[1]) for n, each in value.items())
    if kind is list or ... in parts:
        return isinstance(value, kind) and all(_fits(each, parts[0]) for each in value)
    if kind is tuple:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    return isinstance(value, kind or hint) and all(_fits(getattr(value, n), each) for n, each in _hints(hint).items())
