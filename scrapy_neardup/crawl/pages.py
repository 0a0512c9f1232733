"""Store the validators of held pages, with the requests that the spider makes from them (NEARDUP_CONDITIONAL)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from ..matching.claim import Claim
from ..mirrors.advice import is_in_share
from ..signature import Link, Signature
from .detours import is_ours, redirects
from .validators import pack

if TYPE_CHECKING:
    from .extension import NearDup


class Pages:
    """Stores the validators of a page once its only item is committed.

    The only item of a page comes after all its requests: see `ItemOrigins`.
    """

    def __init__(self, neardup: NearDup) -> None:
        self.is_active = neardup.config.conditional and neardup.config.action != "audit"
        self._neardup = neardup
        self._requests: WeakKeyDictionary[Response, list[Request]] = WeakKeyDictionary()

    def collect(self, response: Response, output: Any) -> None:
        """Note a request that the spider made from a response."""
        if isinstance(output, Request):
            self._requests.setdefault(response, []).append(output)

    def note_commit(self, response: Response | None, claim: Claim) -> None:
        """Store the page of an item that was committed, if it is the only one of its page."""
        neardup = self._neardup
        if not (self.is_active and response is not None and neardup.outcomes.gives_one_item(response)):
            return
        spider = neardup.crawler.spider
        if spider and _is_direct(response) and (packed := pack(response, self._requests.get(response, ()), spider)):
            held = (claim.match or claim).signature
            neardup.access.later(self._store, response.url, held, packed)

    # In the store

    def _store(self, url: str, held: Signature, packed: bytes) -> None:
        link = self._firm_link(url)
        if link and link.signature is held:
            self._neardup.dedup.store.record(replace(link, page=packed))

    def held(self, url: str) -> Link | None:
        """Return the link of a URL that is to be requested on a condition, with the packed page; None for other URLs.

        The share NEARDUP_RECHECK of such URLs is requested in full, in case the server is wrong.
        """
        link, run = self._firm_link(url), self._neardup.dedup.store.run
        return link if link and link.page and not is_in_share(url, run, self._neardup.config.recheck) else None

    def _firm_link(self, url: str) -> Link | None:
        """Return the link of a URL that returns one held document of its own; None for any other URL."""
        link = self._neardup.dedup.store.resolve(url)
        return link if link and link.signature and link.firm and not link.is_copy else None


def _is_direct(response: Response) -> bool:
    """Return whether a response is the page at the requested URL: no redirect, no error, and no detour."""
    request = response.request
    if request is None or response.status != 200 or not is_ours(request) or redirects(request)[0]:
        return False
    return response.url == request.url and "neardup_detour" not in request.meta
