"""Operations that wait to be done, in order, and how many the server has done. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

from ..base import StoreError
from .failures import is_passing

Then = Callable[[Any], object]
MOST = 200  # operations that are done at once: others wait as long
WAITING = 100_000  # operations: further ones are refused, but those that end what is pending
_ENDING = ("commit", "drop")


class Operation(NamedTuple):
    """What is to be done."""

    name: str
    arguments: tuple[str | bytes, ...]
    then: Then
    """Called with the result, unless that was lost."""
    can_wait: bool
    """Whether claims of this process find the same before it is done."""


class Operations:
    """A queue whose operations are counted, so that none is done twice though answers are lost."""

    def __init__(self) -> None:
        self.done = 0
        """How many the server has counted in this session."""
        self.urgent = 0
        """How many can't wait until there are more of them."""
        self._queue: deque[Operation] = deque()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Operation]:
        return iter(list(self._queue))

    @property
    def has_room(self) -> bool:
        """Whether any operation may be added."""
        return len(self._queue) < WAITING

    def add(self, operation: Operation) -> None:
        """Have an operation done after the others. Raise StoreError where too many wait."""
        if not self.has_room and operation.name not in _ENDING:
            raise StoreError(f"nothing was taken for long: {WAITING} operations wait, no more fit")
        with self._lock:
            self._queue.append(operation)
            self.urgent += not operation.can_wait

    def _pop(self) -> None:
        with self._lock:
            self.urgent -= not self._queue.popleft().can_wait

    def batches(self) -> list[tuple[int, Sequence[Operation]]]:
        """Return all, those that are to be done at once together, each time after how many others."""
        waiting = list(self._queue)
        return [(self.done + first, waiting[first : first + MOST]) for first in range(0, len(waiting), MOST)]

    def settle(self, batch: Sequence[Operation], result: Any) -> bool:
        """Let go of what was done, and of what never can be; say whether it was either."""
        if is_passing(result):
            return False
        for _ in batch:
            self._pop()
        if not isinstance(result, Exception):
            self.done += len(batch)
            for operation, each in zip(batch, result, strict=True):
                if not isinstance(each, Exception):
                    operation.then(each)
        return True

    def begin(self, done: int) -> None:
        """Let go of what the server has done, as it counts in a session that begins, though no answer came."""
        for _ in range(min(done - self.done, len(self._queue))):
            self._pop()
        self.done = done

    def clear(self) -> None:
        self._queue.clear()
        self.urgent = 0
