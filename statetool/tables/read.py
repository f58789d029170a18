"""Read the splits of tables, in tasks or in this process: from bytes to record batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.batches import split_to_limits
from statetool.columns.types import table_column
from statetool.errors import FormatError, StatetoolError
from statetool.io.glibc import keep_in_own_process
from statetool.io.open_files import keeping_open
from statetool.kernels.core.arrays import Int64s
from statetool.tables.kinds.keyed import Columns
from statetool.tables.kinds.kind import TableSpec
from statetool.tables.splits import Split, TableRows, with_key_groups


def read_split(split: Split, *, reads_on: bool = False) -> Iterator[pa.RecordBatch]:
    """Read the rows of one split. Batches have up to 65,536 rows and 32 MiB (or one larger row).

    Parameters
    ----------
    reads_on
        Whether all rows will be read, so that their bytes may be requested from an object store at once.

    Raises
    ------
    FormatError
        Bytes are damaged. The error has the file, offset, operator, state and key group.
    """
    keep_in_own_process()
    with keeping_open():
        try:
            # A loop's variable would keep the rows while the next ones are read.
            yield from chain.from_iterable(map(partial(_batches_of, split.spec), split.rows(reads_on=reads_on)))
        except StatetoolError as error:
            raise error.at(operator=split.spec.operator, file=split.file) from None


def _batches_of(spec: TableSpec, rows: TableRows) -> Iterator[pa.RecordBatch]:
    n, columns = rows
    if n:
        batch = _record_batch(columns, spec)
        yield from split_to_limits(batch)


def whole_batch(groups: Int64s, columns: Columns, spec: TableSpec) -> pa.RecordBatch:
    """Return the rows of a keyed table in its schema, as one batch."""
    return _record_batch(with_key_groups(columns, groups, spec), spec)


def _record_batch(columns: Columns, spec: TableSpec) -> pa.RecordBatch:
    arrays: list[pa.Array] = []
    fields: list[pa.Field] = []
    for name, logical, array in columns:
        shown = table_column(logical, spec.options)
        arrays += shown.arrays(array)
        fields += shown.fields(name)
    return _in_schema(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), spec)


def _in_schema(batch: pa.RecordBatch, spec: TableSpec) -> pa.RecordBatch:
    """Return the batch in the table's schema. A state that does not exist in this subtask is null, and absent for all keys.

    Raises
    ------
    FormatError
        A state has another type in this subtask than in the schema, which is from another subtask.
    """
    schema = pa.ipc.read_schema(pa.py_buffer(spec.schema))
    if batch.schema.equals(schema):
        return batch
    by_name = dict(zip(batch.schema.names, batch.columns, strict=True))
    no_state = np.zeros(batch.num_rows, dtype=np.bool_)
    arrays = []
    for field in schema:
        array = by_name.get(field.name)
        if array is None or (pa.types.is_null(array.type) and not pa.types.is_null(field.type)):
            array = pa.nulls(batch.num_rows, field.type) if field.nullable else as_arrow(no_state)
        if not array.type.equals(field.type):
            raise FormatError(
                f"column {field.name!r} has type {array.type} in this subtask and {field.type} in another one",
                hint="read the states of each subtask separately, or leave the state out with states=[...]",
            )
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
