"""Join pairs of members to clusters by union-find. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Unions(Generic[T]):
    """Sets of members that were joined, directly or through other members.

    Tarjan 1975, Efficiency of a good but not linear set union algorithm. Paths are halved.
    """

    def __init__(self) -> None:
        self._above: dict[T, T] = {}

    def top(self, member: T) -> T:
        """Return the representative of a member's set. A new member is a set of its own."""
        above = self._above
        above.setdefault(member, member)
        while above[member] != member:
            above[member] = above[above[member]]
            member = above[member]
        return member

    def join(self, *members: T) -> None:
        """Join the sets of these members to one set."""
        first, *others = map(self.top, members)
        for other in others:
            self._above[self.top(other)] = self.top(first)

    def clusters(self) -> list[list[T]]:
        """Return the sets of two or more members. Sets and members are in the order in which members were added."""
        sets: dict[T, list[T]] = {}
        for member in self._above:
            sets.setdefault(self.top(member), []).append(member)
        return [cluster for cluster in sets.values() if len(cluster) > 1]
