"""Encode rows, keys and SimHashes as arguments of the Lua scripts. No I/O.

The place of a document is 8 bytes: the code of its run (32 bits), a bit that is 0, and its number (31 bits). The place
of a visit is its hash, in which this bit is 1. The index has each visit under its run, so that all can be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from ...index.row_index import flips, most_flips
from ...signature import Visit
from .. import records
from ..interface import Entry
from ..records import (
    DOCUMENT,
    HOST,
    META,
    RUN,
    VISIT,
    Postings,
    Record,
    id_of,
    key_of,
    kind_of,
    place_of,
    run_key,
    run_of,
)

NAMED = (RUN, META, HOST)  # kinds of rows that have a name instead of a place, with one hash for each kind
CODE, PLACE, KEY, SIMHASH = 4, 8, 7, 8  # bytes of a run's code, a place, a key, and a SimHash
BUCKETS = 18  # bits of a key that choose its bucket; more would waste memory in small stores, fewer overfill buckets
_NUMBER = 31  # bits of a row number
_REST, _UNUSED = 64 - BUCKETS, 32 - BUCKETS  # 50 bits of a key are used, which are nearly always unique
_FIELD = 0xFFFFFFFF
_ENTRY = np.dtype([("place", f"V{PLACE}"), ("simhash", ">u8")])

Operation = list[Any]
"""The name and arguments of an operation of scripts/write.lua."""


@cache
def code(run: str) -> bytes:
    """Return the code of a run: 4 bytes of a hash of its id. Two runs of a store can't have the same code."""
    return blake2b(run.encode(), digest_size=CODE).digest()


def place(key: str) -> bytes:
    """Return the place of the row with this key, as 8 bytes. Raise IndexError if the row number is too high."""
    if kind_of(key) == VISIT:
        return bytes.fromhex(id_of(key))
    run, number = place_of(id_of(key))
    return places(run)[number].to_bytes(PLACE, "big")


def places(run: str) -> range:
    """Return all possible places of the documents of a run. Item N is the place of document N, as an integer."""
    first = int.from_bytes(code(run), "big") << 32
    return range(first, first + (1 << _NUMBER))


def is_visit(place: bytes) -> bool:
    """Return whether a place is that of a visit."""
    return place[CODE] > 0x7F


def key_at(place: bytes, run: str) -> str:
    """Return the key of the document at a place. `run` is the id of its run."""
    return key_of(DOCUMENT, run, int.from_bytes(place[CODE:], "big"))


def _postings(entry: Entry) -> Postings:
    """Return the postings of an entry, for a visit also under its run."""
    if not isinstance(entry.record, Visit):
        return entry.postings
    return Postings([*entry.postings.keys, run_key(run_of(entry.record.at))])


def pieces(packed: bytes, size: int) -> Iterator[bytes]:
    """Yield consecutive pieces of `size` bytes."""
    return (packed[at : at + size] for at in range(0, len(packed), size))


def packed_keys(keys: Iterable[int]) -> bytes:
    """Return keys as bytes. A key becomes 3 bytes for its bucket and 4 bytes for its field in the bucket."""
    return b"".join([(key >> _REST << 32 | key >> _UNUSED & _FIELD).to_bytes(KEY, "big") for key in keys])


def packed(postings: Postings) -> tuple[bytes, bytes]:
    """Return the keys and the SimHash of postings as bytes. Without a SimHash, the second value is b""."""
    simhash = postings.simhash
    return packed_keys(dict.fromkeys(postings.keys)), b"" if simhash is None else simhash.to_bytes(SIMHASH, "big")


class Hold(NamedTuple):
    """A pending document: its place, value, keys and SimHash as arguments of the scripts, and its record."""

    place: bytes
    value: bytes
    keys: bytes
    simhash: bytes
    record: Record


def holding(entry: Entry) -> Hold:
    """Encode the document in an entry as the arguments that hold it as pending."""
    return Hold(place(entry.key), records.dump(entry.key, entry.record), *packed(entry.postings), entry.record)


def writing(entry: Entry, held: Mapping[bytes, Hold]) -> Operation:
    """Return the operation that writes a row. `held` maps places to pending documents."""
    kind, value = kind_of(entry.key), records.dump(entry.key, entry.record)
    if kind in NAMED:
        return ["set", kind, id_of(entry.key), value, kind != META and not entry.keeps_place]
    at, (keys, simhash) = place(entry.key), packed(_postings(entry))
    others: bytes | bool = False
    if (hold := held.get(at)) and hold.simhash == simhash:
        before = {*pieces(hold.keys, KEY)}
        others = b"".join(key for key in pieces(keys, KEY) if key not in before)
    return ["row", at, value, keys, simhash, others, entry.keeps_place, kind == DOCUMENT]


def deletion(entry: Entry) -> Operation:
    """Return the operation that deletes a row."""
    kind = kind_of(entry.key)
    if kind in NAMED:
        return ["set", kind, id_of(entry.key), False, False]
    return ["drop", place(entry.key), *packed(_postings(entry))]


def blocks(simhash: int, distance: int) -> bytes:
    """Return the blocks to search for SimHashes within a Hamming distance of `simhash`, as bytes.

    A block is its number (1 byte) and its value (2 bytes).
    """
    values = np.array([simhash], ">u8").view(">u2")
    which, flipped = _probes(distance)
    names = np.empty(len(which), [("block", "u1"), ("value", ">u2")])
    names["block"], names["value"] = which, values[which] ^ flipped
    return names.tobytes()


@cache
def _probes(distance: int) -> tuple[Any, Any]:
    pairs = [(block, flip) for block, most in enumerate(most_flips(distance)) for flip in flips(most)]
    which, flipped = zip(*pairs, strict=True)
    return np.array(which, np.uint8), np.array(flipped, np.uint16)


def nearest(entries: bytes, simhash: int, distance: int, left_out: Iterable[bytes]) -> Sequence[bytes]:
    """Return the places of documents with a SimHash within a Hamming distance of `simhash`, nearest first.

    `entries` has the places and SimHashes to search. Places in `left_out` are not returned. Raise ValueError if
    `entries` is damaged.
    """
    table = np.frombuffer(entries, _ENTRY)
    far = np.bitwise_count(table["simhash"] ^ np.uint64(simhash))
    near = (far <= distance).nonzero()[0]
    order = near[np.argsort(far[near], kind="stable")]
    found = dict.fromkeys(table["place"][order].tolist())
    for each in left_out:
        found.pop(each, None)
    return list(found)
