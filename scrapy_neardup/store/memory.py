"""The back end in memory, and the base class of the back end in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from ..row_index import NEWEST, Places, RowIndex, keep_nearest
from .interface import Entry, Found, Question, Row
from .records import COUNTED, Key, Record, bounds


class MemoryBackend:
    """A back end with its rows in a dictionary. The rows are lost when the process ends."""

    name = "in memory"
    is_remote = hears_documents = False
    version = 0

    def __init__(self) -> None:
        self.index = RowIndex()
        self._rows: dict[Key, Record | None] = {}
        """Records by key. None stands for a deleted row that may still be in the file of a derived back end."""
        self._pending: dict[Key, int] = {}
        """The number of index keys of each pending document, by its key."""
        self._written = 0

    def get(self, keys: Iterable[Key]) -> list[Row]:
        return [Row(key, record) for key in keys if (record := self._rows.get(key)) is not None]

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        yield from self.get(self._keys(kind, run))

    def _keys(self, kind: str, run: str) -> list[Any]:
        """Return the keys of the rows of a kind, or those of a run."""
        first, end = bounds(kind, run)
        some: list[Any] = [key for key in self._rows if isinstance(key, type(first))]
        return [key for key in some if first <= key < end]

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[int] = ()
    ) -> list[Found]:
        places = self.index.find(questions)
        answers = [self._found(question, found) for question, found in zip(questions, places, strict=True)]
        if ahead:
            answers[0].ahead = self.get(ahead)
        return answers

    def _found(self, question: Question, places: Places, times: int = 1) -> Found:
        """Return the existing rows at these places, which are `times` as many as the question asks for.

        While deleted rows displace others, ask for more, however many deleted rows there are.
        """
        if not places.keys and not places.near:
            return Found()
        rows = self._at({place for found in (*places.keys.values(), places.near) for place in found})
        keys = {key: [rows[place] for place in found if place in rows] for key, found in places.keys.items()}
        near = {place: far for place, far in places.near.items() if place in rows}
        most, is_short = question.most, len(near) < NEWEST and len(places.near) == times * NEWEST
        if is_short or any(len(keys[key]) < most and len(found) == times * most for key, found in places.keys.items()):
            times *= 8
            wider = question._replace(most=times * most)
            return self._found(question, self.index.find([wider], times * NEWEST)[0], times)
        keep_nearest(near, NEWEST)
        return Found({key: found[-most:] for key, found in keys.items()}, [rows[place] for place in near])

    def _at(self, places: Iterable[int]) -> dict[int, Row]:
        """Return the existing rows at these places, as a dictionary by place."""
        return {cast(int, row.key): row for row in self.get(places)}

    def size(self, kind: str) -> int:
        return sum(self._rows[key] is not None and key not in self._pending for key in self._counted(kind))

    def _counted(self, kind: str) -> list[Key]:
        return [key for key in self._rows if isinstance(key, int) and key in COUNTED[kind]]

    def writers(self) -> set[int]:
        return set()

    def count(self, key: int) -> int:
        return self.index.count(key)

    def hold(self, entry: Entry, seen: bytes) -> bool:
        self._put(entry)
        self._pending[entry.key] = len(entry.keys)
        return True

    def release(self, entry: Entry) -> None:
        self._pending.pop(entry.key, None)
        self._rows.pop(entry.key, None)
        self.index.remove(cast(int, entry.key))

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        for entry in deleted:
            self._rows.pop(entry.key, None)
        for entry in entries:
            self._put(entry)
        self._written += len(entries)
        self.index.grow(self._written)

    def _put(self, entry: Entry) -> None:
        key, record, keys, simhash, keeps_place = entry
        if (known := self._pending.pop(key, None)) is not None:
            keys, simhash = keys[known:], None
        if (keys or simhash is not None) and not keeps_place:
            self.index.add(cast(int, key), keys, simhash)
        self._rows[key] = record

    def news(self) -> tuple[list[Row], bool]:
        return [], False

    def hold_run(self, run: str) -> bool:
        return True

    def is_held(self, run: str) -> bool:
        return False

    def describe(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        self.index.end()

    # What is needed only for a file

    def flush(self, *, wait: bool) -> None: ...
    def reach(self) -> None: ...
    def release_run(self, run: str) -> None: ...
    def meet(self) -> None: ...
