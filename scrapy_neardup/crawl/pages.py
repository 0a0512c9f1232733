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


class _Output:
    """The output of the callback for one page."""

    __slots__ = ("claim", "has_ended", "items", "requests")

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.items = 0
        self.has_ended = False
        self.claim: Claim | None = None
        """The committed claim of an item of the page; None so far."""


class Pages:
    """Stores the validators of a page once its callback has ended and its only item is committed.

    The item is often committed before the callback ends, so both events are awaited.
    """

    def __init__(self, neardup: NearDup) -> None:
        self.is_active = neardup.config.conditional and neardup.config.action != "audit"
        self._neardup = neardup
        self._outputs: WeakKeyDictionary[Response, _Output] = WeakKeyDictionary()

    def collect(self, response: Response, output: Any) -> None:
        """Note a request or an item that the spider made from a response."""
        found = self._output(response)
        if isinstance(output, Request):
            found.requests.append(output)
        elif output is not None:
            found.items += 1

    def end(self, response: Response) -> None:
        """Note that the callback for a response has ended without an error."""
        self._output(response).has_ended = True
        self._store_if_complete(response)

    def note_commit(self, response: Response | None, claim: Claim) -> None:
        """Note that an item of a response was committed."""
        if self.is_active and response is not None:
            self._output(response).claim = claim
            self._store_if_complete(response)

    def _output(self, response: Response) -> _Output:
        return self._outputs.setdefault(response, _Output())

    def _store_if_complete(self, response: Response) -> None:
        found, spider = self._output(response), self._neardup.crawler.spider
        if not (found.has_ended and found.claim and found.items == 1 and spider and _is_direct(response)):
            return
        if packed := pack(response, found.requests, spider):
            held = (found.claim.match or found.claim).signature
            self._neardup.access.later(self._store, response.url, held, packed)

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
