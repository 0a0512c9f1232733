"""Adjust the verdict on an item, given the earlier items of the run and the response of the item."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from ..matching.claim import Claim
from ..signature import Signature
from ..verdict import Verdict
from .detours import mark, redirects
from .outcome import is_of_page
from .waitlist import is_sent_after_all

if TYPE_CHECKING:
    from .extension import NearDup


class Judge:
    """Adjusts the verdicts of claims, and decides which items to drop."""

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        self._ask = neardup.access.ask
        self._given: WeakKeyDictionary[Response, set[Signature]] = WeakKeyDictionary()
        self._delivering: dict[Signature, Claim] = {}
        """By held document: the pending claim of the first item of this run that repeats the document."""

    async def judge_by_run(self, claim: Claim) -> None:
        """Change the verdict on an item that repeats a held document.

        The first such item of the run becomes a revisit, and further ones become duplicates. This applies to
        NEARDUP_REVISIT = "keep" only. With the other values, verdicts do not depend on the run.
        """
        if claim.match is None or self._neardup.config.revisit != "keep":
            return
        document = claim.match.signature
        while other := self._delivering.get(document):
            await self._neardup.access.settled(other)
        self._delivering[document] = claim
        try:
            # An item of a preferred host is not dropped for an item of another host.
            by_own_host = claim.document.url in self._neardup.dedup.matcher.preference
            is_delivered = await self._ask(
                partial(self._neardup.dedup.deliveries.is_delivered, document, by_own_host=by_own_host)
            )
        except BaseException:  # no other claim may wait for this one
            del self._delivering[document]
            raise
        if is_delivered:
            del self._delivering[document]
        else:
            claim.when_settled(partial(self._delivering.pop, document))
        claim.verdict = replace(claim.verdict, status="duplicate" if is_delivered else "revisit")

    async def judge_by_response(self, claim: Claim, response: Response | None) -> None:
        """Adjust the verdict on an item, given its response.

        The verdict changes if the response had earlier items, or was fetched in place of the original. Also count
        rescued dead links, and wrong skips that a recheck found.
        """
        request = response.request if response else None
        if response is None or request is None:
            return
        given, signature = self._given.setdefault(response, set()), (claim.match or claim).signature
        first, again, dead = not given, signature in given, mark(request, "neardup_dead_link")
        given.add(signature)
        if not first:
            self._judge_further(claim, response, again=again)
        elif claim.match and (dead or is_sent_after_all(request)):
            await self._judge_stand_in(claim, claim.match.signature)
        repeats = claim.verdict.status != "unique"
        if first and dead:
            await self._judge_rescue(claim, response, dead)
        if first and not repeats and (rechecked := _rechecked(request)):
            self._neardup.count("requests/wrongly_skipped")
            self._neardup.rechecks.fail(rechecked)

    def _judge_further(self, claim: Claim, response: Response, *, again: bool) -> None:
        """Adjust the verdict on an item that is not the first of its response.

        If a text is twice on one page, the second item is a duplicate, not a revisit.
        """
        if again and self._neardup.config.revisit != "keep":
            claim.verdict = replace(claim.verdict, status="duplicate")
        if is_of_page(claim.document, response):
            claim.verdict = replace(claim.verdict, changed=False)
            if not again:
                self._neardup.outcomes.note_several_items(response)

    async def _judge_stand_in(self, claim: Claim, document: Signature) -> None:
        """Make a copy that was fetched in place of its original a revisit, unless the run has the content already.

        If the original's own URL was not the last to return the content, the copy takes the place of the original.
        """
        deliveries = self._neardup.dedup.deliveries
        if not await self._ask(deliveries.is_delivered, document):
            claim.verdict = replace(claim.verdict, status="revisit")
            claim.is_successor = bool(await self._ask(deliveries.is_deserted, document))

    async def _judge_rescue(self, claim: Claim, response: Response, url: str) -> None:
        """Count a dead link as rescued if a copy has the content of the link's last fetch, else as unconfirmed.

        Also mark the response of the copy.
        """
        dead = await self._ask(self._neardup.dedup.store.resolve, url)
        same = bool(claim.match and dead and claim.match.signature is dead.signature)
        response.meta["neardup_rescued"] = same
        self._neardup.count("dead_links/rescued" if same else "dead_links/unconfirmed")

    def is_dropped(self, verdict: Verdict) -> bool:
        """Return whether an item repeats an item that is in the feeds already.

        With NEARDUP_REVISIT = "keep" only the feed of this run counts. Otherwise the feeds of earlier runs count too,
        unless the content of the URL has changed.
        """
        if self._neardup.config.revisit == "keep":
            return verdict.status == "duplicate"
        return verdict.status != "unique" and not verdict.changed


def _rechecked(request: Request) -> str | None:
    """Return the URL that a request rechecks, directly or after a redirect; None if the request is no recheck."""
    url = request.meta.get("neardup_recheck")
    return url if url in (request.url, *redirects(request)[0][:1]) else None
