"""Operations that are to be sent, and those that are remembered in case that the server loses them. No I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from ..base import META, Entry, StoreError
from .failures import is_damage
from .packing import Operation, moved

BATCH = 100  # operations of one call of a script
REMEMBERED = 10_000  # rows that are written again if the server loses them: some 10 MB
MOST = 100_000  # operations that wait


class Writes:
    """The queue. Any operation may be done twice, but in their order."""

    def __init__(self) -> None:
        self.held: dict[bytes, tuple[Entry, Operation]] = {}
        """Pending documents of this process, by place."""
        self.lost = 0
        """How many rows the server had lost, of those that were written again."""
        self.failure: Exception | None = None
        """Why something was not written, since this was last asked."""
        self._again: list[Operation] = []
        self._queue: list[Operation] = []
        self._remembered: OrderedDict[bytes, Operation] = OrderedDict()
        self._named: dict[tuple[str, str], Operation] = {}
        self._one_by_one = False

    def __len__(self) -> int:
        return len(self._again) + len(self._queue)

    def add(self, *operations: Operation) -> None:
        """Queue operations. Raise StoreError where too many wait."""
        if len(self._queue) + len(operations) > MOST:
            raise StoreError(f"more than {MOST:,} rows wait for the server")
        self._queue += operations
        for operation in operations:
            self._remember(operation)

    def _remember(self, operation: Operation) -> None:
        name, key = operation[:2]
        if name == "set":
            self.remember_named(operation)
        else:
            self._remembered.pop(key, None)
        if name == "row":
            self._remembered[key] = operation
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)

    def remember_named(self, operation: Operation) -> None:
        """Remember a row with a name, so that a server that has lost it gets it again."""
        self._named[operation[1], operation[2]] = operation

    def repeat(self, ordinals: dict[bytes, bytes]) -> None:
        """Queue all that is remembered once more; `ordinals`: of runs that have others now."""
        self._queue = [moved(each, ordinals) for each in self._queue]
        self._remembered = OrderedDict((each[1], each) for each in self._moved(self._remembered.values(), ordinals))
        held = self._moved((operation for _, operation in self.held.values()), ordinals)
        entries = (entry for entry, _ in self.held.values())
        self.held = {each[1]: (entry, each) for entry, each in zip(entries, held, strict=True)}
        named = [[*each[:4], each[1] == META] for each in self._named.values()]  # others may have written newer ones
        self._again = [*named, *self._remembered.values(), *(each for _, each in self.held.values())]

    @staticmethod
    def _moved(operations: Iterable[Operation], ordinals: dict[bytes, bytes]) -> list[Operation]:
        return [moved(each, ordinals) for each in operations]

    def batches(self) -> list[list[Operation]]:
        """Return what waits, as it is to be sent; only some of it where that failed."""
        size = 1 if self._one_by_one else BATCH
        made = (some[at : at + size] for some in (self._again, self._queue) for at in range(0, len(some), size))
        return list(islice(made, 1 if self.failure and not self._one_by_one else None))

    def settle(self, batches: Sequence[Sequence[Operation]], results: Sequence[Any]) -> None:
        """Take in the answers; what was refused waits on, but for what can never be written."""
        self.failure = self.failure if is_damage(self.failure) else None
        done_again = done = 0
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, Exception):
                self.failure = result
                if not is_damage(result):
                    break
                if len(batch) > 1:
                    self._one_by_one = True  # so that the others are written
                    break
            if done_again < len(self._again):
                done_again += len(batch)
                self.lost += 0 if isinstance(result, Exception) else int(result)
            else:
                done += len(batch)
        del self._again[:done_again], self._queue[:done]
        self._one_by_one = self._one_by_one and len(self) > 0
