"""Findings of a verification: what is wrong, what that costs, and what to do. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

COPY = "bring back a copy of the store, or start another one with NEARDUP_STORE"
NOTHING = "nothing: the store can be read in spite of it"


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    what: str
    costs: str
    to_do: str = COPY
    harmless: bool = False
    """The store is whole in spite of it."""


@dataclass
class Survey:
    """What was read of a store, and all that is wrong with it."""

    read: Counter[str]
    """How much there is, by kind."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.harmless for finding in self.findings)


class Notes:
    """Counts what is wrong in one namespace by kind, each kind with its first example."""

    def __init__(self, namespace: str) -> None:
        self._suffix = f" (namespace {namespace!r})" if namespace else ""
        self._kinds: dict[str, tuple[Finding, int, str]] = {}

    def add(
        self, what: str, costs: str, example: object = "", to_do: str = COPY, *, count: int = 1, harmless: bool = False
    ) -> None:
        """Add something of a kind: in `what`, # stands for how many there are of it."""
        if count:
            finding, before, first = self._kinds.get(what, (Finding(what, costs, to_do, harmless), 0, str(example)))
            self._kinds[what] = finding, before + count, first

    def findings(self) -> Iterator[Finding]:
        """Yield one finding a kind."""
        for what, (finding, count, example) in self._kinds.items():
            first = "; the first: " if count > 1 else ": "
            said = f"{what.replace('#', str(count), 1)}{self._suffix}{first if example else ''}{example}"
            yield Finding(" ".join(said.split()), finding.costs, finding.to_do, finding.harmless)
