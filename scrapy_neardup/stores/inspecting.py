"""What is wrong with a store, what that costs, and what to do; and with parts on disk, which this reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..index.packed import Array
from . import manifest
from .columns import checksum, damaged, map_columns
from .damage import DAMAGE
from .part import Part
from .records import VOID

COPY = "bring back a copy of the store, its file with its parts; or start another one with NEARDUP_STORE"
_UNKNOWN = "its documents are unknown: their pages are stored once more"
_COSTS = {
    ("documents", "urls", "url_ends", "titles", "title_ends", "figures", "figure_ends", "segments", "by_run"): _UNKNOWN,
    ("simhashes", "near."): "copies of its documents that are near in SimHash are not found, and stored once more",
    ("keys.",): "copies of its documents are not found by equal fingerprints, and stored once more",
    ("wholes", "whole_ends"): "copies of its documents are not found by detectors with indexes of their own",
    ("link_rows", "links", "link_ends", "urls.", "of."): "what its URLs led to is unknown: mirrors are fetched again",
    ("repeats", "changed"): "it is not known how often its documents are repeated",
    ("gone",): "what was forgotten may be held again",
    ("notes",): "what was learned of host mirrors is lost, and learned again",
}
_STRINGS = {
    "url_ends": "urls",
    "title_ends": "titles",
    "figure_ends": "figures",
    "whole_ends": "wholes",
    "link_ends": "links",
}


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
    """How much there is of what; what is forgotten but not removed yet included."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.harmless for finding in self.findings)


@dataclass(frozen=True)
class Mapped:
    """A part as the store's list names it, with what was found on opening it. It stays readable when it is replaced."""

    file: Path
    columns: Mapping[str, Array]
    checksums: Mapping[str, int]
    part: Part | None
    wrong: str = ""
    is_missing: bool = False
    size: int = 0
    """Bytes of the file."""


def mapped(store: str, listed: bytes) -> list[Mapped]:
    """Map the parts that a record lists; raise ValueError where it is damaged."""
    return [_mapped(manifest.folder(store) / name, crc) for name, crc in manifest.parsed(listed)]


def _mapped(file: Path, crc: int) -> Mapped:
    try:
        columns, _, checksums = map_columns(file)
        wrong = "" if checksum(file) == crc else "is another store's, or of another time"
        return Mapped(file, columns, checksums, Part.read(file), wrong, size=file.stat().st_size)
    except FileNotFoundError:
        return Mapped(file, {}, {}, None, "is missing", is_missing=True)
    except OSError as error:
        return Mapped(file, {}, {}, None, f"can't be read: {error.strerror}")
    except Exception as error:  # whatever damage, or a stranger, may have brought in
        return Mapped(file, {}, {}, None, f"is damaged: {error}")


def inspect(parts: Iterable[Mapped]) -> Iterator[Finding]:
    """Read all of the parts of a namespace, and yield what is wrong with them."""
    parts = sorted(parts, key=lambda each: each.part.first if each.part is not None else 0)
    last = max((each.part.last for each in parts if each.part is not None), default=0)
    all_read = all(each.part is not None for each in parts)
    first = 0
    for each in parts:
        name = f"part {str(each.file)!r}"
        if each.wrong:
            yield Finding(f"{name} {each.wrong}", _UNKNOWN)
        if each.part is not None and not each.wrong:
            if all_read and each.part.first != first:
                costs = "links may lead to wrong documents"
                yield Finding(f"{name} begins with document {each.part.first}, not {first}", costs)
            first = each.part.last
            yield from _inspect_columns(name, each, last if all_read else VOID)


def _inspect_columns(name: str, each: Mapped, last: int) -> Iterator[Finding]:
    broken = list(damaged(each.columns, each.checksums))
    for column in broken:
        yield Finding(f"{name}: the checksum of column {column!r} does not match", _costs(column))
    try:
        for what, column in () if broken or each.part is None else _contradictions(each.part, last):
            yield Finding(f"{name}: {what}", _costs(column))
    except DAMAGE as error:
        yield Finding(f"{name} is damaged: {error!r}", _UNKNOWN)


def _costs(column: str) -> str:
    table, dot, _ = column.partition(".")
    return next((costs for names, costs in _COSTS.items() if table + dot in names), _UNKNOWN)


def _contradictions(part: Part, last: int) -> Iterator[tuple[str, str]]:
    """Yield what can't be so though all checksums are right, each with the column that it is in.

    `last`: one more than the highest number of a document in any part.
    """
    columns, documents, links = part.columns, len(part), len(part.columns["link_rows"])
    numbers = columns["link_rows"]["document"]
    if lost := int(((numbers >= last) & (numbers < VOID)).sum()):
        yield f"{lost} links lead to documents that do not exist", "link_rows"
    for name, size in (("simhashes", documents), ("repeats", documents), ("link_ends", links + 1)):
        if len(columns[name]) != size:
            yield f"column {name!r} has {len(columns[name])} items, not {size}", name
    for ends, strings in _STRINGS.items():
        steps = np.diff(columns[ends].astype(np.int64), prepend=0, append=len(columns[strings]))
        if columns[ends][0] or steps[-1] or (steps < 0).any():
            yield f"column {ends!r} does not fit {strings!r}", strings
    for rows in ("documents", "link_rows"):
        if columns[rows]["segment"].max(initial=0) >= max(1, len(columns["segments"])):
            yield f"column {rows!r} names segments that do not exist", rows
    if (np.diff(columns["documents"]["segment"].astype(np.int64)) < 0).any():
        yield "its documents are not in order", "documents"
    for name, most in (("keys", documents), ("urls", links), ("of", links)):
        table = part.tables[name].columns
        if len(table["low"]) and (table["low"] | table["high"].astype(np.uint32) << 16).max() >= most:
            yield f"table {name!r} leads to rows that do not exist", f"{name}."
