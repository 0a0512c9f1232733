"""Unpack the content of responses in WARC files. Importing this module needs warcio."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from warcio.bufferedreaders import BufferedReader

from .feed import LARGEST

# The content codings in the IANA registry, without `identity`; gzip and compress also have names with `x-`.
CODINGS = frozenset(["aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "zstd"])
MOST = LARGEST + (1 << 16)  # bytes to unpack at a time; above LARGEST, so that the reader notices a page that is cut


class MissingDecoderError(Exception):
    """A package to unpack a content coding is not installed. The message names both."""


def content_of(record: Any) -> Any:
    """Return a stream with the unpacked content of a response; None if it can't be unpacked.

    Raise MissingDecoderError if that needs another package.
    """
    headers = record.http_headers
    named = (headers.get_header("Content-Encoding") or "").lower().split(",")
    # Unknown names such as `UTF-8` and `none` are left out: Scrapy leaves such content unchanged.
    packed = [coding for each in named if (coding := each.strip().removeprefix("x-")) in CODINGS]
    headers.remove_header("Content-Encoding")  # warcio then only joins the chunks
    content = record.content_stream()
    for coding in reversed(packed):
        if coding not in _Unpacked.DECOMPRESSORS:
            return None
        content = _Unpacked(content, decomp_type=coding)
    return content


@contextmanager
def _needing(coding: str, package: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, AttributeError) as error:
        why = f"Content-Encoding {coding} needs {package}: pip install 'scrapy-neardup[warc]'"
        raise MissingDecoderError(why) from error


def _brotli() -> Any:
    with _needing("br", "brotli>=1.2"):
        from brotli import Decompressor

        unpack = Decompressor()
        unpack.can_accept_more_data  # noqa: B018 - older versions lack it, and can't limit their output
    return SimpleNamespace(unused_data=b"", decompress=lambda data: unpack.process(data, output_buffer_limit=MOST))


class _Zstd:
    """Unpacks zstd, frame by frame."""

    unused_data = b""

    def __init__(self) -> None:
        with _needing("zstd", "backports.zstd"):
            if sys.version_info >= (3, 14):
                from compression.zstd import ZstdDecompressor
            else:
                from backports.zstd import ZstdDecompressor
        self._new = ZstdDecompressor
        self._frame = self._new()

    def decompress(self, data: bytes) -> bytes:
        made = b""
        while data:
            if self._frame.eof:
                self._frame = self._new()
            made += self._frame.decompress(data, MOST - len(made))
            data = self._frame.unused_data
        return made


class _Unpacked(BufferedReader):  # type: ignore[misc]
    """Unpacks br and zstd too: warcio fails with the package brotli (its issue 73), and does not know zstd."""

    DECOMPRESSORS = {**BufferedReader.DECOMPRESSORS, "br": _brotli, "zstd": _Zstd}  # noqa: RUF012 - of warcio
