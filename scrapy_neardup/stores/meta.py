"""What a store was made with: its format, and what its fingerprints depend on. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .damage import DAMAGE

FORMAT = 5  # since documents have titles
_SETTINGS = {"imatch": " (NEARDUP_LEXICON, NEARDUP_IMATCH_LEXICONS)"}  # what a scheme depends on


_OWN = frozenset({"dwdcs", "dwswn", "feature_code"})  # as of formats that did not say


def merge_meta(stored: bytes | None, schemes: Mapping[str, str], own: Iterable[str] = ()) -> bytes:
    """Return a store's record with these schemes in it, given the record that it has, None for a new store.

    `own`: the names of detectors with indexes of their own, whose fingerprints no table can find.

    Raise ValueError where the two don't go together. Detectors that are not in use now keep their place.
    """
    meta = _parsed(stored)
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
    merged = {"format": FORMAT, "schemes": {**meta["schemes"], **schemes}, "own": sorted({*meta["own"], *own})}
    return json.dumps(merged, sort_keys=True).encode()


def schemes(stored: bytes | None) -> dict[str, str]:
    """Return what each fingerprint was made as. Raise ValueError where the record is damaged."""
    return dict(_parsed(stored)["schemes"])


def own_fingerprints(stored: bytes | None) -> frozenset[str]:
    """Return the names of detectors with indexes of their own. Raise ValueError where the record is damaged."""
    return frozenset(_parsed(stored)["own"])


def _parsed(stored: bytes | None) -> dict[str, Any]:
    if stored is None:
        return {"format": FORMAT, "schemes": {}, "own": []}
    try:
        meta: dict[str, Any] = json.loads(stored)
        schemes = dict(meta["schemes"])
        return {"format": int(meta["format"]), "schemes": schemes, "own": list(meta.get("own", _OWN & set(schemes)))}
    except DAMAGE as error:
        raise ValueError(f"its record of what it was made with is damaged: {stored[:80]!r}") from error
