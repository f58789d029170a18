"""What Spark would change in silence is refused in the task that reads it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from statetool.errors import DecodeError


def checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches after a look at their maps: Spark has no place for two entries of one key.

    Raises
    ------
    DecodeError
        A map with a key twice.
    """
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            _check(column, name)
        yield batch


def _check(array: pa.Array, path: str) -> None:
    kind = array.type
    if pa.types.is_map(kind):
        _check_map(array, path)
        _check(array.items, f"{path}.value")
    elif pa.types.is_list(kind):
        _check(array.values, f"{path}.element")
    elif pa.types.is_struct(kind):
        for i, field in enumerate(kind):
            _check(array.field(i), f"{path}.{field.name}")


def _check_map(array: pa.Array, path: str) -> None:
    keys = array.keys
    if len(keys) < 2 or pa.types.is_nested(keys.type):
        return
    rows = pc.list_parent_indices(pa.ListArray.from_arrays(array.offsets, keys))
    table = pa.table({"row": rows, "key": keys.slice(0, len(rows))})
    if table.group_by(["row", "key"], use_threads=False).aggregate([]).num_rows < table.num_rows:
        raise DecodeError(
            "a map with the same key twice, which Spark maps cannot hold",
            hint="read the state in its long form with op.state(name), which keeps both",
        ).at(type_path=path)
