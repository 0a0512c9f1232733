"""Compose and split the keys of rows.

Keys are `document/RUN/NUMBER`, `link/RUN/NUMBER`, `host/RUN/NUMBER`, `run/RUN` and `meta/NAME`.
"""

from __future__ import annotations

import re

_PLACE = re.compile(r"[\w.-]{1,200}/(?!0+$)([0-9a-f]{6}|[1-9a-f][0-9a-f]{6,8})")


def key_of(kind: str, run: str, number: int) -> str:
    """Return the key of a numbered row. The keys of a run ascend, since appending rows to a table is fastest."""
    return f"{kind}/{run}/{number:06x}"


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


def is_place(id: str) -> bool:
    """Return whether an id is a valid id of a numbered row, `RUN/NUMBER`."""
    return _PLACE.fullmatch(id) is not None
