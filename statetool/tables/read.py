"""Read the splits of tables, in tasks or in this process: from bytes to record batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow
from statetool.columns.batches import split_to_limits
from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.io.glibc import keep_freed_memory
from statetool.io.open_files import keeping_open
from statetool.kernels.ahead import compile_together
from statetool.snapshot.views import check_view
from statetool.tables.kinds.elements import element_rows
from statetool.tables.kinds.in_flight import in_flight_rows
from statetool.tables.kinds.keyed import Columns, KeyedTable, flatten
from statetool.tables.kinds.kind import TableSpec
from statetool.tables.splits import ElementSplit, InFlightSplit, KeyedSplit, Split

#: Bytes per batch of entries. Between kernels, a thread holds the interpreter, once per batch. With large batches, threads wait less for each other;
#: even larger ones take more memory, and two threads are not faster with them.
_BATCH_BYTES: Final = 16 << 20
#: Tasks that read splits of at least this size share the compilation of kernels.
_COMPILE_TOGETHER_BYTES: Final = 4 << 20
#: Kernels needed for rows of keyed state, those with the longest compilation first.
_KERNELS: Final = (
    "values.skip.skip_many", "entries.distinct.number_ranges", "values.decode_text.text_fill", "values.decode_fixed.load_fixed", "values.decode_text.text_sizes",
    "values.elements.joined_counts", "values.elements.joined_positions",
)  # fmt: skip


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
    keep_freed_memory()
    with keeping_open():
        try:
            yield from _batches(split, reads_on=reads_on)
        except StatetoolError as error:
            raise error.at(operator=split.spec.operator, file=split.file) from None


def _batches(split: Split, *, reads_on: bool) -> Iterator[pa.RecordBatch]:
    match split:
        case KeyedSplit():
            yield from _read_keyed(split, reads_on=reads_on)
        case ElementSplit():
            for n, columns in element_rows(split):
                columns = split.kind.rows(columns, split.spec.options)
                extra = [("subtask", np.full(n, split.subtask))] if split.spec.subtask_column else []
                yield from _record_batches(n, columns, split.spec, extra)
        case InFlightSplit():
            for n, columns in in_flight_rows(split):
                yield from _record_batches(n, columns, split.spec, [])
        case _:
            assert_never(split)


def _read_keyed(split: KeyedSplit, *, reads_on: bool) -> Iterator[pa.RecordBatch]:
    spec, kind = split.spec, split.kind
    request = split.request(_BATCH_BYTES, reads_on=reads_on)
    header = split.source.header()
    if kind.view is not None:
        check_view(kind.view, spec.states, {meta.name: meta for meta in header.states})
    table = KeyedTable(header, spec.states, spec.options, spec.keys, spec.decoded)
    if not table.metas:
        return
    if split.size_bytes >= _COMPILE_TOGETHER_BYTES:
        compile_together((*split.source.kernels, *_KERNELS))
    # A loop's variable would keep each batch while the next one is read.
    yield from chain.from_iterable(map(partial(_rows_of_entries, split, table), split.source.batches(request)))


def _rows_of_entries(split: KeyedSplit, table: KeyedTable, batch: EntryBatch) -> Iterator[pa.RecordBatch]:
    for n, groups, columns in split.kind.rows(table, batch, split.spec):
        if n:
            yield from split_to_limits(whole_batch(groups, columns, split.spec))


def whole_batch(groups: npt.NDArray[np.int64], columns: Columns, spec: TableSpec) -> pa.RecordBatch:
    """Return the rows of a keyed table in its schema, as one batch."""
    extra = [("key_group", groups)] if spec.key_group_column else []
    return _record_batch(columns, spec, extra)


def _record_batches(
    n: int, columns: Columns, spec: TableSpec, extra: list[tuple[str, npt.NDArray[Any]]]
) -> Iterator[pa.RecordBatch]:
    if n:
        yield from split_to_limits(_record_batch(columns, spec, extra))


def _record_batch(columns: Columns, spec: TableSpec, extra: list[tuple[str, npt.NDArray[Any]]]) -> pa.RecordBatch:
    arrays, fields = flatten(columns, spec.options)
    for name, values in extra:
        arrays.append(as_arrow(values.astype(np.int32)))
        fields.append(pa.field(name, pa.int32()))
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
