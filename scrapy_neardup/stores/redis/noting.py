"""What was found to be wrong in one namespace of a server, each kind of it told once. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..damage import DAMAGE
from ..inspecting import Finding

COPY = "bring back a copy of the server's data, or start another store with NEARDUP_STORE or NEARDUP_NAMESPACE"
HARMLESS = "the store can be read in spite of it"


@dataclass
class Notes:
    """Counts what is wrong by kind, each with what it costs and an example."""

    namespace: str
    _kinds: dict[str, tuple[str, int, str, bool]] = field(default_factory=dict)

    def add(self, what: str, costs: str, example: object = "", *, count: int = 1, harmless: bool = False) -> None:
        """Take note of something; in `what`, # stands for how many there are of it."""
        if count:
            _, before, first, _ = self._kinds.get(what, (costs, 0, str(example), harmless))
            self._kinds[what] = costs, before + count, first, harmless

    @contextmanager
    def reading(self, what: str, costs: str, example: object) -> Iterator[None]:
        """Take note of what can't be read in here."""
        try:
            yield
        except DAMAGE as error:
            why = " ".join(str(error).split())
            self.add(f"{what} can't be read", costs, f"{example}: {why}")

    def findings(self) -> Iterator[Finding]:
        space = f" (namespace {self.namespace!r})" if self.namespace else ""
        for what, (costs, count, example, harmless) in self._kinds.items():
            shown = f"; the first: {example}" if example and "#" in what else f": {example}" if example else ""
            text = f"{what.replace('#', str(count), 1)}{space}{shown}"
            yield Finding(text, costs, HARMLESS if harmless else COPY, harmless=harmless)
