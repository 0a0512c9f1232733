"""What is asked of a server to find documents: hashes, blocks of SimHashes; and what its answers mean. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...detectors import SimHash
from ...detectors.base import Detector
from ...index.hamming import BLOCK_BITS, BLOCKS, HammingIndex, flips
from ...index.keys import KeyIndex
from ..search import NEWEST
from .packing import hash_rows, hashed

_HIT = np.dtype([("place", ">u2"), ("number", ">u4")])
_NEAR = np.dtype([("simhash", "<u8"), ("number", ">u4")])
Probes = npt.NDArray[np.uint32]
_NONE: Probes = np.zeros(0, np.uint32)
Fingerprints = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Question:
    """What a script takes to find documents, and of which detector each hash is."""

    names: tuple[str, ...]
    rows: bytes
    newest: bytes
    probes: Probes
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

    @property
    def _others(self) -> frozenset[str]:
        """Whose fingerprints no hash finds."""
        return self.whole | {SimHash.name}

    def question(self, fingerprints: Fingerprints) -> Question:
        others = self._others
        pairs = [(n, h) for n, keys in fingerprints.items() if n not in others for h in hashed(n, keys)]
        simhashes = fingerprints.get(SimHash.name, ()) if self.distance is not None else ()
        return Question(
            tuple(name for name, _ in pairs),
            hash_rows([each for _, each in pairs]),
            bytes(self._newest.get(name, 0) for name, _ in pairs),
            np.concatenate([_NONE, *(_probed(value, self.distance or 0) for value in simhashes)]),
            simhashes,
        )

    def found(self, question: Question, hits: bytes, near: bytes, among: range) -> dict[str, list[int]]:
        """Return by detector the numbers of the documents that an answer names, ascending; of those near only some."""
        numbers: dict[str, set[int]] = {}
        for place, number in np.frombuffer(hits, _HIT).tolist():
            numbers.setdefault(question.names[place], set()).add(number)
        if near and self.distance is not None:
            numbers[SimHash.name] = {n for v in question.simhashes for n in _nearest(near, v, self.distance, among)}
        return {name: sorted(found) for name, found in numbers.items()}


def bucketed(probes: Probes, buckets: int) -> Probes:
    """Return in which of so many buckets hashes are; see `scripts/tables.lua`."""
    size = 1 << buckets.bit_length() - 1
    places = probes & np.uint32(size - 1)
    split = places < buckets - size
    places[split] = probes[split] & np.uint32(2 * size - 1)
    return places


def _nearest(entries: bytes, value: int, distance: int, among: range) -> list[int]:
    """Return the numbers of the entries within a distance; of more than `NEWEST` the nearest."""
    table = np.frombuffer(entries, _NEAR)
    far = np.bitwise_count(table["simhash"] ^ np.uint64(value))
    near = (far <= distance).nonzero()[0]
    order = near[np.argsort(far[near], kind="stable")]
    numbers = dict.fromkeys(table["number"][order].tolist())
    return [number for number in numbers if number in among][:NEWEST]


def _probed(value: int, distance: int) -> Probes:
    """Return the blocks to look up, with some of their bits flipped: a block's bits, then which it is."""
    blocks = [(value >> BLOCK_BITS * block) & 0xFFFF for block in range(BLOCKS)]
    places, flipped = _probes(distance)
    probes: Probes = (np.array(blocks, np.uint32)[places] ^ flipped) * np.uint32(BLOCKS) + places
    return probes


@cache
def _probes(distance: int) -> tuple[Any, Any]:
    """Return which blocks to look up with which bits flipped; see `NearTable`."""
    least, more = divmod(distance - BLOCKS + 1, BLOCKS)
    pairs = [(block, flip) for block in range(BLOCKS) for flip in flips(least + (block < more))]
    blocks, flipped = zip(*pairs, strict=True)
    return np.array(blocks, np.uint32), np.array(flipped, np.uint32)
