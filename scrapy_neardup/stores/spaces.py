"""What was read of one namespace of a store, and what its rows say together. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from ..signature import Key
from .inspecting import Finding, Mapped
from .rows import costs, named
from .runs import Run

_NEVER = "the store can be read in spite of it; bring back a copy to have this again"


@dataclass
class Space:
    """What was read of one namespace."""

    name: str
    runs: dict[str, Run | None] = field(default_factory=dict)
    """None: the record is damaged."""
    documents: dict[tuple[str, int], int | None] = field(default_factory=dict)
    """How many each segment has; None: it is damaged."""
    links: dict[tuple[str, int], list[Key]] = field(default_factory=dict)
    """Documents of other segments that each leads to."""
    parts: list[Mapped] = field(default_factory=list)
    has_meta: bool = False
    lacks_parts: bool = False
    """Their list is damaged."""

    def lacks(self, key: Key) -> bool:
        """Say whether a document that a link leads to was never there, as far as all that could have it was read."""
        run, number, place = key
        if (run, number) in self.documents:
            count = self.documents[run, number]
            return count is not None and place >= count
        known = self.runs.get(run)
        if self.lacks_parts or (run in self.runs and known is None) or (known and known.has_forgotten(number)):
            return False
        # A document that was forgotten may have been removed from its part since.
        return not any(each.part is None or each.part.segment_place(run, number) is not None for each in self.parts)


def contradictions(space: Space) -> Iterator[Finding]:
    """Yield what is missing, as far as all that could have it was read."""
    suffix = f" (namespace {unquote(space.name)!r})" if space.name else ""
    if (space.documents or space.parts) and not space.has_meta:
        yield Finding(f"the record of what the store was made with is missing{suffix}", costs("meta"))
    for run in dict.fromkeys(run for run, _ in space.documents if run not in space.runs):
        yield Finding(f"the record of run {run} is missing{suffix}", costs("run"), _NEVER)
    for (run, number), keys in space.links.items():
        if lost := sum(map(space.lacks, keys)):
            what = f"{named(f'segment/{space.name}/{run}/{number}')}: {lost} links lead to documents that do not exist"
            yield Finding(what, f"{lost} URLs are fetched again", _NEVER)
