"""What a store was made with: its format, and what its fingerprints depend on. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FORMAT = 3  # 1 had no layouts, 2 no kinds of duplicates
_SETTINGS = {"imatch": " (NEARDUP_LEXICON, NEARDUP_IMATCH_LEXICONS)"}  # what a scheme depends on


def merge_meta(stored: bytes | None, schemes: Mapping[str, str]) -> bytes:
    """Return a store's record with these schemes in it, given the record that it has, None for a new store.

    Raise ValueError where the two don't go together. Detectors that are not in use now keep their place.
    """
    meta: dict[str, Any] = _parsed(stored) if stored is not None else {"format": FORMAT, "schemes": {}}
    if meta["format"] > FORMAT:
        raise ValueError(f"its format is {meta['format']}, of a newer version; allowed is up to {FORMAT}")
    for name, scheme in meta["schemes"].items():
        if schemes.get(name, scheme) != scheme:
            raise ValueError(
                f"{name!r} was made as {scheme!r}, and is now {schemes[name]!r}{_SETTINGS.get(name, '')}; go back to"
                " that, or start another"
                " store with NEARDUP_STORE or NEARDUP_NAMESPACE, which `scrapy neardup dedupe FEED… -o OUT --store NEW`"
                " fills from feeds that have the texts"
            )
    return json.dumps({"format": FORMAT, "schemes": {**meta["schemes"], **schemes}}, sort_keys=True).encode()


def _parsed(stored: bytes) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads(stored)
        return {"format": int(meta["format"]), "schemes": dict(meta["schemes"])}
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"its record of what it was made with is damaged: {stored[:80]!r}") from error
