"""Unpack the content of responses in WARC files. Importing this module needs warcio."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from warcio.bufferedreaders import BufferedReader

from .feed import LARGEST

# The content codings in the IANA registry, without `identity`; gzip and compress also have names with `x-`.
CODINGS = frozenset(["aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "zstd"])
PACKAGES = {"br": "brotli>=1.2", "zstd": "backports.zstd"}
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
        try:
            content = _Unpacked(content, decomp_type=coding)
        except (ImportError, AttributeError) as error:
            why = f"Content-Encoding {coding} needs {PACKAGES[coding]}: pip install 'scrapy-neardup[warc]'"
            raise MissingDecoderError(why) from error
    return content


def _brotli() -> Any:
    from brotli import Decompressor

    unpack = Decompressor()
    unpack.can_accept_more_data  # noqa: B018 - older versions lack it, and can't limit their output
    return SimpleNamespace(unused_data=b"", decompress=lambda data: unpack.process(data, output_buffer_limit=MOST))


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    frame = ZstdDecompressor()

    def decompress(data: bytes) -> bytes:
        nonlocal frame
        made = b""
        while data:
            frame = ZstdDecompressor() if frame.eof else frame
            made += frame.decompress(data, MOST - len(made))
            data = frame.unused_data
        return made

    return SimpleNamespace(unused_data=b"", decompress=decompress)


class _Unpacked(BufferedReader):  # type: ignore[misc]
    """Unpacks br and zstd too: warcio fails with the package brotli (its issue 73), and does not know zstd."""

    DECOMPRESSORS = {**BufferedReader.DECOMPRESSORS, "br": _brotli, "zstd": _zstd}  # noqa: RUF012 - of warcio
