"""Parts made of records, and of other parts. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..fingerprints.hashing import MULTIPLIER
from ..index.near import NearTable
from ..index.packed import Array, Entries, PackedTable, entries, merge
from ..index.relations import Row
from .part import TABLES, Part, notes
from .records import CHANGED, SEGMENT, leads_on, narrowed, picked

_STRINGS = (
    ("url_ends", "urls"),
    ("title_ends", "titles"),
    ("figure_ends", "figures"),
    ("whole_ends", "wholes"),
    ("link_ends", "links"),
)


@dataclass(frozen=True)
class Notes:
    """What several parts together say beyond their rows."""

    repeats: Mapping[int, int]
    """By the number of a document, where its part has another count."""
    gone: Sequence[int]
    """Numbers of documents that are forgotten."""
    trials: Mapping[str, Sequence[Row]]
    """By run."""
    met: Mapping[str, float]


def made(
    first: int,
    columns: Mapping[str, Array],
    keys: Entries,
    names: Sequence[str],
    segments: Sequence[tuple[str, int]],
    epoch: int = 0,
) -> Part:
    """Make a part of the columns of records; `keys` lead to documents, numbered from 0."""
    runs = list(dict.fromkeys(run for run, _ in segments))
    pairs = [(runs.index(run), number) for run, number in segments]
    columns = {**columns, **_segment_columns(pairs), **_noted(Notes({}, (), {}, {}))}
    tables = {"keys": merge([], keys), **_link_tables(columns["link_rows"])}
    return Part(first, columns, tables, NearTable(columns["simhashes"]), tuple(names), tuple(runs), epoch)


def _link_tables(rows: Array) -> dict[str, PackedTable]:
    places = np.arange(len(rows), dtype=np.uint64)
    urls = entries(rows["url"] * MULTIPLIER, places)
    of = entries(rows["document"].astype(np.uint64) * MULTIPLIER, places.copy())
    return {"urls": merge([], urls), "of": merge([], of)}


def _noted(said: Notes) -> dict[str, Array]:
    return {
        "changed": np.array(sorted(said.repeats.items()), CHANGED),
        "gone": np.array(sorted(said.gone), np.uint32),
        "notes": notes(said.trials, said.met),
    }


def joined(parts: Sequence[Part], said: Notes) -> Part:
    """Make one part of several whose documents follow one another."""
    columns = {
        name: np.concatenate([part.columns[name] for part in parts])
        for name in parts[0].columns
        if not name.endswith("_ends") and name not in ("segments", "by_run", "changed", "gone", "notes")
    }
    inside = {number: repeats for number, repeats in said.repeats.items() if number >= parts[0].first}
    for number, repeats in inside.items():
        columns["repeats"][number - parts[0].first] = repeats
    for ends, _ in _STRINGS:
        sizes = [np.diff(part.columns[ends].astype(np.int64)) for part in parts]
        columns[ends] = narrowed(np.concatenate([np.zeros(1, np.int64), *sizes]).cumsum())
    runs = _join_segments(parts, columns)
    links = np.cumsum([0, *(len(part.columns["link_rows"]) for part in parts)]).tolist()
    documents = [part.first - parts[0].first for part in parts]
    bases = {"keys": documents, "urls": links, "of": links}
    tables = {
        name: merge([(part.tables[name], base) for part, base in zip(parts, bases[name], strict=False)])
        for name in TABLES
    }
    outside = {number: repeats for number, repeats in said.repeats.items() if number not in inside}
    columns |= _noted(Notes(outside, said.gone, said.trials, said.met))
    names = max((part.names for part in parts), key=len)  # each list goes on where the one before ended
    return Part(parts[0].first, columns, tables, NearTable(columns["simhashes"]), names, runs, parts[0].epoch)


def _join_segments(parts: Sequence[Part], columns: dict[str, Array]) -> tuple[str, ...]:
    """Put the lists of segments together; return the runs."""
    runs = {run: place for place, run in enumerate(dict.fromkeys(run for part in parts for run in part.runs))}
    segments = [(runs[part.runs[run]], number) for part in parts for run, number in part.columns["segments"].tolist()]
    columns |= _segment_columns(segments)
    before = np.cumsum([0, *(len(part.columns["segments"]) for part in parts)])
    for rows in ("documents", "link_rows"):
        sizes = [len(part.columns[rows]) for part in parts]
        columns[rows]["segment"] += np.repeat(before[:-1], sizes).astype(np.uint32)
    return tuple(runs)


def _segment_columns(segments: Sequence[tuple[int, int]]) -> dict[str, Array]:
    rows = np.array(segments, SEGMENT)
    return {"segments": rows, "by_run": np.lexsort((rows["number"], rows["run"])).astype(np.uint32)}


def closed_up(part: Part, documents: npt.NDArray[np.bool_], links: npt.NDArray[np.bool_], said: Notes) -> Part:
    """Make a part that holds some of the documents and links of one with all of a store, numbered anew from 0."""
    kept = documents.nonzero()[0]
    renumbered = np.full(len(documents), -1, np.int64)
    renumbered[kept] = np.arange(len(kept))
    rows = part.columns["link_rows"]
    left = links.nonzero()[0]
    left = left[leads_on(rows["document"][left], documents)]
    columns = {name: part.columns[name][kept] for name in ("documents", "simhashes")}
    columns["link_rows"] = rows[left]
    columns["link_rows"]["document"] = _renumbered(rows["document"][left], renumbered)
    for ends, strings in _STRINGS:
        column = part.columns[strings]
        columns[ends], columns[strings] = picked(part.columns[ends], column, left if strings == "links" else kept)
    columns["repeats"] = _repeats(columns["link_rows"], len(kept))
    columns |= {name: part.columns[name] for name in ("segments", "by_run")}
    columns |= _noted(Notes({}, (), said.trials, said.met))
    tables = {"keys": merge([(part.tables["keys"], renumbered)]), **_link_tables(columns["link_rows"])}
    near = NearTable(columns["simhashes"])
    return Part(0, columns, tables, near, part.names, part.runs, part.epoch + 1)


def _renumbered(numbers: Array, renumbered: npt.NDArray[np.int64]) -> Array:
    held = numbers < len(renumbered)
    result = numbers.copy()
    result[held] = renumbered[numbers[held]]
    return result


def _repeats(links: Array, documents: int) -> Array:
    """Count the mirrors of each document."""
    mirrors = links["document"][(links["flags"] & 1 > 0) & (links["document"] < documents)]
    return np.bincount(mirrors, minlength=documents)[:documents].astype(np.uint32)
