"""What Spark would change in silence is refused in the task that reads it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_numpy, is_valid
from statetool.columns.python_values import as_python, number_of
from statetool.errors import DecodeError
from statetool.tables.read import read_split
from statetool.tables.splits import Split


def read_checked(split: Split) -> Iterator[pa.RecordBatch]:
    """Read a split, refusing what Spark would change."""
    return checked(read_split(split), file=split.file, operator=split.spec.operator)


def checked(
    batches: Iterator[pa.RecordBatch], *, file: str | None = None, operator: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield batches, refusing maps that have a key twice: a Spark map has one entry a key (and Arrow no null key).

    Parameters
    ----------
    file, operator
        Where the batches come from, for errors.

    Raises
    ------
    DecodeError
        A map with a key twice.
    """
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                _check(column, name)
            except DecodeError as error:
                raise error.at(file=file, operator=operator, state=name) from None
        yield batch


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
    """Check the keys of maps that lie one after another; ``counts`` are their sizes."""
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
    """Return a number for each value, from 0 on, the same for equal ones."""
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
