"""What is asked of a server to find documents: hashes, blocks of SimHashes; and what its answers mean. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...detectors import SimHash
from ...detectors.base import Detector
from ...fingerprints.hashing import Hashes
from ...index.hamming import BLOCKS, HammingIndex, flips
from ...index.keys import KeyIndex
from ..search import NEWEST, salt
from .packing import hash_rows, hashed

_HIT = np.dtype([("place", ">u2"), ("number", ">u4")])
NEAR = np.dtype([("simhash", "<u8"), ("number", ">u4")])
_FIELD = 4  # bytes
_NONE: Hashes = np.zeros(0, np.uint64)
Fingerprints = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Question:
    """What a script takes to find documents, and of which detector each hash is."""

    names: Sequence[str]
    hashes: Hashes
    rows: bytes
    newest: bytes
    probes: Hashes
    """Hashes of the blocks of SimHashes to look up."""
    simhashes: tuple[int, ...]


class Asking:
    """Puts fingerprints into questions, as the detectors want them."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.names = [detector.name for detector in detectors]
        indexes = {d.name: d.index() for d in detectors}
        self._newest = {n: min(i.newest or NEWEST, 255) for n, i in indexes.items() if isinstance(i, KeyIndex)}
        near = indexes.get(SimHash.name)
        self.distance = near.distance if isinstance(near, HammingIndex) else None
        self.own = {
            n: i
            for n, i in indexes.items()
            if n not in self._newest and not (n == SimHash.name and self.distance is not None)
        }
        """In RAM, since how they find is known to nobody else."""
        self.whole: frozenset[str] = frozenset(self.own)
        """The names of detectors with such indexes, be they in use or not."""

    def question(self, fingerprints: Fingerprints) -> Question:
        names: list[str] = []
        keys: list[int] = []
        newest = b""
        for name, values in fingerprints.items():
            if values and name != SimHash.name and name not in self.whole:  # these no hash finds
                mixed, distinct = _salt(name), dict.fromkeys(values)
                names += [name] * len(distinct)
                keys += [key ^ mixed for key in distinct]
                newest += bytes([self._newest.get(name, 0)]) * len(distinct)
        simhashes = fingerprints.get(SimHash.name, ()) if self.distance is not None else ()
        probes = [_probed(value, self.distance or 0) for value in simhashes]
        hashes = hashed(keys)
        return Question(
            names,
            hashes,
            hash_rows(hashes),
            newest,
            np.concatenate(probes) if probes else _NONE,
            simhashes,
        )

    def found(self, question: Question, hits: bytes, near: bytes, among: range) -> dict[str, list[int]]:
        """Return by detector the numbers of the documents that an answer names, ascending; of those near only some."""
        numbers: dict[str, set[int]] = {}
        for place, number in np.frombuffer(hits, _HIT).tolist() if hits else ():
            numbers.setdefault(question.names[place], set()).add(number)
        if near and self.distance is not None:
            numbers[SimHash.name] = {n for v in question.simhashes for n in _nearest(near, v, self.distance, among)}
        return {name: sorted(found) for name, found in numbers.items()}


def field(hashed: int, buckets: int) -> bytes:
    """Return in which of so many buckets a hash is; see `scripts/tables.lua`."""
    size = 1 << buckets.bit_length() - 1
    place = hashed & size - 1
    return (place if place >= buckets - size else hashed & 2 * size - 1).to_bytes(_FIELD, "little")


def fields(hashes: Hashes, buckets: int) -> bytes:
    """Return in which of so many buckets hashes are, one after another."""
    size = 1 << buckets.bit_length() - 1
    places = hashes & np.uint64(size - 1)
    if buckets > size:
        places = np.where(places < buckets - size, hashes & np.uint64(2 * size - 1), places)
    return places.astype("<u4").tobytes()


def each_field(packed: bytes) -> Iterable[bytes]:
    """Return the fields that are packed together, each once."""
    return dict.fromkeys(packed[at : at + _FIELD] for at in range(0, len(packed), _FIELD))


def _nearest(entries: bytes, value: int, distance: int, among: range) -> list[int]:
    """Return the numbers of the entries within a distance; of more than `NEWEST` the nearest."""
    table = np.frombuffer(entries, NEAR)
    far = np.bitwise_count(table["simhash"] ^ np.uint64(value))
    near = (far <= distance).nonzero()[0]
    if not len(near):
        return []
    order = near[np.argsort(far[near], kind="stable")]
    numbers = dict.fromkeys(table["number"][order].tolist())
    return [number for number in numbers if number in among][:NEWEST]


_salt = cache(salt)


def _probed(value: int, distance: int) -> Hashes:
    """Return the blocks to look up, with some of their bits flipped: a block's bits, then which it is."""
    places, flipped = _probes(distance)
    blocks = np.array([value], "<u8").view("<u2")[places].astype(np.uint64)
    probes: Hashes = (blocks ^ flipped) * np.uint64(BLOCKS) + places
    return probes


@cache
def _probes(distance: int) -> tuple[Any, Any]:
    """Return which blocks to look up with which bits flipped; see `NearTable`."""
    least, more = divmod(distance - BLOCKS + 1, BLOCKS)
    pairs = [(block, flip) for block in range(BLOCKS) for flip in flips(least + (block < more))]
    blocks, flipped = zip(*pairs, strict=True)
    return np.array(blocks, np.uint64), np.array(flipped, np.uint64)
