"""A file of named columns: numbers only, written once, whole or not at all, and mapped into memory to be read.

`NEARDUPC`, the CRC-32 of the head (4 bytes, little-endian), its length (8 bytes), the head as JSON, the columns, each
at a multiple of 64 bytes. The head has `about` (whatever the writer adds) and `columns` (`[name, type, items, CRC-32]`,
in order). Opening one from a stranger runs nothing: types are plain numbers or bytes.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from ...index.packed import Array
from ...whole import sync_folder
from ..damage import DAMAGE

MAGIC, ALIGN = b"NEARDUPC", 64
TYPES = frozenset({"|u1", "<u2", "<u4", "<u8", "<i8", "<f8", *(f"|V{size}" for size in range(1, 1025))})


def write_columns(path: Path, columns: Mapping[str, Array], about: Mapping[str, Any]) -> None:
    """Write a file; it has its name only once all of it is on disk."""
    arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    rows = [[name, _type(column), len(column), zlib.crc32(column.data)] for name, column in arrays.items()]
    head = json.dumps({"about": about, "columns": rows}).encode()
    unfinished = path.with_name(path.name + ".new")
    try:
        with unfinished.open("wb") as file:
            file.write(MAGIC + zlib.crc32(head).to_bytes(4, "little") + len(head).to_bytes(8, "little") + head)
            for column in arrays.values():
                file.write(bytes(-file.tell() % ALIGN))
                file.write(column.data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:  # of a full disk it would take the rest
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_columns(path: Path, *, check: bool = False) -> tuple[dict[str, Array], dict[str, Any]]:
    """Map a file into memory: its columns, read-only, and what its writer added.

    Raise ValueError where it is no such file, or is shorter than it says; `check`: or where any of it is damaged.
    """
    columns, about, checksums = map_columns(path)
    for name in damaged(columns, checksums) if check else ():
        raise ValueError(f"{path.name} is damaged: the checksum of {name!r} does not match")
    return columns, about


def damaged(columns: Mapping[str, Array], checksums: Mapping[str, int]) -> Iterator[str]:
    """Yield the names of the columns that have another checksum."""
    return (name for name, crc in checksums.items() if zlib.crc32(columns[name].data) != crc)


def map_columns(path: Path) -> tuple[dict[str, Array], dict[str, Any], dict[str, int]]:
    """Map a file as `read_columns` does without a check; return the checksums of its columns, too."""
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(view[12:20], "little")
    head = view[20 : 20 + size]
    if view[:8] != MAGIC or zlib.crc32(head) != int.from_bytes(view[8:12], "little"):
        raise ValueError(f"{path.name} is damaged, or no file of a store")
    rows, about = _described(path.name, head)
    columns: dict[str, Array] = {}
    checksums: dict[str, int] = {}
    at = 20 + size
    for name, kind, items, crc in rows:
        at += -at % ALIGN
        if kind not in TYPES:
            raise ValueError(f"{path.name} has a column of an unknown type, {kind!r}")
        if items < 0 or at + items * np.dtype(kind).itemsize > len(view):
            raise ValueError(f"{path.name} is damaged: it is cut off")
        columns[name] = np.frombuffer(view, np.dtype(kind), items, at) if items else np.zeros(0, kind)
        at += columns[name].nbytes
        checksums[name] = crc
    return columns, about, checksums


def _described(file: str, head: bytes) -> tuple[list[tuple[str, str, int, int]], dict[str, Any]]:
    """Return the columns that a head lists, and what the file's writer added."""
    try:
        described = json.loads(head)
        rows = [(str(name), str(kind), index(items), index(crc)) for name, kind, items, crc in described["columns"]]
        return rows, dict(described["about"])
    except DAMAGE as error:
        raise ValueError(f"{file} is damaged: its head is none: {error}") from error


def checksum(path: Path) -> int:
    """Return the checksum of a file's head, in which are those of its columns."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(12)[8:], "little")


def _type(column: Array) -> str:
    return column.dtype.str if column.dtype.kind != "V" else f"|V{column.itemsize}"
