"""The rows of a store as lines of JSON: `export` and `import`. No I/O.

Every line has a `type`:
- `store`, the first: `format`, the `schemes` that its fingerprints depend on, how many documents and URLs it knows;
- `run`: a `Run`;
- `document`, `link`, `host`: the `key` of the row (`RUN/NUMBER`), and what `records` keeps by the names of the fields;
- `end`, the last: so that a file that was cut off is known for one.

What is read comes from a stranger, so all of it is checked: nothing that could not be kept becomes a record.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..fingerprints.sketch import BINS, FIGURES, Sketch
from ..index.relations import NOBODY, Outcome
from ..index.relations import Row as Trial
from ..signature import TITLE, Evidence, Link, Signature, Visit
from .base import DOCUMENT, HOST, LINK, RUN, HostNews
from .damage import DAMAGE
from .records import id_of, key_of, kind_of, place_of
from .runs import Run, is_id

FORMAT = 3
_NUMBER = 40  # bits: of a row in its run
_FAR = 253_370_764_800.0  # the year 9999 begins: of what is later not every time zone can show the date

Line: TypeAlias = dict[str, Any]
_Read = TypeVar("_Read")


class Head(NamedTuple):
    """What the first line says."""

    schemes: Mapping[str, str]
    documents: int
    links: int
    """URLs of which it is known what they led to."""


class Content(NamedTuple):
    """What any line after it says."""

    key: str
    """Of the row; `end` for the last line."""
    record: Run | Signature | Link | HostNews | None


END = "end"


def head_line(head: Head) -> Line:
    return {"type": "store", "format": FORMAT, **head._asdict()}


def end_line() -> Line:
    return {"type": END}


def line_of(key: str, record: object) -> Line:
    """Return the line of a row."""
    if isinstance(record, Run):
        return {"type": RUN, **record.dump()}
    line = {"type": kind_of(key), "key": id_of(key)}
    if isinstance(record, Signature):
        return line | _told_of_document(record)
    if isinstance(record, Link):
        return line | _told_of_link(record)
    assert isinstance(record, HostNews)
    return line | {"trials": record.trials, "met": record.met}


def _told_of_document(signature: Signature) -> Line:
    sketch = signature.sketch
    return {
        "url": signature.url,
        "title": signature.title,
        "first_seen": signature.first_seen,
        "layout": signature.layout,
        "identity": signature.identity,
        "fingerprints": {name: values for name, values in signature.fingerprints.items() if values},
        "sketch": [*sketch[:3], *(b64encode(part).decode() for part in sketch[3:])],
        "own": signature.own,
    }


def _told_of_link(link: Link) -> Line:
    return {
        "url": link.url,
        "document": link.target,
        "mirror": link.mirror,
        "seen": link.seen,
        "size": link.size,
        "firm": link.firm,
        "evidence": link.evidence and link.evidence._asdict(),
    }


def read_head(line: Line) -> Head:
    """Return what the first line says. Raise ValueError where it is none, or of another version."""
    if line.get("type") != "store":
        raise ValueError("it does not begin as an export does, with a row of type 'store'")
    if line.get("format") != FORMAT:
        raise ValueError(f"its format is {line.get('format')!r}; allowed is {FORMAT}")
    return _checked(_head, line)


def read_line(line: Line) -> Content:
    """Return what any other line says. Raise ValueError where that can't be kept."""
    kind = str(line.get("type"))
    if kind not in _READ:
        raise ValueError(f"a row of type {kind!r}; allowed are {', '.join(_READ)}")
    return _checked(_READ[kind], line)


def _checked(read: Callable[[Line], _Read], line: Line) -> _Read:
    try:
        return read(line)
    except KeyError as error:
        raise ValueError(f"a {line['type']} without {error}") from error
    except DAMAGE as error:
        raise ValueError(f"no {line['type']}: {error}") from error


def _head(line: Line) -> Head:
    documents, links = _integers((line["documents"], line["links"]), 64)
    return Head({str(name): str(scheme) for name, scheme in line["schemes"].items()}, documents, links)


def _run(line: Line) -> Content:
    run = Run.parsed({name: value for name, value in line.items() if name != "type"})
    _integers((run.sealed, *chain(*run.forgotten)), _NUMBER)
    _integers(map(abs, (run.documents, run.urls)), _NUMBER)  # below 0 where it forgot what others had
    _integers(run.stats.values(), 63)
    closed = None if run.closed is None else _time(run.closed)
    run = replace(run, started=_time(run.started), closed=closed, paused=_time(run.paused))
    return Content(f"{RUN}/{run.id}", run)


