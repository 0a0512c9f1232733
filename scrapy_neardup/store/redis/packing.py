"""Rows, keys and SimHashes as the scripts take them. No I/O.

A row's place is 7 bytes: the ordinal of its run (3), then its kind (2 bits) and its number (30 bits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...index.near import BLOCKS, flips, most_flips
from .. import records
from ..base import DOCUMENT, HOST, LINK, META, RUN, Entry, Postings

KINDS = (DOCUMENT, LINK, HOST)
NAMED = (RUN, META)  # rows with a name in place of a number; each kind is one hash
PLACE, KEY, SIMHASH = 7, 7, 8  # bytes
NONE = bytes(PLACE)
BUCKETS = 18  # bits of a key: more take too much room for few documents, fewer let buckets grow into tables
_NUMBER = 30  # bits
_REST, _UNUSED = 64 - BUCKETS, 32 - BUCKETS  # 50 bits tell keys apart but for very few
_FIELD = 0xFFFFFFFF
_ENTRY = np.dtype([("place", f"V{PLACE}"), ("simhash", ">u8")])

Operation = list[Any]
"""Its name and arguments, as in scripts/write.lua."""


def place(ordinal: bytes, kind: str, number: int) -> bytes:
    """Return the place of a row. Raise ValueError for a number that is too high."""
    if not 0 <= number < 1 << _NUMBER:
        raise ValueError(f"no number of a row: {number}")
    return ordinal + (KINDS.index(kind) << _NUMBER | number).to_bytes(4, "big")


def key_at(place: bytes, run_of: Callable[[bytes], str]) -> str:
    """Return the key of the row at a place; `run_of` names a run by its ordinal."""
    number = int.from_bytes(place[3:], "big")
    return records.key_of(KINDS[number >> _NUMBER], run_of(place[:3]), number & (1 << _NUMBER) - 1)


def is_of(place: bytes, ordinal: bytes, kind: str) -> bool:
    """Return whether a place is one of a run's rows of a kind."""
    return place[:3] == ordinal and KINDS[place[3] >> _NUMBER - 24] == kind


def pieces(packed: bytes, size: int) -> Iterator[bytes]:
    """Yield what lies one after another."""
    return (packed[at : at + size] for at in range(0, len(packed), size))


def packed_keys(keys: Iterable[int]) -> bytes:
    """Return keys one after another: of each the bucket in 3 bytes, then the field in it in 4."""
    return b"".join([(key >> _REST << 32 | key >> _UNUSED & _FIELD).to_bytes(KEY, "big") for key in keys])


def packed(postings: Postings) -> tuple[bytes, bytes]:
    """Return the keys and the SimHash that find a row."""
    simhash = postings.simhash
    return packed_keys(dict.fromkeys(postings.keys)), b"" if simhash is None else simhash.to_bytes(SIMHASH, "big")


def holding(place: bytes, entry: Entry) -> Operation:
    """Return what holds a document, pending."""
    return ["hold", place, records.dump(entry.key, entry.record), *packed(entry.postings)]


def writing(place: bytes, entry: Entry, held: Operation | None) -> Operation:
    """Return what writes a row; `held` is what held it."""
    keys, simhash = packed(entry.postings)
    others: bytes | bool = False
    if held and held[4] == simhash:
        before = {*pieces(held[3], KEY)}
        others = b"".join(key for key in pieces(keys, KEY) if key not in before)
    kind = records.kind_of(entry.key)
    news = "news" if kind == HOST else "documents" if kind == DOCUMENT else False
    return ["row", place, records.dump(entry.key, entry.record), keys, simhash, others, entry.keeps_place, news]


def moved(operation: Operation, ordinals: dict[bytes, bytes]) -> Operation:
    """Return an operation where runs have other ordinals now."""
    if operation[0] == "set" or operation[1][:3] not in ordinals:
        return operation
    return [operation[0], ordinals[operation[1][:3]] + operation[1][3:], *operation[2:]]


def blocks(simhash: int, distance: int) -> bytes:
    """Return the names of the buckets that have the SimHashes within a distance: which block, and its 16 bits."""
    values = np.array([simhash], ">u8").view(">u2")
    which, flipped = _probes(distance)
    names = np.empty(len(which), [("block", "u1"), ("value", ">u2")])
    names["block"], names["value"] = which, values[which] ^ flipped
    return names.tobytes()


@cache
def _probes(distance: int) -> tuple[Any, Any]:
    pairs = [(block, flip) for block, most in enumerate(most_flips(distance)) for flip in flips(most)]
    which, flipped = zip(*pairs, strict=True)
    assert max(which) < BLOCKS
    return np.array(which, np.uint8), np.array(flipped, np.uint16)


def nearest(entries: bytes, simhash: int, distance: int, left_out: Iterable[bytes]) -> Sequence[bytes]:
    """Return the places of SimHashes within a distance, the nearest first. Raise ValueError for damage."""
    table = np.frombuffer(entries, _ENTRY)
    far = np.bitwise_count(table["simhash"] ^ np.uint64(simhash))
    near = (far <= distance).nonzero()[0]
    order = near[np.argsort(far[near], kind="stable")]
    found = dict.fromkeys(table["place"][order].tolist())
    for each in left_out:
        found.pop(each, None)
    return list(found)
