"""Documents that the server is yet to know: those that passed while it was away, and those that it has lost."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...detectors import Exact
from ...signature import Link, Signature

if TYPE_CHECKING:
    from .store import RedisStore

MOST = 10_000  # documents that are kept in memory, of either kind: some 25 MB each
AT_ONCE = 50  # documents that are entered at a step
Urls = dict[int, Link]
"""The last link of each URL, by its hash."""


class Late:
    """Enters documents that were decided of without the server, or that it forgot, some at a time."""

    def __init__(self, store: RedisStore) -> None:
        self.entered = 0
        """How many were entered late."""
        self.dropped = 0
        """How many were not, since too many waited."""
        self._store = store
        self._waiting: deque[tuple[Signature, list[Link]]] = deque()
        self._own: OrderedDict[Signature, Urls] = OrderedDict()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def remember(self, signature: Signature, links: Iterable[Link]) -> None:
        """Have a document entered, and linked; of too many the oldest are let go of."""
        if len(self._waiting) >= MOST:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append((signature, list(links)))

    def committed(self, signature: Signature) -> None:
        """Keep what this process committed, in case that the server loses it."""
        self._own[signature] = {}
        if len(self._own) > MOST:
            self._own.popitem(last=False)

    def linked(self, link: Link) -> None:
        """Keep which URLs led to it."""
        if link.signature and (urls := self._own.get(link.signature)) is not None:
            urls[link.digest] = link

    def withdrawn(self, signature: Signature) -> None:
        self._own.pop(signature, None)

    def repeat(self, signature: Signature) -> None:
        """Have a document entered again that was committed when others had dropped it."""
        if signature in self._own:
            self.remember(signature, self._own.pop(signature).values())

    def repeat_all(self) -> int:
        """Have all that was committed be entered again where it is held no more; return how many that are."""
        lost = [signature for signature in self._own if signature.number is None]
        for signature in lost:
            self.repeat(signature)
        return len(lost)

    def step(self) -> bool:
        """Enter some; say whether there are more. Raise StoreError, and keep them then."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._enter(*self._waiting[0])
            self._waiting.popleft()
            self.entered += 1
        return bool(self._waiting)

    def _enter(self, signature: Signature, links: Iterable[Link]) -> None:
        """Have a document be held, or its URLs lead to one of the same text that is held by now."""
        store = self._store
        held = next((held for _, held in store.find(signature.fingerprints) if _is_same(held, signature)), None)
        if held is None:
            store.add(signature)
            store.commit(signature)
        for link in links:
            mirror = link.mirror or held not in (None, signature)
            store.record(replace(link, signature=held or signature, mirror=mirror))


def _is_same(one: Signature, other: Signature) -> bool:
    """Say whether two are of the same text."""
    exact = (each.fingerprints.get(Exact.name, ()) for each in (one, other))
    return one.sketch == other.sketch and len(set(exact)) == 1
