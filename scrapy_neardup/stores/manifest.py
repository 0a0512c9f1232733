"""Which files are the parts of a store. They lie in a directory beside it, and are written before they are named."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from .columns import checksum, map_columns
from .damage import DAMAGE
from .part import Part

SMALL = 2**25  # bytes of a part, of which all checksums are checked whenever it is opened


def folder(store: str) -> Path:
    """Return the directory of a store's parts."""
    return Path(f"{store}.parts")


def dump(parts: Iterable[Part]) -> bytes:
    """Return the record of parts that are in files: their names, and the checksums of their heads."""
    return json.dumps([[part.file.name, checksum(part.file)] for part in parts if part.file]).encode()


def names(listed: bytes) -> list[str]:
    """Return the names in a record; raise ValueError where it is damaged."""
    return [name for name, _ in parsed(listed)]


def read_parts(store: str, listed: bytes, known: Sequence[Part]) -> list[Part]:
    """Map the files of a record, but for those that are mapped already.

    Raise ValueError where the record or a file is damaged, or a file is another one, OSError where one is missing.
    """
    mapped = {part.file.name: part for part in known if part.file}
    return [mapped.get(name) or _read(folder(store) / name, crc) for name, crc in parsed(listed)]


def is_spare(file: Path, known: Collection[tuple[str, int]], listed: Collection[str]) -> bool:
    """Say whether a file that no record names may go.

    So it may if all that it holds is in segments that are `known` to be elsewhere. Else the record may be lost. What a
    killed import left is nowhere else either: it may go if its namespace has a record, is among those `listed`.
    """
    if file.suffix == ".new":
        return True  # it was never finished
    try:
        about = map_columns(file)[1]
        return about.get("imported") in listed or Part.read(file).all_segments() <= set(known)
    except (ValueError, OSError):
        return False


def _read(file: Path, crc: int) -> Part:
    if not file.exists():
        raise ValueError(f"its part {str(file)!r} is missing; bring it back, since a store is its file and the parts")
    if checksum(file) != crc:
        raise ValueError(f"its part {str(file)!r} is damaged, or another store's")
    return Part.read(file, check=file.stat().st_size <= SMALL)


def parsed(listed: bytes) -> list[tuple[str, int]]:
    """Return the names in a record, each with the checksum of its head; raise ValueError where it is damaged."""
    try:
        found = [(str(name), int(crc)) for name, crc in json.loads(listed)]
    except DAMAGE as error:
        raise ValueError(f"its list of parts is damaged: {listed[:80]!r}") from error
    if any(name != os.path.basename(name) for name, _ in found):
        raise ValueError(f"its list of parts names files elsewhere: {listed[:80]!r}")
    return found
