"""Union-find: join pairs to clusters. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Unions(Generic[T]):
    """Sets of members that were joined, directly or by way of others.

    Tarjan 1975, Efficiency of a good but not linear set union algorithm; by path halving.
    """

    def __init__(self) -> None:
        self._above: dict[T, T] = {}

    def top(self, member: T) -> T:
        """Return the member that stands for the set of this one; a new member is a set of its own."""
        above = self._above
        above.setdefault(member, member)
        while above[member] != member:
            above[member] = above[above[member]]
            member = above[member]
        return member

    def join(self, *members: T) -> None:
        """Make one set of those of all members."""
        first, *others = map(self.top, members)
        for other in others:
            self._above[self.top(other)] = self.top(first)

    def clusters(self) -> list[list[T]]:
        """Return the sets of two members or more, in the order in which their members came."""
        sets: dict[T, list[T]] = {}
        for member in self._above:
            sets.setdefault(self.top(member), []).append(member)
        return [cluster for cluster in sets.values() if len(cluster) > 1]
