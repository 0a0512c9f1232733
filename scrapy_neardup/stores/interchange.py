"""What a store holds as rows that become lines of JSON, whatever kind of store it is: `export` and `import`. No I/O.

Every row has a `type`:
- `store`, the first: `format`, the `schemes` that its fingerprints depend on, detectors with indexes of their `own`,
  and how many documents and links follow,
- `run`: a `Run`,
- `document`: its `key` (run, segment, place), `url`, `title`, `first_seen`, `layout`, `identity`, `fingerprints` by
  detector (those that are kept as they are), `keys` (of all others that must be equal, the 36 bits that find them), and
  the sketch,
- `link`: `url`, the key of its `document` or null, and the other fields of a `Link`; `segment`: where it was written,
- `trial`: evidence on host mirrors, and the `run` that found it; `host`: since when one is known,
- `end`, the last: so that a file that was cut off is known for one.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..fingerprints.sketch import BINS, FIGURES, Sketch
from ..index.packed import HASH_BITS
from ..index.relations import NOBODY, Outcome, Row
from ..signature import TITLE, Evidence, Key, Link, Signature
from .damage import DAMAGE
from .runs import Run

FORMAT = 2
_PLACES = 2**16  # in a segment
_FAR = 253_370_764_800.0  # the year 9999 begins: of what is later not every time zone can show the date

Record = dict[str, Any]
_Content = TypeVar("_Content")


class Head(NamedTuple):
    """What the first row says."""

    schemes: Mapping[str, str]
    own: Collection[str]
    documents: int
    links: int


class Stored(NamedTuple):
    """A document with what finds it."""

    signature: Signature
    keys: tuple[int, ...]


class Led(NamedTuple):
    """A link; its document is given by key, and not yet in it."""

    link: Link
    document: Key | None
    segment: tuple[str, int]


class Found(NamedTuple):
    """Evidence on host mirrors."""

    run: str
    trial: Row


class Met(NamedTuple):
    """A host, and since when it is known."""

    name: str
    when: float


class End(NamedTuple):
    """The last row."""


Content: TypeAlias = Run | Stored | Led | Found | Met | End


def head_row(head: Head) -> Record:
    return {"type": "store", "format": FORMAT, **head._asdict(), "own": sorted(head.own)}


def run_row(run: Run) -> Record:
    return {"type": "run", **asdict(run)}


def document_row(signature: Signature, kept: Collection[str], keys: Iterable[int]) -> Record:
    """Return the row of a written document; `kept`: whose fingerprints are given as they are."""
    sketch = signature.sketch
    return {
        "type": "document",
        "key": signature.key,
        "url": signature.url,
        "first_seen": signature.first_seen,
        "title": signature.title,
        "layout": signature.layout,
        "identity": signature.identity,
        "fingerprints": {name: values for name, values in signature.fingerprints.items() if name in kept},
        "keys": sorted(keys),
        "sketch": [*sketch[:3], *(b64encode(part).decode() for part in sketch[3:])],
    }


def link_row(link: Link, document: Key | None, segment: tuple[str, int]) -> Record:
    return {
        "type": "link",
        "url": link.url,
        "document": document,
        "mirror": link.mirror,
        "seen": link.seen,
        "size": link.size,
        "evidence": link.evidence and link.evidence._asdict(),
        "firm": link.firm,
        "segment": segment,
    }


def trial_row(run: str, row: Row) -> Record:
    return {"type": "trial", "run": run, **row._asdict()}


def host_row(name: str, met: float) -> Record:
    return {"type": "host", "name": name, "met": met}


END: Record = {"type": "end"}


def read_head(row: Record) -> Head:
    """Return what the first row says. Raise ValueError where it is none, or of a newer version."""
    if row.get("type") != "store":
        raise ValueError("it does not begin as an export does, with a row of type 'store'")
    if row.get("format") != FORMAT:
        raise ValueError(f"its format is {row.get('format')!r}; allowed is {FORMAT}")
    return _read(_head, row)


def read_row(row: Record) -> Content:
    """Return what any other row says. Raise ValueError where that can't be kept."""
    kind = str(row.get("type"))
    if kind not in _READ:
        raise ValueError(f"a row of type {kind!r}; allowed are {', '.join(_READ)}")
    return _read(_READ[kind], row)


