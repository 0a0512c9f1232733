"""Feeds of Parquet, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from .feed import BrokenError, Feed, FeedError, Found

ROWS = 16  # rows to read at a time; a file of some kilobytes can have rows of many megabytes
GROUP = 1 << 25  # bytes after which a row group is written


class Parquet(Feed):
    """A table of typed columns. A row as the file has it is a batch, and a place in it."""

    name, endings, gzips = "Parquet", (".parquet",), False
    _writer: Any = None
    _batch: Any = None

    def rows(self) -> Iterator[Found]:
        number = 0
        # Without these options, pyarrow holds whole columns of a row group in memory.
        with _arrow(self.path) as pa, pa.parquet.ParquetFile(self.file, buffer_size=1 << 20, pre_buffer=False) as file:
            for batch in file.iter_batches(ROWS):
                for place in range(batch.num_rows):
                    number += 1
                    columns = zip(batch.schema.names, batch.columns, strict=True)
                    yield number, {name: _value(pa, column[place]) for name, column in columns}, (batch, place)

    def write(self, data: Mapping[str, Any], raw: Any = None) -> None:
        batch, place = raw
        if self._writer is None or batch is not self._batch:
            self._copy()
            self._batch = batch
        self._places.append(place)

    def close(self) -> None:
        self._copy(is_last=True)
        self._writer.close()

    def _copy(self, *, is_last: bool = False) -> None:
        """Copy the rows of a batch that are written. Write all copies to the file if they are large."""
        with _arrow(self.path) as pa:
            if self._writer is None:  # with the columns of the first feed
                self._schema = pa.parquet.read_schema(self.sources[0])
                self._writer = pa.parquet.ParquetWriter(self.file, self._schema)
                self._tables, self._places = list[Any](), list[int]()
            if self._places:
                self._tables.append(pa.Table.from_batches([self._batch.take(pa.array(self._places))]))
                self._places = []
            if self._tables and (is_last or sum(table.nbytes for table in self._tables) > GROUP):
                self._writer.write_table(pa.concat_tables(self._tables).cast(self._schema))
                self._tables = []


def _value(pa: Any, scalar: Any) -> Any:
    """Return a value. A time beyond Python's range becomes text, or None if that fails."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, LookupError):  # LookupError for an unknown time zone
        with suppress(pa.ArrowException):
            return scalar.cast(pa.string()).as_py()
    return None


@contextmanager
def _arrow(path: str) -> Iterator[Any]:
    """Yield pyarrow. Raise BrokenError for its errors, and FeedError if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise FeedError(f"{path}: Parquet needs pyarrow: pip install 'scrapy-neardup[parquet]'") from error
    try:
        yield pa
    except (pa.ArrowException, ValueError) as error:
        raise BrokenError(" ".join(str(error).split())) from error
