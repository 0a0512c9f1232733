"""Stop requests to traps, directories of a host where many URLs have the same content."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from scrapy.utils.datatypes import LocalCache

from ..settings import Config
from ..text.shapes import site

if TYPE_CHECKING:
    from ..matching.claim import Claim

logger = logging.getLogger(__name__)

MOST = 100_000  # directories, and pairs of a directory and a document, that are remembered


class Traps:
    """Counts the copies of each document by directory, and closes a directory that has too many of one."""

    def __init__(self, config: Config) -> None:
        self._max_copies = config.max_copies if config.action != "audit" else 0
        self._copies: LocalCache[tuple[str, str], int] = LocalCache(MOST)
        self._closed: LocalCache[str, bool] = LocalCache(MOST)

    def judge(self, url: str, claim: Claim) -> None:
        """Count the copy that a URL gave."""
        if not self._max_copies or not claim.is_copy or claim.match is None:
            return
        place = _place(url)
        pair = place, claim.match.signature.id
        self._copies[pair] = count = self._copies.get(pair, 0) + 1
        if place and count == self._max_copies and place not in self._closed:
            self._closed[place] = True
            logger.warning(
                "%d URLs such as %s have the content of %s. No more URLs of this directory are requested in this run "
                "(NEARDUP_MAX_COPIES)", count, url, claim.match.signature.url,
            )  # fmt: skip

    def has(self, url: str) -> bool:
        """Return whether the directory of a URL is closed."""
        return bool(self._closed) and _place(url) in self._closed


def _place(url: str) -> str:
    """Return the site, the directory and the names of the query parameters of a URL; "" if it is not HTTP."""
    if not site(url):
        return ""
    parts = urlsplit(url)
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return f"{site(url)}{parts.path.rpartition('/')[0]}/?{'&'.join(names)}"
