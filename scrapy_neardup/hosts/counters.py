"""Learn which facts of a host are counters: numbers or codes that change at each visit. No I/O.

Views, positions and tokens say nothing of the record. A fact is a counter if it changed at most visits to records whose
text and other facts stayed the same. A price, a date or a word is never one, however often it changes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

from ..facts import COUNTING, differing, names_in
from ..text.urls import host

SEVERAL = 4  # visits at which a counter must have changed, at one of them beside a text
SHARE = 0.5  # the share of all visits at which it must have changed
HOSTS = 1000  # hosts whose visits are remembered; those visited longest ago are forgotten


class _Visits:
    """The visits to a host: for each fact, all of them, those at which it changed, and whether it was beside a text."""

    __slots__ = ("all", "beside_text", "changed")

    def __init__(self) -> None:
        self.all: Counter[int] = Counter()
        self.changed: Counter[int] = Counter()
        self.beside_text: set[int] = set()

    def count(self, facts: Iterable[int], changed: Iterable[int], *, has_text: bool) -> None:
        self.all.update(facts)
        self.changed.update(changed)
        self.beside_text.update(changed if has_text else ())

    def show_counter(self, fact: int) -> bool:
        changes = self.changed[fact]
        return fact in self.beside_text and changes >= max(SEVERAL, SHARE * self.all[fact])


class Counters:
    """The known counters of each host, and the visits from which more are learned."""

    def __init__(self) -> None:
        self._known: dict[str, set[int]] = {}
        self._visits: OrderedDict[str, _Visits] = OrderedDict()

    def of(self, url: str | None) -> set[int]:
        """Return the hashed names of the counters on a URL's host."""
        return self._known.get(host(url or ""), set()) if self._known else set()

    def visit(self, url: str, new: bytes, held: bytes, *, has_text: bool) -> Iterator[int]:
        """Learn from the facts of two visits to a record whose text is the same. Yield the names of new counters.

        `has_text`: whether the text is long. The numbers of records without one may be all that they say.
        """
        changed = differing(new, held)
        facts = names_in(new, COUNTING) & names_in(held, COUNTING)
        if not changed <= facts:  # something else changed too
            return
        name = host(url)
        visits = self._visits.setdefault(name, _Visits())
        self._visits.move_to_end(name)
        if len(self._visits) > HOSTS:
            self._visits.popitem(last=False)
        visits.count(facts, changed, has_text=has_text)
        for each in filter(visits.show_counter, facts - self.of(url)):
            self.know(name, each)
            yield each

    def know(self, name: str, fact: int, *, is_counter: bool = True) -> None:
        """Note that a fact of a host is a counter, or is none."""
        known = self._known.setdefault(name, set())
        (known.add if is_counter else known.discard)(fact)

    def known(self) -> Iterator[tuple[str, int]]:
        """Yield the known counters: the host, and the hashed name of the field."""
        yield from ((name, fact) for name, facts in self._known.items() for fact in sorted(facts))
