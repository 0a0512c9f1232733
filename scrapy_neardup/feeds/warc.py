"""Read and write WARC and WET files with warcio.

Each record is a row. Only the records of pages have text.
"""

from __future__ import annotations

import io
import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr
from dataclasses import dataclass, field
from typing import IO, Any

from .compression import reading
from .feed import LARGEST, FeedError, Kind, Piece, Raw, Span
from .warc_records import GZIP, places

logger = logging.getLogger(__name__)

CHUNK = 1 << 16
SNIFFED = 5000  # bytes by which to recognise the type of a response without Content-Type


@dataclass(frozen=True)
class Warc(Kind):
    """WARC, plain or with each record gzipped."""

    told: set[str] = field(default_factory=set, compare=False)
    """The reasons that were logged, each for its first record."""
    name = "WARC"
    names = (".warc", ".warc.gz", ".wet", ".wet.gz")
    gzips = False
    settings = {  # noqa: RUF012 - never changed
        "fields": ("text",),
        "url_field": "url",
        "title_field": "title",
        "ignore_fields": ("id", "date"),  # of the record in the file, not of the page
    }

    @classmethod
    def of(cls, path: str) -> Warc:
        try:
            import warcio  # noqa: F401 - its absence is reported before the work begins
        except ImportError as error:
            raise FeedError(f"{path}: WARC needs warcio: pip install 'scrapy-neardup[warc]'") from error
        return cls()

    def split(self, path: str) -> Iterator[Piece]:
        """Yield all records of a file in order."""
        number = 0
        with reading(path, gzips=False) as file:
            try:
                for number, place in enumerate(places(file), 1):
                    span = Span(path, place.start, place.size)
                    yield Piece(f"record {number}", span, place.start + place.size, place.fault)
            except (ValueError, zlib.error) as error:
                raise FeedError(f"{path}, record {number + 1}: can't be read: {error}") from error

    def parse(self, raw: Raw) -> dict[str, Any]:
        """Return the id, URL, date and text of a record.

        The text is HTML or plain text for a page, and None for any other record.
        """
        from warcio.exceptions import ArchiveLoadFailed

        from .warc_content import MissingDecoderError

        assert isinstance(raw, Span)
        said, data = io.StringIO(), dict[str, Any]()
        try:
            with redirect_stderr(said), _record(raw) as record:  # warcio reports unpacking errors there, and continues
                data = _names(record)
                data["text"] = _text(record, data["url"] or "")
        except ArchiveLoadFailed as error:
            raise ValueError(str(error)) from error
        except MissingDecoderError as error:
            self._tell(f"{raw.path}, {data['url']!r}", str(error))
            data["text"] = None
        if said.getvalue():
            raise ValueError(f"its content can't be unpacked: {' '.join(said.getvalue().split())}")
        return data

    @contextmanager
    def writer(self, file: IO[bytes], *, gzipped: bool) -> Iterator[Callable[[Any], object]]:
        def write(raw: Span) -> None:
            with reading(raw.path, gzips=False) as source:
                source.seek(raw.start)
                _copy(source, raw.size, file, gzipped=gzipped)

        yield write

    def _tell(self, place: str, why: str) -> None:
        if why not in self.told:
            self.told.add(why)
            logger.warning("%s: read without text, as all such records: %s", place, why)


@contextmanager
def _record(raw: Span) -> Iterator[Any]:
    from warcio.archiveiterator import ArchiveIterator

    with reading(raw.path, gzips=False) as file:
        file.seek(raw.start)
        # Close it, since a reference cycle would keep its memory until garbage collection.
        with closing(ArchiveIterator(file, no_record_parse=True)) as records:
            yield next(records)


def _copy(source: IO[bytes], size: int, file: IO[bytes], *, gzipped: bool) -> None:
    """Copy a record unchanged. Compress or unpack it if only one of the two files is gzipped."""
    start = source.tell()
    is_same = (source.read(len(GZIP)) == GZIP) == gzipped
    source.seek(start)
    change: Any = None if is_same else zlib.compressobj(wbits=31) if gzipped else zlib.decompressobj(31)
    turned = bytes if is_same else change.compress if gzipped else change.decompress
    while size > 0 and (data := source.read(min(size, CHUNK))):
        file.write(turned(data))
        size -= len(data)
    if change:
        file.write(change.flush())


def _names(record: Any) -> dict[str, Any]:
    head = record.rec_headers.get_header
    names = {"id": "WARC-Record-ID", "url": "WARC-Target-URI", "date": "WARC-Date"}
    return {name: head(header) for name, header in names.items()}


def _text(record: Any, url: str) -> str | None:
    """Return the HTML or plain text of a page; None for any other record."""
    if record.rec_type == "conversion":
        is_plain = (record.rec_headers.get_header("Content-Type") or "").lower().startswith("text/plain")
        return _read(record.raw_stream).decode(errors="replace") if is_plain else None
    if record.rec_type != "response" or not url.lower().startswith(("http:", "https:")):
        return None
    from warcio.statusandheaders import StatusAndHeadersParser, StatusAndHeadersParserException

    try:
        record.http_headers = StatusAndHeadersParser(["HTTP/"], verify=False).parse(record.raw_stream)
    except (StatusAndHeadersParserException, EOFError):
        return None
    if record.http_headers.get_statuscode() != "200":
        return None
    return _html(record, url)


def _html(record: Any, url: str) -> str | None:
    """Return the HTML of a response, decoded as Scrapy decodes it; None if the response is not HTML."""
    from scrapy.http import Headers, HtmlResponse
    from scrapy.responsetypes import responsetypes

    from .warc_content import content_of

    kind = record.http_headers.get_header("Content-Type")
    headers = Headers({"Content-Type": kind} if kind else {})
    content = content_of(record)
    start = content.read(SNIFFED) if content else b""
    if not start or not issubclass(responsetypes.from_args(headers=headers, body=start), HtmlResponse):
        return None
    return HtmlResponse(url, headers=headers, body=start + _read(content)).text


def _read(stream: Any) -> bytes:
    data: bytes = stream.read(LARGEST)
    if len(data) == LARGEST:
        raise ValueError(f"a page of over {LARGEST} bytes")
    return data
