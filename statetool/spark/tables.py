"""Arrow tables as DataFrames with unchanged values: Spark alone truncates nanoseconds, and before 4.0 converts through pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final

import pyarrow as pa

from statetool.columns.types import is_variant
from statetool.errors import EncodeError
from statetool.spark.private import missing_part
from statetool.spark.schema import spark_schema
from statetool.spark.session import has_data_sources

_BATCH_ROWS: Final = 65_536
#: Batches are combined for a task until they have this many rows or bytes.
_TASK_ROWS: Final = 10_000
_TASK_BYTES: Final = 32 << 20
#: Session settings for the size of batches that its JVM passes to Python, with the values that :func:`collect_rows` sets.
_MOST_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCHES: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": 128,
    _MOST_BYTES: (1 << 31) - 1,
}
_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}


def arrow_frame(spark: Any, table: pa.Table) -> Any:
    """Return a table as a DataFrame: on PySpark 4 a local relation, whose queries need no Python worker.

    Raises
    ------
    EncodeError
        A value does not fit Spark's type, such as a time with nanoseconds; the message names the column.
    UnsupportedError
        Spark has no such type.
    """
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = _kind_of_spark(field.type)
        try:
            columns.append(column if column.type.equals(kind) else column.cast(kind))
        except pa.ArrowInvalid as error:
            raise EncodeError(
                f"column {field.name!r} of type {field.type} does not fit Spark's {kind}: {error}",
                hint="write without Spark, or keep nanoseconds in a column of their own as nanos='companion' shows them",
            ) from error
        fields.append(pa.field(field.name, kind, field.nullable))
    exact = pa.table(columns, schema=pa.schema(fields))
    schema = spark_schema(exact.schema)
    if has_data_sources() and not any(_holds_variants(field.type) for field in exact.schema):
        # Spark does not support slices of nested arrays with nulls. After a stream round trip, they are not slices.
        return spark.createDataFrame(pa.ipc.open_stream(_pack(exact)).read_all(), schema)
    if not exact.num_rows:
        return spark.createDataFrame([], schema)
    rows = [(_pack(exact.slice(i, _BATCH_ROWS)),) for i in range(0, exact.num_rows, _BATCH_ROWS)]
    packed = spark.createDataFrame(rows, "batches BINARY")
    return packed.mapInArrow(_unpack, schema)


def _holds_variants(kind: pa.DataType) -> bool:
    """Return True if a type contains variants: Spark splits lists into parts, and Arrow then rejects null variants."""
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return any(is_variant(field.type) or _holds_variants(field.type) for field in fields)


def map_in_arrow(frame: Any, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: Any) -> Any:
    """Run a task over the batches of a DataFrame; Spark's ``mapInArrow`` splits names at dots and backquotes."""
    names = list(frame.columns)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return task(_with_names(batch, names) for batch in _join_batches(batches))

    return frame.toDF(*(f"c{i}" for i in range(len(names)))).mapInArrow(run, schema)


def collect_rows(frame: Any, *, large: bool = True) -> list[Any]:
    """Return the rows of a DataFrame whose tasks receive rows from the JVM, in batches of few rows.

    Spark 4.3 limits a batch to 64 MiB, so the JVM measures the batch again after each row, which takes a third of the time per row. Batches
    of so few rows need no such limit. In earlier releases without this limit, they are smaller than Spark's batches of 10,000 rows.

    Parameters
    ----------
    large
        Whether many rows have kilobytes. Other rows come in Spark's batches if it limits their bytes: a batch takes as long as hundreds of
        small rows.
    """
    with nullcontext() if not large and _limits_bytes(frame.sparkSession) else _small_batches(frame.sparkSession):
        rows: list[Any] = frame.collect()
    return rows


def _limits_bytes(spark: Any) -> bool:
    """Return True if the JVM limits the bytes of the batches that it passes to Python, or if the user has chosen that it does not."""
    from pyspark.errors import PySparkException

    try:
        limit: str = spark.conf.get(_MOST_BYTES)
        is_default = spark.conf.get(_MOST_BYTES, None) is None
    except (PySparkException, *missing_part()):  # this release has no such setting
        return False
    return not limit.startswith(("-", "0")) and not (is_default and limit.startswith(str(_BATCHES[_MOST_BYTES])))


@contextmanager
def _small_batches(spark: Any) -> Iterator[None]:
    """Change :data:`_BATCHES` of a session inside the block, unless the user set less.

    Settings already changed by another thread are not touched: they only save time.
    """
    before = {name: spark.conf.get(name, None) for name in _BATCHES}
    changed = [name for name, most in _BATCHES.items() if _is_more(before[name], most)]
    for name in changed:
        spark.conf.set(name, str(_BATCHES[name]))
    try:
        yield
    finally:
        for name in changed:
            if before[name] is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before[name])


def _is_more(setting: str | None, most: int) -> bool:
    """Return True if a limit of Spark is its default, unlimited, or higher than ``most``; a value with a unit was set on purpose."""
    return setting is None or (setting.lstrip("-").isdecimal() and not 0 < int(setting) <= most)


def _join_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches: each costs the kernels as much as some hundred rows."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _TASK_ROWS or size >= _TASK_BYTES:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _with_names(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    fields = [field.with_name(name) for field, name in zip(batch.schema, names, strict=True)]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _kind_of_spark(kind: pa.DataType) -> pa.DataType:
    """Return the Spark type that holds the values of an Arrow type."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_dictionary(kind):
        return _kind_of_spark(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_kind_of_spark(kind.value_type)))
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_kind_of_spark(key.type)), item.with_type(_kind_of_spark(item.type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_kind_of_spark(f.type)) for f in kind])
    return _WIDER.get(kind, kind)


def _pack(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        # Spark requires a batch, and a table without rows may have none.
        for batch in table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]:
            writer.write(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for packed in batch.column(0):
            yield from pa.ipc.open_stream(packed.as_buffer())
