"""Queue write operations, and remember the last ones to repeat them if the server loses them. No I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ..interface import StoreError
from ..records import HOST
from .encoding import Hold, Operation

BATCH = 100  # operations in one call of the script
REMEMBERED = 10_000  # rows to write again if the server loses them, about 10 MB
MOST = 100_000  # the maximum number of queued operations


class Writes:
    """The queue of write operations. An operation may be executed twice, but never out of order."""

    def __init__(self) -> None:
        self.held: dict[bytes, Hold] = {}
        """The pending documents of this process by place."""
        self.refused: Exception | None = None
        """The error of the last attempt to send the queue; None if it succeeded."""
        self.damage: Exception | None = None
        """The first error of a write that can never succeed. `Server.flush` raises this error, then sets None."""
        self._again: list[Operation] = []
        self._queue: list[Operation] = []
        self._rows: OrderedDict[Any, Operation] = OrderedDict()
        self._named: dict[Any, Operation] = {}

    def __len__(self) -> int:
        return len(self._again) + len(self._queue)

    def add(self, *operations: Operation) -> None:
        """Queue operations, and remove their documents from `held`. Raise StoreError if the queue is full."""
        if len(self._queue) + len(operations) > MOST:
            raise StoreError(f"more than {MOST:,} rows wait for the server")
        self._queue += operations
        for operation in operations:
            self.held.pop(operation[1], None)
            self.remember(operation)

    def remember(self, operation: Operation) -> None:
        """Remember an operation as the last one on its row, to repeat it if the server loses the row."""
        name, first, second, *rest = operation
        if name in ("set", "add"):
            kept, key, exists = self._rows if first == HOST else self._named, (first, second), bool(rest[0])
        else:
            kept, key, exists = self._rows, first, name == "row"
        kept.pop(key, None)
        if exists:
            kept[key] = operation
        if len(self._rows) > REMEMBERED:
            self._rows.popitem(last=False)

    def repeat(self) -> None:
        """Queue all remembered operations again. Rows of runs, hosts and `meta` are written only if missing."""
        named = [["add", *each[1:4]] for each in self._named.values()]
        rows = [["add", *each[1:4]] if each[0] == "set" else each for each in self._rows.values()]
        self._again = [*named, *rows, *(["hold", *hold[:4]] for hold in self.held.values())]

    def batches(self) -> list[list[Operation]]:
        """Return the queued operations in batches. After a failure, return only the first batch."""
        made = [some[at : at + BATCH] for some in (self._again, self._queue) for at in range(0, len(some), BATCH)]
        return made[:1] if self.refused else made

    def settle(self, batches: Sequence[Sequence[Operation]], results: Sequence[Any]) -> None:
        """Remove executed operations from the queue, given the result of each batch. Keep refused operations."""
        self.refused = None
        for batch, result in zip(batches, results, strict=False):
            if isinstance(result, Exception):
                self.refused = result
                break
            self.damage = self.damage or result[0]
            waiting = self._again or self._queue
            del waiting[: len(batch)]
