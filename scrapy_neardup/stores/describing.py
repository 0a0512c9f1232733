"""What there is to say of a store on disk: its size, where what it holds lies, and how much of it is waste."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from .layered import LayeredStore
from .records import among, leads_on


def described(store: LayeredStore, file: Path) -> dict[str, object]:
    """Return the sizes of a store whose log is in that file. Makes no object for a document, however many there are."""
    log = sum(map(_size, (file, Path(f"{file}-wal"))))
    parts = sum(_size(part.file) for part in store.parts.all if part.file)
    known = sum(int(links.sum()) for links in _known_links(store))
    return {
        "bytes": log + parts,
        "bytes_log": log,
        "bytes_parts": parts,
        "parts": len(store.parts.all),
        "documents_in_memory": len(store) - len(store.parts),
        "documents_in_parts": len(store.parts),
        "urls": known + _count_in_memory(store),
        "waste": _waste(store, known),
    }


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # another process has put what it held into another one
        return 0


def count_urls(store: LayeredStore) -> int:
    """Return of how many URLs it is known what they led to."""
    return sum(int(links.sum()) for links in _known_links(store)) + _count_in_memory(store)


def _count_in_memory(store: LayeredStore) -> int:
    return sum(not link.void for link in store.newest.values())


def _known_links(store: LayeredStore) -> list[npt.NDArray[np.bool_]]:
    """Return by part which of its links tell something: not replaced, and not to what is forgotten."""
    parts = store.parts
    held = ~np.concatenate([parts.gone(at) for at in range(len(parts.all))]) if parts.all else np.zeros(0, bool)
    replaced = np.fromiter(store.newest, np.uint64, len(store.newest))
    return [
        parts.current_links(at)
        & ~among(part.columns["link_rows"]["url"], replaced)
        & leads_on(part.columns["link_rows"]["document"], held)
        for at, part in enumerate(parts.all)
    ]


def _waste(store: LayeredStore, known: int) -> float:
    """Return the share of the documents and links in parts that are forgotten or replaced; `known` links are not."""
    rows = sum(len(part) + len(part.columns["link_rows"]) for part in store.parts.all)
    kept = len(store.parts) + known
    return round(1 - kept / rows, 4) if rows else 0.0
