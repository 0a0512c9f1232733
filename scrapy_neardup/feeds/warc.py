"""Feeds of WARC and WET. Each record is a row, and the records of pages have text."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from .feed import LARGEST, BrokenError, Feed, Found, is_gzipped

_BEGIN = re.compile(rb"WARC/1\.[01]\s*")
_BLANK = re.compile(rb"\r?\n\r?\n")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[^\n]{0,99}\n")
_SNIFFED = 5000  # bytes by which Scrapy recognizes the type of a response without Content-Type


class Warc(Feed):
    """Records, each of which is gzipped or none. A row as the file has it is the unpacked record."""

    name, unit = "WARC", "record"
    endings, is_packed_whole = (".warc", ".wet"), False
    settings = {  # noqa: RUF012 - never changed
        "fields": ("text",),
        "url_field": "url",
        "title_field": "title",
        "ignore_fields": ("id", "date"),  # of the record in the file, not of the page
    }

    def rows(self) -> Iterator[Found]:
        number, record, lines = 0, b"", iter(lambda: self.file.readline(LARGEST), b"")
        for line in lines:
            is_lost = not record and number > 0  # behind what is no record, up to the next
            if line.strip() and not (is_lost and not _BEGIN.fullmatch(line)):
                number, record = number + 1, b""
                try:
                    head, content = self._record(line)
                    record = b"".join([*head, b"\r\n", content])
                    yield number, self._row(head, content), record
                except ValueError as error:
                    yield number, error, None

    def write(self, data: Mapping[str, Any], raw: bytes = b"") -> None:
        record = raw + b"\r\n\r\n"
        self.file.write(gzip.compress(record, mtime=0) if is_gzipped(self.path) else record)

    def _record(self, line: bytes) -> tuple[list[bytes], bytes]:
        """Return the lines of the head of a record, and its content. Raise ValueError if there is no valid record."""
        if not _BEGIN.fullmatch(line):
            raise ValueError(f"{line[:20].decode(errors='replace')!r} in place of a record")
        head = [line]
        while len(head) < 1000 and (line := self.file.readline(LARGEST)).strip():
            head.append(line)
        size = _fields(head).get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", size) or int(size) > LARGEST:
            raise ValueError(f"its Content-Length is {size!r}; allowed is a number up to {LARGEST}")
        content = self.file.read(int(size))
        if len(content) < int(size):
            raise BrokenError("the file ends before the record; it is probably truncated")
        if self.file.readline(LARGEST).strip():
            raise ValueError("its Content-Length does not match its end")
        return head, content

    def _row(self, head: Sequence[bytes], content: bytes) -> dict[str, Any]:
        fields, text = _fields(head), None
        kind, url = fields.get("warc-type"), fields.get("warc-target-uri", "").strip("<>")
        if kind == "conversion" and fields.get("content-type", "").lower().startswith("text/plain"):
            text = content.decode(errors="replace")
        elif kind == "response" and re.match("https?:", url.lower()) and re.match(rb"HTTP/\S+ 200\s", content):
            text = self._html(url, *_BLANK.split(content, 1))
        return {"id": fields.get("warc-record-id"), "url": url or None, "date": fields.get("warc-date"), "text": text}

    def _html(self, url: str, head: bytes, body: bytes = b"") -> str | None:
        """Return the HTML of a response, unpacked and decoded as Scrapy does; None if the response is not HTML."""
        from scrapy import Request
        from scrapy.http import Headers, HtmlResponse, Response
        from scrapy.responsetypes import responsetypes

        fields = _fields(head.splitlines())
        if fields.get("transfer-encoding", "").lower().endswith("chunked"):
            body = _joined(body)
        headers = Headers({name: fields[name] for name in ("content-type", "content-encoding") if fields.get(name)})
        if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            headers.pop("Content-Encoding", None)  # the crawler has unpacked it
        try:
            response: Any = self._unpacking.process_response(Request(url), Response(url, headers=headers, body=body))
        except Exception as error:  # of any of the packages that unpack
            raise ValueError(f"its content can't be unpacked: {error}") from error
        kind = responsetypes.from_args(headers=response.headers, body=response.body[:_SNIFFED])
        if not response.body or not issubclass(kind, HtmlResponse):
            return None
        return HtmlResponse(url, headers=response.headers, body=response.body).text

    @cached_property
    def _unpacking(self) -> Any:
        from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
        from scrapy.settings import Settings
        from scrapy.signalmanager import SignalManager

        settings = Settings({"DOWNLOAD_MAXSIZE": LARGEST, "DOWNLOAD_WARNSIZE": LARGEST})
        crawler: Any = SimpleNamespace(settings=settings, stats=None, signals=SignalManager())
        return HttpCompressionMiddleware(crawler=crawler)


def _fields(head: Sequence[bytes]) -> dict[str, str]:
    """Return the fields of a head by their names in lower case."""
    parts = (line.decode(errors="replace").partition(":") for line in reversed(head))
    return {name.strip().lower(): value.strip() for name, _, value in parts}


def _joined(body: bytes) -> bytes:
    """Join the chunks of a body."""
    parts, at = list[bytes](), 0
    while found := _SIZE.match(body, at):
        at = found.end() + int(found[1], 16)
        parts.append(body[found.end() : at])
        at += 2
    return b"".join(parts) or body
