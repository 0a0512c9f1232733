"""The record of a store: its format and the schemes of its fingerprints. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .damage import DAMAGE

FORMAT = 7  # of the rows and their fields
KEY = "meta/made"
COUNTS = "meta/counts"  # documents and URLs beyond the counts of runs, after an import
INDEX = "meta/index"  # the files of the index
_SETTINGS = {"imatch": " (NEARDUP_LEXICON, NEARDUP_IMATCH_LEXICONS)"}  # the settings behind a scheme


def merged(stored: Mapping[str, Any] | None, schemes: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of a store with these schemes added. `stored` is its present record, None for a new store.

    Raise ValueError for a conflict. Schemes of detectors that are not in use stay.
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
