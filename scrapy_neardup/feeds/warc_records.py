"""Find the beginning and the end of each record in a WARC file."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, NamedTuple

GZIP = b"\x1f\x8b"
_MEMBER, _WARC = GZIP + b"\x08", b"WARC/"  # the beginning of a gzipped record, and of a plain one
_BEGIN, _BEGIN_SIZE = re.compile(rb"\r\n\r\n(?=WARC/1\.[01]\r\n)"), 14  # a record's end, the next one's first line
_OTHER = "its Content-Length does not match its end"
_CUT = "the file ends before the record; it is probably truncated"
_CHUNK = 1 << 14
_HEAD = 1 << 20  # bytes; longer heads are invalid
_AFTER = 16  # bytes that may follow a record: two line ends by the standard
_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


class Place(NamedTuple):
    """The byte range of a record in its file."""

    start: int
    size: int
    fault: str | None = None
    """The reason why the record is invalid; None if it is valid."""


def places(file: IO[bytes]) -> Iterator[Place]:
    """Yield the byte range of each record in a file. The records are plain, or each is gzipped on its own.

    An invalid record ends where the next record begins. Raise ValueError if the first record is invalid and no record
    follows, since the file may not be WARC at all.
    """
    size = os.fstat(file.fileno()).st_size
    packed, start = file.read(2) == GZIP, 0
    while start < size:
        place = _place(file, start, size, packed=packed)
        yield place
        start += place.size


def _place(file: IO[bytes], start: int, size: int, *, packed: bool) -> Place:
    file.seek(start)
    is_gzip = file.read(2) == GZIP
    file.seek(start)
    try:
        place = _member(file, start) if is_gzip else _plain(file, start, size)
    except (ValueError, zlib.error) as error:
        later = _next(file, start + 1, packed=packed)
        if not later and not start and not (packed and isinstance(error, zlib.error)):
            raise
        return Place(start, (later or size) - start, f"can't be read: {error}")
    later = _next(file, start + 1, packed=packed) if place.fault else None
    return place._replace(size=later - start) if later else place


def _next(file: IO[bytes], at: int, *, packed: bool) -> int | None:
    # Search for gzipped records even if the file seems plain: perhaps only its first byte is damaged.
    return (None if packed else _next_plain(file, at)) or _next_member(file, at)


def _next_member(file: IO[bytes], at: int) -> int | None:
    """Return the beginning of the next gzipped record, or None."""
    file.seek(at)
    while len(text := file.read(_CHUNK)) >= len(_MEMBER):
        found = text.find(_MEMBER)
        file.seek(at + max(found, 0))
        with suppress(zlib.error):
            if found >= 0 and zlib.decompressobj(31).decompress(file.read(_CHUNK), len(_WARC)) == _WARC:
                return at + found
        at += found + 1 if found >= 0 else len(text) - len(_MEMBER) + 1
        file.seek(at)
    return None


def _next_plain(file: IO[bytes], at: int) -> int | None:
    """Return the beginning of the next plain record, or None."""
    file.seek(at)
    text = b""
    while more := file.read(_CHUNK):
        text = text[1 - _BEGIN_SIZE :] + more
        if found := _BEGIN.search(text):
            return file.tell() - len(text) + found.end()
    return None


def _plain(file: IO[bytes], start: int, size: int) -> Place:
    head, length = _head(file.read(_CHUNK), file)
    end = start + head + length
    if not head or end > size:
        return Place(start, size - start, _CUT)
    file.seek(end)
    after = file.read(_AFTER)
    rest = after.lstrip(b"\r\n")
    if rest and not after.startswith(b"\r\n\r\n") and not rest.startswith((_WARC, GZIP)):
        return Place(start, size - start, _OTHER)
    return Place(start, head + length + len(after) - len(rest))


def _member(file: IO[bytes], start: int) -> Place:
    unpack, first, total = zlib.decompressobj(31), b"", 0
    while not unpack.eof:
        packed = file.read(_CHUNK)
        if not packed:
            return Place(start, file.tell() - start, _CUT)
        data = unpack.decompress(packed)
        total += len(data)
        first += data[: _HEAD - len(first)]
    head, length = _head(first)
    if not head or total < head + length:
        raise ValueError("it is shorter than its Content-Length")
    if total > head + length + _AFTER:
        raise ValueError("several records are gzipped together; allowed is one by one: use `warcio recompress`")
    return Place(start, file.tell() - len(unpack.unused_data) - start)


def _head(text: bytes, file: IO[bytes] | None = None) -> tuple[int, int]:
    """Return the lengths of a record's head and body in bytes. Return zeros if the file ends within the head."""
    if not text.startswith(_WARC[: len(text)]):
        raise ValueError(f"{text[:20].decode(errors='replace')!r} in place of a record")
    while not (end := re.search(rb"\r?\n\r?\n", text)):
        more = file.read(_CHUNK) if file else b""
        if not more:
            return 0, 0
        if len(text) > _HEAD:
            raise ValueError("its head has no end")
        text += more
    length = _LENGTH.search(text, 0, end.start())
    if not length:
        raise ValueError("it has no Content-Length")
    return end.end(), int(length[1])
