"""Learn which facts of a host are counters: numbers or codes that change at each visit. No I/O.

Views, positions and tokens say nothing of the record. A fact is a counter if it changed at nearly all visits to URLs
whose text and other facts stayed the same. A price, a date or a word is never one, however often it changes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from ..facts import Kind, differing, names_in
from ..text.urls import host

SEVERAL = 4  # visits at which a counter must have changed
SHARE = 0.9  # the share of all visits at which it must have changed
HOSTS = 1000  # hosts whose visits are remembered; those visited longest ago are forgotten


class Counters:
    """The known counters of each host, and the visits from which more are learned."""

    def __init__(self) -> None:
        self._known: dict[str, set[int]] = {}
        self._visits: OrderedDict[str, tuple[Counter[int], Counter[int]]] = OrderedDict()

    def of(self, url: str | None) -> set[int]:
        """Return the hashed names of the counters on a URL's host."""
        return self._known.get(host(url or ""), set()) if self._known else set()

    def visit(self, url: str, new: bytes, held: bytes) -> Iterator[int]:
        """Learn from the facts of two visits to a URL whose text is the same. Yield the names of new counters."""
        changed = differing(new, held)
        codes = names_in(new, (Kind.CODE,)) & names_in(held, (Kind.CODE,))
        if not changed <= codes:  # something else changed too
            return
        name = host(url)
        visits, changes = self._visits.setdefault(name, (Counter(), Counter()))
        self._visits.move_to_end(name)
        if len(self._visits) > HOSTS:
            self._visits.popitem(last=False)
        visits.update(codes)
        changes.update(changed)
        for each in changed - self.of(url):
            if changes[each] >= max(SEVERAL, SHARE * visits[each]):
                self.know(name, each)
                yield each

    def know(self, name: str, fact: int, *, is_counter: bool = True) -> None:
        """Note that a fact of a host is a counter, or is none."""
        known = self._known.setdefault(name, set())
        (known.add if is_counter else known.discard)(fact)

    def known(self) -> Iterator[tuple[str, int]]:
        """Yield the known counters: the host, and the hashed name of the field."""
        yield from ((name, fact) for name, facts in self._known.items() for fact in sorted(facts))
