"""All parts of a store together: their documents by number, and URLs by hash. No I/O but the mapped memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import numpy as np

from ..index.packed import Array
from ..signature import Link, Signature
from .documents import Documents
from .part import Part, Reading
from .records import NOWHERE, among, link


class Parts(Documents):
    """What the parts hold: the documents, and the links to them."""

    def resolve(self, url: int) -> Link | None:
        """Return what is known of a URL, given its hash."""
        found = self._last(url)
        return self._link(*found) if found else None

    def last_seen(self, url: int) -> float:
        """Return when a URL was last seen, given its hash, though that be forgotten; -inf for one that never was."""
        found = self._last(url)
        return float(self.all[found[0]].columns["link_rows"]["seen"][found[1]]) if found else -inf

    def knows(self, url: int) -> bool:
        """Say whether a part has a link of a URL, given its hash, be it forgotten or to what is not found."""
        return self._last(url) is not None

    def _last(self, url: int) -> tuple[int, int] | None:
        for at in range(len(self.all) - 1, -1, -1):
            with Reading(self.all[at]):
                place = self.all[at].link_of(url)
            if place is not None:
                return at, place
        return None

    def _link(self, at: int, place: int) -> Link | None:
        """Return a link; None where its document, or the link itself, is forgotten."""
        part = self.all[at]
        with Reading(part):
            row = part.columns["link_rows"][place]
            if self.lost.has_segment(at, row["segment"]):
                return None
            number = int(row["document"])
            signature = self.numbered(number) if number < self.last else None
            found = link(part.columns, place, signature, part.names)
        return None if found.void or (signature is None and number != NOWHERE) else found

    def links(self, signature: Signature) -> Iterator[tuple[int, Link]]:
        """Yield the links to a document, each with the hash of its URL, oldest first."""
        for at, part in enumerate(self.all if signature.number is not None else ()):
            with Reading(part):
                places = list(part.links_of(signature.number or 0))
                urls = part.columns["link_rows"]["url"][places].tolist()
            for place, url in zip(places, urls, strict=True):
                if self._last(url) == (at, place) and (found := self._link(at, place)):
                    yield url, found

    def current_links(self, at: int) -> Array:
        """Return which links of a part hold: those that no later one replaced, and that are not forgotten."""
        urls = self.all[at].columns["link_rows"]["url"]
        current = _last_of_each(urls)
        for later in self.all[at + 1 :]:
            current &= ~among(urls, later.columns["link_rows"]["url"])
        with Reading(self.all[at]):
            return current & ~self.lost.links(at)

    def all_links(self) -> Iterator[Link]:
        return (link for _, _, link in self.placed_links())

    def placed_links(self) -> Iterator[tuple[Part, int, Link]]:
        """Yield all links, each with its part and its place there."""
        for at, part in enumerate(self.all):
            for place in self.current_links(at).nonzero()[0].tolist():
                if link := self._link(at, place):
                    yield part, place, link

    def seen_before(self, when: float, since: Mapping[int, float], replaced: Sequence[int]) -> Iterator[Signature]:
        """Yield the documents that no URL gave since then.

        `since`: by number, when links in RAM saw them; `replaced`: the hashes of URLs that RAM knows more of.
        """
        last = np.full(self.last, -np.inf)
        for at, part in enumerate(self.all):
            rows = part.columns["link_rows"][self.current_links(at)]
            rows = rows[(rows["document"] < self.last) & ~among(rows["url"], np.array(replaced, np.uint64))]
            np.maximum.at(last, rows["document"], rows["seen"])
            last[part.first : part.last] = np.maximum(
                last[part.first : part.last], part.columns["documents"]["first_seen"]
            )
        for number, seen in since.items():
            last[number] = max(last[number], seen)
        yield from filter(None, map(self.numbered, (last < when).nonzero()[0].tolist()))


def _last_of_each(values: Array) -> Array:
    """Say which are the last of several equal ones, or the only ones."""
    ordered = np.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]  # few: most URLs are written once
    last = np.ones(len(values), bool)
    places = among(values, repeated).nonzero()[0]
    last[places] = False
    _, ends = np.unique(values[places][::-1], return_index=True)
    last[places[len(places) - 1 - ends]] = True
    return last
