"""Read and write Parquet with pyarrow. An unparsed row is the bytes of an Arrow stream with a single row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import IO, Any

from .compression import reading
from .feed import FeedError, Kind, Piece, Raw

ROWS = 256  # rows to read at a time
GROUP, MOST = 1 << 25, 1 << 17  # bytes and rows after which a row group is written


@dataclass(frozen=True, eq=False)
class Parquet(Kind):
    """Parquet with this schema. Feeds with equal columns can be written to one file, even if their metadata differ."""

    schema: bytes
    """The serialized Arrow schema, with its metadata."""
    compression: str = "snappy"

    name = "Parquet"
    names = (".parquet",)
    gzips = False

    @classmethod
    def of(cls, path: str) -> Parquet:
        with _opened(path) as file:
            groups = file.metadata.num_row_groups and file.metadata.num_columns
            codec = file.metadata.row_group(0).column(0).compression if groups else "SNAPPY"
            return cls(file.schema_arrow.serialize().to_pybytes(), "none" if codec == "UNCOMPRESSED" else codec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parquet) and bool(self._schema().equals(other._schema()))

    def __hash__(self) -> int:
        return hash(tuple(self._schema().names))

    def _schema(self) -> Any:
        import pyarrow as pa

        return pa.ipc.read_schema(pa.py_buffer(self.schema))

    def split(self, path: str) -> Iterator[Piece]:
        pa = _arrow(path)
        with _opened(path) as file, reading(path, gzips=False) as again:
            size, total, number = again.seek(0, 2), file.metadata.num_rows, 0
            plain = _plain_schema(pa, file.schema_arrow)
            for batch in file.iter_batches(batch_size=ROWS):
                batch = batch.cast(plain)
                for place in range(batch.num_rows):
                    number += 1
                    yield Piece(f"row {number}", _packed(pa, batch.slice(place, 1)), size * number // total)

    def parse(self, raw: Raw) -> dict[str, Any]:
        import pyarrow as pa

        row = pa.ipc.open_stream(raw).read_next_batch()
        return {name: _value(pa, column) for name, column in zip(row.schema.names, row.columns, strict=True)}

    @contextmanager
    def writer(self, file: IO[bytes], *, gzipped: bool) -> Iterator[Callable[[Any], object]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetWriter(file, self._schema(), compression=self.compression) as writer:
            group = _Group(pa, writer)
            yield group.add
            group.flush()


class _Group:
    """Collects rows, and writes them to a file in row groups."""

    def __init__(self, pa: ModuleType, writer: Any) -> None:
        self._pa = pa
        self._writer = writer
        self._schema = _plain_schema(pa, writer.schema)
        self._rows: list[Any] = []
        self._size = 0

    def add(self, raw: bytes) -> None:
        self._rows.append(raw)
        self._size += len(raw)
        if self._size >= GROUP or len(self._rows) == MOST:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            batches = [self._pa.ipc.open_stream(raw).read_next_batch() for raw in self._rows]
            self._write(self._pa.Table.from_batches(batches, self._schema).combine_chunks())
        self._rows, self._size = [], 0

    def _write(self, rows: Any) -> None:
        try:
            table = rows.cast(self._writer.schema)
        except self._pa.ArrowInvalid:  # merged dictionaries of several feeds may have too many values
            if (half := len(rows) // 2) == 0:
                raise
            self._write(rows.slice(0, half))
            self._write(rows.slice(half))
        else:
            self._writer.write_table(table)


def _value(pa: ModuleType, column: Any) -> Any:
    """Return the single value of a column. A time beyond Python's range becomes text, or None if that fails."""
    try:
        return column[0].as_py()
    except (ValueError, OverflowError, LookupError):  # LookupError for an unknown time zone
        if not pa.types.is_temporal(column.type) and not pa.types.is_nested(column.type):
            raise
    with suppress(pa.ArrowException):
        return column.cast(pa.string())[0].as_py()
    return None


def _plain_schema(pa: ModuleType, schema: Any) -> Any:
    """Return a schema without dictionaries and metadata, since each unparsed row would repeat them."""
    return pa.schema([_plain_field(pa, field) for field in schema])


def _plain_field(pa: ModuleType, field: Any) -> Any:
    return field.with_type(_plain(pa, field.type))


def _plain(pa: ModuleType, kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return kind if kind.ordered else kind.value_type  # only the dictionary has the order of the values
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(pa, field) for field in kind])
    for is_list, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(kind):
            return make(_plain_field(pa, kind.value_field))
    return kind


def _packed(pa: ModuleType, batch: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _arrow(path: str) -> ModuleType:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise FeedError(f"{path}: Parquet needs pyarrow: pip install 'scrapy-neardup[parquet]'") from error
    return pyarrow  # type: ignore[no-any-return]


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    pa = _arrow(path)
    try:
        with (
            reading(path, gzips=False) as file,
            # Without these options pyarrow holds whole columns of a row group in memory.
            pa.parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False) as opened,
        ):
            yield opened
    except pa.ArrowException as error:
        raise FeedError(f"{path}: can't be read: {' '.join(str(error).split())}") from error
