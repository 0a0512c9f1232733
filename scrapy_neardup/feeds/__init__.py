"""Read and write feeds, which are files of documents. Each format has a module; sequence.py has the list of formats."""

from __future__ import annotations

from .compression import telling, writing
from .feed import BadRowError, FeedError, Kind, Line, Row, row_id
from .jsonlines import FORMATS, JsonLines, parse_row
from .sequence import Feeds, writing_rows

__all__ = [
    "FORMATS",
    "BadRowError",
    "FeedError",
    "Feeds",
    "JsonLines",
    "Kind",
    "Line",
    "Row",
    "parse_row",
    "row_id",
    "telling",
    "writing",
    "writing_rows",
]
