"""Putting what a store's log holds into parts, and parts together: what `tidying` and `compact` do."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np
from filelock import FileLock

from ..detectors import SimHash
from ..index.packed import HASH_BITS, MOST, Entries, entries
from ..index.relations import WINDOW, Row
from ..signature import Link, Signature
from ..text.shapes import site
from . import manifest
from .base import StoreError
from .describing import count_urls
from .layered import LayeredStore
from .log import Log
from .merging import Notes, closed_up, joined, made
from .part import Part, spread
from .records import NOWHERE, VOID, document_rows, link_rows
from .search import salt
from .sqlite import SqliteStore

RATIO = 16  # by which a part outgrows the next one at least, so that there are few
WASTE = 1 / 3  # of all links and documents: forgotten or replaced ones, before the parts are closed up


@dataclass
class Incoming:
    """What comes into a store from elsewhere than its log, beside the documents and links that are put into its RAM."""

    keys: dict[Signature, Sequence[int]] = field(default_factory=dict)
    """The hashes that find a document whose fingerprints are not known."""
    trials: list[tuple[str, Row]] = field(default_factory=list)
    met: dict[str, float] = field(default_factory=dict)


def tidy(path: str, namespace: str, *, whole: bool = False) -> None:
    """Put what the log of a store holds into parts; `whole`: all into one that has nothing forgotten any more.

    For whoever has the lock. Raise StoreError where the store can't be read or written.
    """
    store = SqliteStore(path, (), namespace=unquote(namespace), run=None)
    try:
        absorb(store, path, namespace, None, whole=whole)
    finally:
        store.close()


def absorb(store: SqliteStore, path: str, namespace: str, incoming: Incoming | None, *, whole: bool = False) -> None:
    """Put what a store that is only looked into has in RAM into its parts, on disk too; `incoming`: an import's."""
    segments = list(store.batches)
    try:
        parts = _tidied(store, incoming or Incoming(), whole=whole)
        _exchange(path, namespace, parts, segments, imported=namespace if incoming else None)
    except OSError as error:
        why = error.strerror or error
        raise StoreError(f"store {path!r}: its parts can't be written: {why}; it was left as it is") from error


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Wait until no other process puts anything into a store's parts, and keep them off. Raise StoreError."""
    lock = FileLock(f"{path}.tidying.lock")
    try:
        lock.acquire()
    except OSError as error:
        why = error.strerror or error
        raise StoreError(f"store {path!r} can't be written: no file can be made beside it: {why}") from error
    try:
        yield
    finally:
        lock.release()


def _exchange(
    path: str, namespace: str, parts: Sequence[Part], segments: Iterable[tuple[str, int]], *, imported: str | None
) -> None:
    """Write parts that are in no file yet, name them in the log, and drop from it what is in them."""
    folder = manifest.folder(path)
    folder.mkdir(exist_ok=True)
    written = [
        part if part.file else part.write(folder / f"{part.first}-{uuid.uuid4().hex[:12]}.part", imported=imported)
        for part in parts
    ]
    log = Log(path)
    try:
        listed_before = {key.removeprefix("parts/") for key, _ in log.news("parts/").result()}
        dropped = ((f"segment/{namespace}/{run}/{number}", None) for run, number in segments)
        log.append_all([(f"parts/{namespace}", manifest.dump(written)), *dropped])
        log.sync(wait=True)
    finally:
        log.close()
    _clear_up(path, {segment for part in written for segment in part.all_segments()}, listed_before)


def _clear_up(path: str, known: Collection[tuple[str, int]], listed: Collection[str]) -> None:
    """Remove the files that no namespace names, and that may go; `listed`: those that named any before."""
    with closing(Log(path, writes=False)) as log:
        named = {name for _, value in log.news("parts/").result() for name in manifest.names(value)}
    for file in manifest.folder(path).iterdir():
        if file.name not in named and manifest.is_spare(file, known, listed):
            file.unlink(missing_ok=True)


def _tidied(store: SqliteStore, incoming: Incoming, *, whole: bool) -> list[Part]:
    """Return the parts of a store once all that is in RAM is in them."""
    parts = list(store.parts.all)
    fresh = _fresh_part(store, incoming, store.own_fingerprints)
    kept = len(parts)
    size = fresh.items
    while kept and (whole or parts[kept - 1].items <= RATIO * size) and parts[kept - 1].items + size < MOST:
        kept -= 1
        size += parts[kept].items
    merged = joined([*parts[kept:], fresh], _notes(store, parts[kept:], fresh, incoming))
    if kept == 0 and (whole or _is_wasteful(store, merged)):
        merged = _closed_up(store, merged, incoming)
    return [*parts[:kept], merged]