def _document(line: Line) -> Content:
    key, url, own = _key(line), line["url"], line["own"]
    layout, identity = _integers((line["layout"], line["identity"]), 64)
    prints = {str(name): _integers(values, 64) for name, values in line["fingerprints"].items()}
    record = Signature(
        None if url is None else _text(url), prints, _sketch(*line["sketch"]), _time(line["first_seen"]), layout,
        _text(line["title"])[:TITLE], identity, id_of(key), None if own is None else _visit(*own),
    )  # fmt: skip
    if own and not url:
        raise ValueError("a visit of its own URL, and no such URL")
    return Content(key, record)


def _sketch(tokens: Any, shingles: Any, figures: Any, codes: str, sample: str) -> Sketch:
    _integers((tokens, shingles, figures), 32)
    sketch = Sketch(tokens, shingles, figures, b64decode(codes, validate=True), b64decode(sample, validate=True))
    if len(sketch.codes) != BINS:
        raise ValueError(f"its sketch has {len(sketch.codes)} bytes")
    if len(sketch.figure_sample) != 2 * min(figures, FIGURES):
        raise ValueError(f"its sketch has {len(sketch.figure_sample)} bytes of {figures} figures")
    return sketch


def _visit(seen: Any, size: Any) -> Visit:
    return Visit(_time(seen), *_integers((size,), 63))


def _link(line: Line) -> Content:
    key, target = _key(line), line["document"]
    seen, size = _visit(line["seen"], line["size"])
    evidence = None if line["evidence"] is None else _evidence(line["evidence"])
    mirror, firm = _boolean(line["mirror"]), _boolean(line["firm"])
    document = None if target is None else _id(target)
    return Content(key, Link(_text(line["url"]), None, mirror, seen, size, evidence, firm, document, key))


def _evidence(told: Line) -> Evidence:
    found = Evidence(**told)
    shares = found.resemblance, found.containment
    if not (all(0 <= share <= 1 for share in shares) and 0 <= found.length_ratio < 1 << 32):
        raise ValueError(f"{told!r} is no evidence")
    if found.hamming is not None and _integers((found.hamming,), 7) > (64,):
        raise ValueError(f"{found.hamming} of 64 bits differ")
    return found._replace(detector=_text(found.detector), kind=None if found.kind is None else _text(found.kind))


def _host(line: Line) -> Content:
    met = {str(name): _time(when) for name, when in line["met"].items()}
    return Content(_key(line), HostNews([_trial(*trial) for trial in line["trials"]], met))


def _trial(
    sites: Any, prefixes: Any, endings: Any, path: Any, outcome: Any, content: Any, branch: Any, holder: Any,
    seen: Any, claimed: Any,
) -> Trial:  # fmt: skip
    _integers((path, content, branch), 64)
    first, second = _pair(sites)
    holders = range(NOBODY + 1)
    return Trial((first, second), _pair(prefixes), _pair(endings), path, int(Outcome(outcome)), content, branch,
                 holders.index(holder), _time(seen), _boolean(claimed))  # fmt: skip


def _pair(value: Any) -> tuple[str, str]:
    first, second = map(_text, value)
    return first, second


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _integers(values: Iterable[Any], bits: int) -> tuple[int, ...]:
    found = tuple(values)
    if not all(type(value) is int and 0 <= value < 1 << bits for value in found):
        raise ValueError(f"{found!r}: allowed are whole numbers of {bits} bits")
    return found


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _FAR:
        raise ValueError(f"{value!r} is no time: allowed are seconds since the epoch, before the year 9999")
    return float(value)


def _key(line: Line) -> str:
    return f"{line['type']}/{_id(line['key'])}"


def _id(value: Any) -> str:
    """Return what is an id: `RUN/NUMBER`, as `records.key_of` writes it."""
    run, number = place_of(value) if isinstance(value, str) and "/" in value else ("", 0)
    if not (is_id(run) and 0 < number < 1 << _NUMBER and key_of(DOCUMENT, run, number) == f"{DOCUMENT}/{value}"):
        raise ValueError(f"{value!r} is no key of a row")
    return str(value)


_READ: Mapping[str, Callable[[Line], Content]] = {
    RUN: _run,
    DOCUMENT: _document,
    LINK: _link,
    HOST: _host,
    END: lambda _: Content(END, None),
}
