"""The keys of the rows in a store's log: what they say, in words too. No I/O."""

from __future__ import annotations

from urllib.parse import unquote

from .sqlite import BATCH


def split(key: str) -> tuple[str, str, str, int]:
    """Return what a key says: the kind of row, the namespace, the run and the number.

    Raise ValueError for one that no row of a store has.
    """
    kind, space, *rest = key.split("/")
    if kind in ("meta", "parts") and not rest:
        return kind, space, "", 0
    if kind == "run" and len(rest) == 1:
        return kind, space, rest[0], 0
    if kind == "segment" and len(rest) == 2 and rest[1].isdecimal():
        return kind, space, rest[0], int(rest[1])
    raise ValueError("a store has no rows of this kind")


def named(key: str) -> str:
    """Name a row in words."""
    try:
        kind, space, run, number = split(key)
    except ValueError:
        return f"row {key[:80]!r}"
    names = {
        "meta": "the record of what the store was made with",
        "parts": "the list of parts",
        "run": f"the record of run {run}",
        "segment": f"segment {number} of run {run}",
    }
    return names[kind] + (f" (namespace {unquote(space)!r})" if space else "")


def costs(key: str) -> str:
    """Say what it costs that a row can't be read."""
    known = {
        "meta": "nothing says what its fingerprints depend on, so it is refused",
        "parts": "all documents in parts are unknown: their pages are stored once more",
        "run": "nothing says what of the run is forgotten, or whether it closed",
        "segment": f"its documents are unknown: at most {BATCH} pages are stored once more",
    }
    return known.get(key.partition("/")[0], "what it held, if it was a row of the store, is unknown")