def _fresh_part(store: LayeredStore, incoming: Incoming, own: frozenset[str]) -> Part:
    """Return a part of the documents and links in RAM."""
    segments = list(store.batches) or [("", 0)]
    written = [
        (signature, at)
        for at, batch in enumerate(store.batches.values())
        for signature in batch.signatures
        if store.fresh.holds(signature) and signature.number is None
    ]
    first = store.parts.last
    numbers = {signature: first + place for place, (signature, _) in enumerate(written)}
    of = {id(link): at for at, batch in enumerate(store.batches.values()) for link in batch.links}
    names = list(store.parts.all[-1].names) if store.parts.all else []
    names += [n for k in store.newest.values() if k.evidence for n in (k.evidence.detector, k.evidence.kind or "")]
    names = list(dict.fromkeys(names))
    links = [
        (link, link.digest, _number(link, numbers), of.get(id(link), len(segments) - 1))
        for link in store.newest.values()
        if not link.signature or link.signature in numbers or link.signature.number is not None
    ]
    documents = document_rows([(s, at, {n: s.fingerprints[n] for n in own & set(s.fingerprints)}) for s, at in written])
    columns = {**documents, **link_rows(links, names)}
    keys = [incoming.keys[s] if s in incoming.keys else hashed_keys(s, own) for s, _ in written]
    return made(first, columns, _entries(keys), names, segments, store.parts.epoch)


def _number(link: Link, numbers: dict[Signature, int]) -> int:
    if link.void:
        return VOID
    if link.signature is None:
        return NOWHERE
    number = link.signature.number
    return numbers[link.signature] if number is None else number


def hashed_keys(signature: Signature, own: frozenset[str]) -> list[int]:
    """Return the hashes that find a document, of its fingerprints that must be equal; `own` are found otherwise."""
    return [
        spread(key ^ salt(name)) >> 64 - HASH_BITS
        for name, keys in signature.fingerprints.items()
        if name != SimHash.name and name not in own
        for key in set(keys)
    ]


def _entries(keys: Sequence[Sequence[int]]) -> Entries:
    """Return the entries of hashes by place of the document."""
    places = np.repeat(np.arange(len(keys), dtype=np.uint64), [len(some) for some in keys])
    hashes = np.array([each for some in keys for each in some], np.uint64)
    return entries(hashes << np.uint64(64 - HASH_BITS), places)


def _notes(store: LayeredStore, merged: Sequence[Part], fresh: Part, incoming: Incoming) -> Notes:
    trials = [(run, row) for part in merged for run, row in part.trials()]
    trials += [(run, row) for (run, _), batch in store.batches.items() for row in batch.trials]
    trials += incoming.trials
    met = {name: when for part in reversed(merged) for name, when in part.met()}
    for name, when in incoming.met.items():
        met[name] = min(when, met.get(name, when))
    for link in store.newest.values():
        if not link.void and (name := site(link.url)):
            met[name] = min(link.seen, met.get(name, link.seen))
    first = merged[0].first if merged else fresh.first
    return Notes(store.parts.changed_repeats(first), sorted(store.parts.withdrawn()), thinned(trials), met)


def thinned(trials: Iterable[tuple[str, Row]]) -> dict[str, list[Row]]:
    """Return the trials that count, by run: of each path the last, of each pair of hosts the last ones."""
    pairs: dict[object, dict[int, tuple[str, Row]]] = {}
    for run, row in sorted(trials, key=lambda trial: trial[1].seen):
        paths = pairs.setdefault((row.sites, row.prefixes, row.endings), {})
        paths.pop(row.path, None)
        paths[row.path] = (run, row)
    kept: dict[str, list[Row]] = {}
    for paths in pairs.values():
        for run, row in list(paths.values())[-2 * WINDOW :]:
            kept.setdefault(run, []).append(row)
    return kept


def _is_wasteful(store: LayeredStore, merged: Part) -> bool:
    waste = len(merged) - len(store) + merged.items - count_urls(store)
    return waste > WASTE * (len(merged) + merged.items)


def _closed_up(store: SqliteStore, merged: Part, incoming: Incoming) -> Part:
    """Return the part with all that is held without what is forgotten or was replaced."""
    store.show([merged], store.known_runs)
    notes = _notes(store, [merged], merged, incoming)
    return closed_up(merged, ~store.parts.gone(0), store.parts.current_links(0), notes)
