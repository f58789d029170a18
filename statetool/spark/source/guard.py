"""Refuse, in the task that reads, values that Spark would change silently and rows that the JVM could not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_numpy, is_valid
from statetool.columns.batches import split_to_limits
from statetool.columns.python_values import as_python, number_of
from statetool.errors import DecodeError, UnsupportedError
from statetool.tables.read import read_split
from statetool.tables.splits import Split

#: Session setting, and option of the data sources: the maximum row size, in Arrow bytes, that a task passes to its JVM.
ROW_BYTES: Final = "spark.statetool.rowBytes"
#: Limit if the heap of the JVM is unknown: an eighth of Spark's default of 1 GiB.
DEFAULT_ROW_BYTES: Final = (1 << 30) // 8
_LONGEST_KEY: Final = 100
_LONG_FORM: Final = "read one row per element: op.state({name!r}), table={name!r}"
_LARGER: Final = "raise spark.executor.memory (spark.driver.memory on one machine), set {limit}, or read without Spark: op.to_arrow()"


def read_checked(split: Split, *, row_bytes: int | None) -> Iterator[pa.RecordBatch]:
    """Read a split as :func:`reject_unsupported_rows` does; ``row_bytes`` is ``None`` if the rows are not for a JVM."""
    return reject_unsupported_rows(
        read_split(split), file=split.file, operator=split.spec.operator, row_bytes=row_bytes
    )


def reject_unsupported_rows(
    batches: Iterator[pa.RecordBatch],
    *,
    file: str | None = None,
    operator: str | None = None,
    row_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield batches; refuse maps with duplicate keys, which Spark does not support, and rows that are too large for the JVM.

    Parameters
    ----------
    file, operator
        Origin of the batches, for errors.
    row_bytes
        Maximum row size in Arrow bytes; ``None`` for no limit.

    Raises
    ------
    DecodeError
        A map has a duplicate key.
    UnsupportedError
        A row exceeds the limit: the JVM would end with an OutOfMemoryError, or without a message.
    """
    for batch in batches:
        if row_bytes is not None and batch.nbytes > row_bytes:
            _check_rows(batch, row_bytes, operator)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                _check(column, name)
            except DecodeError as error:
                raise error.at(file=file, operator=operator, state=name) from None
        yield batch


def _check_rows(batch: pa.RecordBatch, row_bytes: int, operator: str | None) -> None:
    """Refuse a row above the limit; only batches above the limit are checked."""
    for part in split_to_limits(batch, max_rows=batch.num_rows, max_bytes=row_bytes):
        if part.num_rows == 1 and part.nbytes > row_bytes:
            raise _too_large(part, row_bytes).at(operator=operator)


def _too_large(row: pa.RecordBatch, row_bytes: int) -> UnsupportedError:
    """Return the error for a row, which names its key and its largest column."""
    largest = max(range(row.num_columns), key=lambda i: row.column(i).nbytes)
    name, kind = row.schema.names[largest], row.schema.types[largest]
    key = repr(as_python(row.column("key"), number_of)[0]) if "key" in row.schema.names else ""
    of_key = f" of key {key if len(key) <= _LONGEST_KEY else f'{key[:_LONGEST_KEY]}...'}" if key else ""
    hint = _LARGER.format(limit=ROW_BYTES)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        hint = f"{_LONG_FORM.format(name=name)}; or {hint}"
    return UnsupportedError(f"the row{of_key} has {row.nbytes} bytes, more than {row_bytes} for the JVM", hint=hint).at(
        state=name
    )


def _check(array: pa.Array, path: str) -> None:
    kind = array.type
    if not pa.types.is_nested(kind):
        return
    if pa.types.is_map(kind):
        offsets = as_numpy(array.offsets)
        first, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        _check_map_keys(array.keys.slice(first, length), np.diff(offsets), path)
        _check(array.items.slice(first, length), f"{path}.value")
    elif pa.types.is_list(kind):
        _check(array.flatten(), f"{path}.element")
    elif pa.types.is_struct(kind):
        for i, field in enumerate(kind):
            _check(array.field(i), f"{path}.{field.name}")


def _check_map_keys(keys: pa.Array, counts: npt.NDArray[np.integer], path: str) -> None:
    """Check the keys of consecutive maps; ``counts`` are their sizes."""
    if counts.max(initial=0) < 2:
        return
    codes = _codes(keys)
    maps = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    pairs = np.sort(maps * (int(codes.max()) + 1) + codes)
    if (pairs[1:] == pairs[:-1]).any():
        raise DecodeError(
            "a map with the same key twice, which Spark maps cannot hold",
            hint="read the state in its long form with op.state(name), or the option table, which keeps both",
        ).at(type_path=path)


def _codes(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return a number per value, from 0 on, the same for equal values."""
    kind = array.type
    if pa.types.is_struct(kind) and kind.num_fields:
        field_codes = [_codes(array.field(i)) for i in range(kind.num_fields)]
        field_codes.append((~is_valid(array)).astype(np.int64))
        _, codes = np.unique(np.stack(field_codes), axis=1, return_inverse=True)
        return codes.reshape(-1).astype(np.int64)
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        ids: dict[str, int] = {}
        return np.array([ids.setdefault(repr(v), len(ids)) for v in as_python(array, number_of)], dtype=np.int64)
    indices = array.dictionary_encode().indices.cast(pa.int64())
    return as_numpy(indices, null=-1) + 1
