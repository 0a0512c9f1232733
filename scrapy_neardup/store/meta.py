"""The record of a store: its format, and what its fingerprints depend on. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .damage import DAMAGE

FORMAT = 7  # of the rows, and of what lies in them
KEY = "meta/made"
COUNTS = "meta/counts"  # how much is held beyond what the runs say, after an import
INDEX = "meta/index"  # the files of a back end's index
_SETTINGS = {"imatch": " (NEARDUP_LEXICON, NEARDUP_IMATCH_LEXICONS)"}  # what a scheme depends on


def merged(stored: Mapping[str, Any] | None, schemes: Mapping[str, str]) -> dict[str, Any]:
    """Return a store's record with these schemes in it, given the record that it has, None for a new store.

    Raise ValueError where the two don't go together. Detectors that are not in use now keep their place.
    """
    meta = _checked(stored or {"format": FORMAT, "schemes": {}})
    if meta["format"] != FORMAT:
        raise ValueError(f"its format is {meta['format']}, of another version; allowed is {FORMAT}")
    for name, scheme in meta["schemes"].items():
        if schemes.get(name, scheme) != scheme:
            raise ValueError(
                f"{name!r} was made as {scheme!r}, and is now {schemes[name]!r}{_SETTINGS.get(name, '')}; go back to"
                " that, or start another store with NEARDUP_STORE or NEARDUP_NAMESPACE, which"
                " `scrapy neardup dedupe FEED… -o OUT --store NEW` fills from feeds that have the texts"
            )
    return {"format": FORMAT, "schemes": {**meta["schemes"], **schemes}}


def _checked(stored: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"format": int(stored["format"]), "schemes": {str(n): str(s) for n, s in stored["schemes"].items()}}
    except DAMAGE as error:
        raise ValueError(f"its record of what it was made with is damaged: {dict(stored)!r:.80}") from error
