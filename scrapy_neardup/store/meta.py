"""Check and extend the record of a store: its format and the schemes of its fingerprints. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .damage import DAMAGE

FORMAT = 13  # the version of the rows and their fields
KEY = "meta/made"
COUNTS = "meta/counts"  # after an import: numbers of documents and URLs to add to the counts of runs
_SETTINGS = {"imatch": " (NEARDUP_LEXICON, NEARDUP_IMATCH_LEXICONS)"}  # the settings behind a scheme


def merged(stored: Mapping[str, Any] | None, schemes: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of a store with these schemes added. `stored` is its present record; None for a new store.

    Schemes of detectors that are not in use are kept. Raise ValueError if `stored` is damaged, has another format, or
    has another scheme for one of the names.
    """
    meta = _checked(stored or {"format": FORMAT, "schemes": {}})
    if meta["format"] != FORMAT:
        raise ValueError(f"its format is {meta['format']}, of another version; allowed is {FORMAT}")
    for name, scheme in meta["schemes"].items():
        if schemes.get(name, scheme) != scheme:
            raise ValueError(
                f"{name!r} was made as {scheme!r}, and is now {schemes[name]!r}{_SETTINGS.get(name, '')}; restore the"
                " old setting, or begin another store with NEARDUP_STORE or NEARDUP_NAMESPACE; `scrapy neardup dedupe"
                " FEED… -o OUT --store NEW` fills a store from feeds with texts"
            )
    return {"format": FORMAT, "schemes": {**meta["schemes"], **schemes}}


def _checked(stored: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"format": int(stored["format"]), "schemes": {str(n): str(s) for n, s in stored["schemes"].items()}}
    except DAMAGE as error:
        raise ValueError(f"its record of schemes is damaged: {dict(stored)!r:.80}") from error