def _read(read: Callable[[Record], _Content], row: Record) -> _Content:
    try:
        return read(row)
    except KeyError as error:
        raise ValueError(f"a {row['type']} without {error}") from error
    except DAMAGE as error:
        raise ValueError(f"no {row['type']}: {error}") from error


def _head(row: Record) -> Head:
    return Head(dict(row["schemes"]), list(row["own"]), int(row["documents"]), int(row["links"]))


def _run(row: Record) -> Run:
    run = Run.parsed({name: value for name, value in row.items() if name != "type"})
    _integers((run.sealed, *chain(*run.forgotten)), 32)
    _integers(run.stats.values(), 64)
    return replace(run, started=_time(run.started), closed=None if run.closed is None else _time(run.closed))


def _document(row: Record) -> Stored:
    fingerprints = {str(name): _integers(values, 64) for name, values in row["fingerprints"].items()}
    tokens, shingles, figures, codes, sample = row["sketch"]
    _integers((tokens, shingles, figures), 32)
    sketch = Sketch(tokens, shingles, figures, b64decode(codes, validate=True), b64decode(sample, validate=True))
    if len(sketch.codes) != BINS:
        raise ValueError(f"its sketch has {len(sketch.codes)} bytes")
    if len(sketch.figure_sample) != 2 * min(figures, FIGURES):
        raise ValueError(f"its sketch has {len(sketch.figure_sample)} bytes of {figures} figures")
    layout, identity = _integers((row["layout"], row["identity"]), 64)
    url, seen, key = _text(row["url"]), _time(row["first_seen"]), _key(row["key"])
    title = (_text(row["title"]) or "")[:TITLE]
    signature = Signature(url, fingerprints, sketch, seen, layout, key, title=title, identity=identity)
    return Stored(signature, _integers(row["keys"], HASH_BITS))


def _link(row: Record) -> Led:
    evidence = _evidence(row["evidence"]) if row["evidence"] else None
    [size] = _integers((row["size"],), 64)
    url, seen = _text(row["url"]) or "", _time(row["seen"])
    link = Link(url, None, bool(row["mirror"]), seen, size, evidence, bool(row["firm"]))
    run, number, _ = _key((*row["segment"], 0))
    return Led(link, row["document"] and _key(row["document"]), (run, number))


def _evidence(row: Record) -> Evidence:
    found = Evidence(**row)
    shares = found.resemblance, found.containment
    if not (all(0 <= share <= 1 for share in shares) and 0 <= found.length_ratio < 1 << 32):
        raise ValueError(f"{row!r} is no evidence")
    if found.hamming is not None and _integers((found.hamming,), 7) > (64,):
        raise ValueError(f"{found.hamming} of 64 bits differ")
    return found._replace(detector=str(found.detector), kind=_text(found.kind))


def _trial(row: Record) -> Found:
    sites, prefixes, endings = (_pair(row[name]) for name in ("sites", "prefixes", "endings"))
    outcome, holder = Outcome(row["outcome"]), range(NOBODY + 1).index(row["holder"])
    path, content, branch = _integers((row["path"], row["content"], row["branch"]), 64)
    seen, claimed = _time(row["seen"]), bool(row["claimed"])
    trial = Row(sites, prefixes, endings, path, outcome, content, branch, holder, seen, claimed)
    return Found(str(row["run"]), trial)


def _pair(value: Any) -> tuple[str, str]:
    first, second = map(str, value)
    return first, second


def _host(row: Record) -> Met:
    return Met(str(row["name"]), _time(row["met"]))


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _integers(values: Iterable[Any], bits: int) -> tuple[int, ...]:
    found = tuple(values)
    if not all(isinstance(value, int) and 0 <= value < 1 << bits for value in found):
        raise ValueError(f"{found!r}: allowed are whole numbers of {bits} bits")
    return found


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _FAR:
        raise ValueError(f"{value!r} is no time: allowed are seconds since the epoch, before the year 9999")
    return float(value)


def _key(value: Any) -> Key:
    run, number, place = value
    if not (isinstance(run, str) and all(isinstance(each, int) for each in (number, place))):
        raise ValueError(f"{value!r} is no key of a document")
    if not (0 <= number < 2**32 and 0 <= place < _PLACES):
        raise ValueError(f"{value!r} is no key of a document")
    return run, number, place


_READ: Mapping[str, Callable[[Record], Content]] = {
    "run": _run,
    "document": _document,
    "link": _link,
    "trial": _trial,
    "host": _host,
    "end": lambda _: End(),
}
