"""The queue of write operations, and those to repeat if the server loses them. No I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ..interface import HOST, StoreError
from .encoding import Hold, Operation

BATCH = 100  # operations of one call of a script
REMEMBERED = 10_000  # rows that are written again if the server loses them: some 10 MB
MOST = 100_000  # operations that wait


class Writes:
    """The queue. Any operation may be done twice, but in their order."""

    def __init__(self) -> None:
        self.held: dict[bytes, Hold] = {}
        """Pending documents of this process, by place."""
        self.refused: Exception | None = None
        """Why what waits was not written when it was last sent."""
        self.damage: Exception | None = None
        """Why something can't ever be written, since this was last told."""
        self._again: list[Operation] = []
        self._queue: list[Operation] = []
        self._rows: OrderedDict[Any, Operation] = OrderedDict()
        self._named: dict[Any, Operation] = {}

    def __len__(self) -> int:
        return len(self._again) + len(self._queue)

    def add(self, *operations: Operation) -> None:
        """Queue operations; documents among them are pending no more. Raise StoreError where too many wait."""
        if len(self._queue) + len(operations) > MOST:
            raise StoreError(f"more than {MOST:,} rows wait for the server")
        self._queue += operations
        for operation in operations:
            self.held.pop(operation[1], None)
            self.remember(operation)

    def remember(self, operation: Operation) -> None:
        """Remember what a row is, so that a server that has lost it gets it again."""
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
        """Queue all that is remembered once more; of what has a name others may have written newer ones."""
        named = [["add", *each[1:4]] for each in self._named.values()]
        rows = [["add", *each[1:4]] if each[0] == "set" else each for each in self._rows.values()]
        self._again = [*named, *rows, *(["hold", *hold[:4]] for hold in self.held.values())]

    def batches(self) -> list[list[Operation]]:
        """Return the queue in batches; only the first one if it was refused before."""
        made = [some[at : at + BATCH] for some in (self._again, self._queue) for at in range(0, len(some), BATCH)]
        return made[:1] if self.refused else made

    def settle(self, batches: Sequence[Sequence[Operation]], results: Sequence[Any]) -> None:
        """Remove written operations from the queue; refused ones stay."""
        self.refused = None
        for batch, result in zip(batches, results, strict=False):
            if isinstance(result, Exception):
                self.refused = result
                break
            self.damage = self.damage or result[0]
            waiting = self._again or self._queue
            del waiting[: len(batch)]
