"""Compose and split the keys of rows.

Keys are `document/RUN/NUMBER`, `visit/HASH`, `host/RUN/NUMBER`, `run/RUN` and `meta/NAME`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..fingerprints.hashes import hash_text
from ..text.urls import canonical_url

_NAMES = ("class ", "copy ", "delivery ", "item ", "own delivery ")  # what no URL begins with
_OF_VISIT = 1 << 31  # set in the hashes of visits, since a server tells visits from documents by it
_PLACE = re.compile(r"[\w.-]{1,200}/(?!0+$)([0-9a-f]{6}|[1-9a-f][0-9a-f]{6,8})")


def key_of(kind: str, run: str, number: int) -> str:
    """Return the key of a numbered row. The keys of a run ascend, since appending rows to a table is fastest."""
    return f"{kind}/{run}/{number:06x}"


def plain(place: str) -> str:
    """Return the canonical form of a URL, or a name as it is."""
    return place if place.startswith(_NAMES) else canonical_url(place)


@lru_cache(maxsize=1024)
def visit_key(place: str) -> str:
    """Return the key of the visit of a URL, in any spelling, or with a name."""
    return f"visit/{hash_text(plain(place)) | _OF_VISIT:016x}"


def is_hash(id: str) -> bool:
    """Return whether an id is a valid id of a visit."""
    return re.fullmatch("[0-9a-f]{16}", id) is not None and bool(int(id, 16) & _OF_VISIT)


def kind_of(key: str) -> str:
    """Return the kind of a row, given its key."""
    return key.partition("/")[0]


def id_of(key: str) -> str:
    """Return the id of a row, given its key: `RUN/NUMBER`, the id of a run, or the name of a `meta` row."""
    return key.partition("/")[2]


def place_of(id: str) -> tuple[str, int]:
    """Return the run and the row number in an id `RUN/NUMBER`. Raise ValueError for an invalid id."""
    run, _, number = id.rpartition("/")
    return run, int(number, 16)


def run_of(id: str) -> str:
    """Return the run in an id `RUN/NUMBER`."""
    return id.rpartition("/")[0]


def is_place(id: str) -> bool:
    """Return whether an id is a valid id of a numbered row, `RUN/NUMBER`."""
    return _PLACE.fullmatch(id) is not None
