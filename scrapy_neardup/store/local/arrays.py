"""Write and memory-map files of NumPy arrays.

The last array of a file holds the CRC-32 of each array before it. Opening a hostile file runs no code.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from ...atomic import replacing
from ...index.key_table import Array

ALIGN = 64  # arrays begin at multiples of this many bytes, so that their items are aligned


def write_arrays(path: Path, arrays: Sequence[Array]) -> None:
    """Write arrays to a file. The file appears under its name only when it is completely on disk."""
    whole = [np.ascontiguousarray(each) for each in arrays]
    sums = np.array([_checksum(each) for each in whole], np.uint32)
    with replacing(path) as part, open(part, "wb") as file:
        for each in (*whole, sums):
            file.write(bytes(-file.tell() % ALIGN))
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(each))
            file.write(each.data)


def read_arrays(path: Path, count: int, *, check: bool) -> list[Array]:
    """Memory-map the `count` arrays in a file, read-only. With `check`, compare their checksums.

    Raise ValueError if the file is damaged.
    """
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        *arrays, sums = (_next(file, view) for _ in range(count + 1))
    if check and [_checksum(each) for each in arrays] != sums.tolist():
        raise ValueError("its checksums do not match")
    return arrays


def _next(file: BinaryIO, view: mmap.mmap) -> Array:
    file.seek(-file.tell() % ALIGN, 1)
    try:
        npy.read_magic(file)
        (size,), _, dtype = npy.read_array_header_1_0(file)
    except Exception as error:  # NumPy parses the header as a Python literal, which may raise anything
        raise ValueError("the head of an array is invalid") from error
    at = file.tell()
    array: Array = np.frombuffer(view, dtype, size, at) if size else np.zeros(0, dtype)
    file.seek(at + array.nbytes)
    return array


def _checksum(array: Array) -> int:
    return zlib.crc32(array.data)
