"""A part of a store: documents and links with the tables that find them, finished, in one file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from ..fingerprints.hashing import MULTIPLIER
from ..index.near import NearTable
from ..index.packed import Array, PackedTable
from ..index.relations import Row
from ..signature import Key
from .base import StoreError
from .columns import read_columns, write_columns
from .damage import DAMAGE
from .records import CHANGED, DOCUMENT, LINK, SEGMENT

TABLES = ("keys", "urls", "of")
_MULTIPLIER = int(MULTIPLIER)
_DAMAGE = (IndexError, ValueError, OverflowError, TypeError, KeyError)
_TYPES = {"documents": DOCUMENT, "link_rows": LINK, "segments": SEGMENT, "changed": CHANGED}


@dataclass(frozen=True, eq=False)
class Part:
    """Documents numbered from `first` on, and links in the order of coming.

    Its tables: `keys` to documents, `urls` (hashes of canonical ones) to links, `of` (numbers of documents) to links,
    and `near`, the SimHashes. What it says of documents of earlier parts: `changed` repeats, and which are `gone`.
    """

    first: int
    columns: Mapping[str, Array]
    tables: Mapping[str, PackedTable]
    near: NearTable
    names: tuple[str, ...] = ()
    """Detectors and kinds, which links have by their place in this list."""
    runs: tuple[str, ...] = ()
    """Ids, which segments have by their place in this list."""
    epoch: int = 0
    """How often the documents of the store were numbered anew."""
    file: Path | None = None

    def __len__(self) -> int:
        return len(self.columns["documents"])

    def __bool__(self) -> bool:
        return True  # also without documents: it may have links

    @property
    def items(self) -> int:
        """How large it is: the number of its documents or links, of which there are more."""
        return max(len(self), len(self.columns["link_rows"]))

    @cached_property
    def last(self) -> int:
        """One more than the number of its last document."""
        return self.first + len(self)

    # To find things

    def near_to(self, simhash: int, distance: int, most: int) -> list[int]:
        """Return the places of documents within a Hamming distance, ascending; of more than `most` the nearest."""
        signed = self.columns["documents"]["has"]
        return [place for place in self.near.find(simhash, distance, most) if signed[place] & 2]

    def link_of(self, url: int) -> int | None:
        """Return the place of the last link of a URL, given its hash."""
        for place in reversed(self.tables["urls"].newest(spread(url), 16)):
            if self.columns["link_rows"]["url"][place] == url:
                return place
        return None

    def links_of(self, number: int) -> Iterator[int]:
        """Yield the places of the links to a document, oldest first."""
        documents = self.columns["link_rows"]["document"]
        return (place for place in self.tables["of"].each(spread(number)) if documents[place] == number)

    # Where things were written. Documents lie in the order of their segments, and of their places in these.

    def segment_place(self, run: str, number: int) -> int | None:
        """Return the first place of a segment in the part's list; None where it did not come with this part."""
        return next(self._segment_places(run, number), None)

    def _segment_places(self, run: str, number: int) -> Iterator[int]:
        """Yield the places of a segment in the part's list: several where it was imported in pieces."""
        wanted = (self.runs.index(run), number) if run in self.runs else None
        order, rows = self.columns["by_run"], self.columns["segments"]
        at = bisect_left(order, wanted, key=lambda place: rows[place].item()) if wanted else len(order)
        while at < len(order) and rows[order[at]].item() == wanted:
            yield int(order[at])
            at += 1

    def place_of(self, key: Key) -> int | None:
        """Return the place of the document that was written as `key`."""
        segments, places = (self.columns["documents"][name] for name in ("segment", "place"))
        for segment in self._segment_places(*key[:2]):
            first, last = bisect_left(segments, segment), bisect_right(segments, segment)
            at = bisect_left(places, key[2], first, last)
            if at < last and places[at] == key[2]:
                return at
        return None

    def key(self, place: int) -> Key:
        """Return as what a document was written."""
        row = self.columns["documents"][place]
        return (*self.segment(row["segment"]), int(row["place"]))

    def segment(self, place: int) -> tuple[str, int]:
        """Return the run and the number of one of its segments."""
        run, number = self.columns["segments"][place].item()
        return self.runs[run], number

    def all_segments(self) -> set[tuple[str, int]]:
        """Return of which segments, by run and number, the part has what they held.

        What was made of other parts alone is of no run, "".
        """
        return {(self.runs[run], number) for run, number in self.columns["segments"].tolist() if self.runs[run]}

    # Notes

    @cached_property
    def _notes(self) -> dict[str, Any]:
        notes: dict[str, Any] = msgpack.unpackb(self.columns["notes"].tobytes(), use_list=False)
        return notes

    def trials(self) -> Iterator[tuple[str, Row]]:
        """Yield the evidence on host mirrors, each with the run that found it."""
        for run, rows in self._notes["trials"]:
            yield from ((run, Row(*row)) for row in rows)

    def met(self) -> Iterable[tuple[str, float]]:
        """Return since when which hosts are known."""
        met: dict[str, float] = self._notes["met"]
        return met.items()

    # The file

    def write(self, path: Path, *, imported: str | None = None) -> Part:
        """Write it, and return it as it is in the file; `imported`: the namespace, if it has what is in no log."""
        columns = dict(self.columns)
        for name, table in self.tables.items():
            columns |= {f"{name}.{column}": values for column, values in table.columns.items()}
        columns |= {f"near.{column}": values for column, values in self.near.columns.items()}
        about = {"first": self.first, "names": self.names, "runs": self.runs, "epoch": self.epoch}
        write_columns(path, columns, {**about, "imported": imported})
        return Part.read(path)

    @classmethod
    def read(cls, path: Path, *, check: bool = False) -> Part:
        """Map a file; raise ValueError where it is damaged, OSError where it can't be read."""
        columns, about = read_columns(path, check=check)
        try:
            tables = {name: PackedTable(_below(columns, name)) for name in TABLES}
            own = {name: column for name, column in columns.items() if "." not in name}
            own |= {name: own[name].view(kind) for name, kind in _TYPES.items()}
            near = NearTable(own["simhashes"], _below(columns, "near"))
            names, runs = (tuple(map(str, about[name])) for name in ("names", "runs"))
            return cls(int(about["first"]), own, tables, near, names, runs, int(about["epoch"]), path)
        except DAMAGE as error:
            raise ValueError(f"{path.name} is damaged: {error}") from error


class Reading:
    """Where a part is read: what its columns raise if they are damaged, is raised as StoreError.

    Of large parts only the head is checked when they are opened.
    """

    __slots__ = ("_part",)

    def __init__(self, part: Part) -> None:
        self._part = part

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _DAMAGE):
            raise StoreError(
                f"part {str(self._part.file)!r} is damaged: {error}; bring back a copy of it; it was left as it is"
            ) from error


def notes(trials: Mapping[str, Sequence[Row]], met: Mapping[str, float]) -> Array:
    """Return the column of what a part notes of hosts: trials by run, and since when each is known."""
    packed: bytes = msgpack.packb({"trials": list(trials.items()), "met": met})
    return np.frombuffer(packed, np.uint8)


def spread(key: int) -> int:
    """Spread the bits of a key, of which the table keeps the upper ones."""
    return key * _MULTIPLIER & 0xFFFF_FFFF_FFFF_FFFF


def _below(columns: Mapping[str, Array], name: str) -> dict[str, Array]:
    return {key.removeprefix(f"{name}."): column for key, column in columns.items() if key.startswith(f"{name}.")}
