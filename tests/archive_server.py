"""A web archive on a loopback address: a TimeGate (RFC 7089), a CDX server and the archived copies."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scrapy.http import TextResponse
from site_server import Page, Site, html

STAMP = "%Y%m%d%H%M%S"


class WebArchive(Site):
    """Serves archived copies at `/web/TIMESTAMP/URL`. `/timegate/URL` and `/cdx?…` find the copy nearest to a time."""

    def keep(self, url: str, time: datetime, text: str) -> str:
        """Archive a text, and return the URL of the copy."""
        path = f"/web/{time:{STAMP}}/{url}"
        self.pages[path] = Page(html(text), headers={"Memento-Datetime": format_datetime(time, usegmt=True)})
        return self.url + path

    def answer(self, path: str, headers: dict[str, str]) -> Page:
        if path.startswith("/timegate/"):
            wanted = parsedate_to_datetime(headers["Accept-Datetime"]) if "Accept-Datetime" in headers else None
            return self._gate(path.removeprefix("/timegate/"), wanted)
        if path.startswith("/cdx?"):
            query = parse_qs(urlsplit(path).query)
            stamps = self._stamps(query["url"][0], query["closest"][0])
            return Page("\n".join(f"key {stamp} {query['url'][0]} text/html 200" for stamp in stamps[:1]))
        return super().answer(path, headers)

    def _gate(self, url: str, wanted: datetime | None) -> Page:
        if not (stamps := self._stamps(url, f"{wanted:{STAMP}}" if wanted else "99999999999999")):
            return Page(status=404)
        return Page(status=302, location=f"{self.url}/web/{stamps[0]}/{url}", headers={"Vary": "accept-datetime"})

    def _stamps(self, url: str, wanted: str) -> list[str]:
        """Return the timestamps of the copies of a URL, nearest first."""
        stamps = [path.split("/", 3)[2] for path in self.pages if path.startswith("/web/") and path.endswith(f"/{url}")]
        return sorted(stamps, key=lambda stamp: abs(_seconds(stamp) - _seconds(wanted)))


def _seconds(stamp: str) -> float:
    return datetime.strptime(min(stamp, "99991231235959"), STAMP).timestamp()


async def cdx(url: str, seen: datetime, download: Any) -> str | None:
    """Return the URL of the archived copy that the CDX server of the tests finds. This is a value of ARCHIVE_URL.

    The dead URL tells the port of that server: `/page-PORT.html`.
    """
    archive = "http://127.0.0.3:" + urlsplit(url).path.rpartition("-")[2].partition(".")[0]
    response: TextResponse = await download(f"{archive}/cdx?url={url}&closest={seen:{STAMP}}&limit=1")
    if not response.text:
        return None
    _, stamp, original, *_ = response.text.split()
    return f"{archive}/web/{stamp}/{original}"


def plain(url: str, seen: datetime, download: Any) -> str:
    return "http://127.0.0.3:" + urlsplit(url).path.rpartition("-")[2].partition(".")[0] + f"/timegate/{url}"


def nothing(url: str, seen: datetime, download: Any) -> None:
    return None


def wrong(url: str, seen: datetime, download: Any) -> str:
    return "ftp://127.0.0.3/a"


def broken(url: str, seen: datetime, download: Any) -> str:
    raise RuntimeError("the archive is closed")
